# SPDX-License-Identifier: Apache-2.0
#
# PyTorch as its Python package has it, whether a distribution's or pip's: not find_package(Torch),
# which has much to say and changes the flags of whoever asks. Sets flexalloc_torch_version and
# defines flexalloc_torch, or sets flexalloc_torch_missing to what is not there.

set(flexalloc_torch_missing "")
execute_process(
  COMMAND
    "${Python3_EXECUTABLE}" -c [[
import importlib.util, pathlib, runpy
torch = pathlib.Path(importlib.util.find_spec("torch").origin).parent
print(torch, runpy.run_path(str(torch / "version.py"))["__version__"], sep=";")]]
  OUTPUT_VARIABLE flexalloc_torch_found
  OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET
  RESULT_VARIABLE flexalloc_torch_status)
if(NOT flexalloc_torch_status EQUAL 0)
  set(flexalloc_torch_missing "${Python3_EXECUTABLE} has no module torch")
  return()
endif()
list(GET flexalloc_torch_found 0 flexalloc_torch_dir)
list(GET flexalloc_torch_found 1 flexalloc_torch_version)
if(flexalloc_torch_version VERSION_LESS 2.6)
  set(flexalloc_torch_missing "the torch of ${Python3_EXECUTABLE} is ${flexalloc_torch_version}")
  return()
endif()

find_path(FLEXALLOC_TORCH_INCLUDE torch/csrc/Exceptions.h HINTS "${flexalloc_torch_dir}/include")
find_path(FLEXALLOC_PYBIND11_INCLUDE pybind11/pybind11.h HINTS "${flexalloc_torch_dir}/include")
mark_as_advanced(FLEXALLOC_TORCH_INCLUDE FLEXALLOC_PYBIND11_INCLUDE)
foreach(part IN ITEMS TORCH PYBIND11)
  if(NOT FLEXALLOC_${part}_INCLUDE)
    set(flexalloc_torch_missing "no headers of ${part} for torch ${flexalloc_torch_version}")
    return()
  endif()
endforeach()

add_library(flexalloc_torch INTERFACE)
target_include_directories(
  flexalloc_torch SYSTEM INTERFACE "${FLEXALLOC_TORCH_INCLUDE}" "${FLEXALLOC_PYBIND11_INCLUDE}"
                                   "${FLEXALLOC_TORCH_INCLUDE}/torch/csrc/api/include")
foreach(part IN ITEMS torch_python torch_cpu torch c10)
  find_library(FLEXALLOC_LIB_${part} ${part} HINTS "${flexalloc_torch_dir}/lib" NO_DEFAULT_PATH)
  find_library(FLEXALLOC_LIB_${part} ${part})
  mark_as_advanced(FLEXALLOC_LIB_${part})
  if(NOT FLEXALLOC_LIB_${part})
    set(flexalloc_torch_missing "no library ${part} for torch ${flexalloc_torch_version}")
    return()
  endif()
  target_link_libraries(flexalloc_torch INTERFACE "${FLEXALLOC_LIB_${part}}")
endforeach()
