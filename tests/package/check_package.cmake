# SPDX-License-Identifier: Apache-2.0
#
# Installs BUILD_DIR to STAGE, builds CONSUMER against it and runs the program.

function(run what)
  execute_process(
    COMMAND ${ARGN}
    RESULT_VARIABLE failed
    OUTPUT_VARIABLE output
    ERROR_VARIABLE output)
  if(failed)
    message(FATAL_ERROR "${what} failed (${failed}):\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

file(REMOVE_RECURSE "${STAGE}" "${CONSUMER_BUILD}")
run("install" "${CMAKE_COMMAND}" --install "${BUILD_DIR}" --prefix "${STAGE}")

set(configure "${CMAKE_COMMAND}" -S "${CONSUMER}" -B "${CONSUMER_BUILD}" -G "${GENERATOR}"
    "-DCMAKE_PREFIX_PATH=${STAGE}" "-DCMAKE_CXX_COMPILER=${COMPILER}"
    "-DCMAKE_BUILD_TYPE=${BUILD_TYPE}")

# While the major number is 0, another minor number is another interface.
execute_process(
  COMMAND ${configure} -DWANTED_VERSION=0.9999
  RESULT_VARIABLE refused
  OUTPUT_QUIET ERROR_QUIET)
if(NOT refused)
  message(FATAL_ERROR "the package claims to be compatible with version 0.9999")
endif()

run("configure" ${configure} "-DWANTED_VERSION=${VERSION}")
run("build" "${CMAKE_COMMAND}" --build "${CONSUMER_BUILD}")
run("the program" "${CONSUMER_BUILD}/package_consumer")
if(NOT output MATCHES "flexalloc ${VERSION}")
  message(FATAL_ERROR "the program says '${output}', not version ${VERSION}")
endif()
