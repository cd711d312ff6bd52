# SPDX-License-Identifier: Apache-2.0
#
# How an extension module is built and laid out, so that `PYTHONPATH=<build>/python` imports the
# package as an installed one would be.

find_package(Python3 3.9 REQUIRED COMPONENTS Interpreter Development.Module
             OPTIONAL_COMPONENTS Development.Embed)
find_package(Boost 1.74 REQUIRED
             COMPONENTS thread chrono python${Python3_VERSION_MAJOR}${Python3_VERSION_MINOR})

set(FLEXALLOC_PYTHON_DIR "${PROJECT_BINARY_DIR}/python")

# flexalloc_add_python_package(<target> PACKAGE <name> MODULE <name> SOURCES <cpp...> FILES <py...>)
#
# Builds the extension <package>/<module> from SOURCES and copies FILES (relative to the calling
# directory, structure kept) beside it. Building <target> brings both up to date.
function(flexalloc_add_python_package target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "PACKAGE;MODULE" "SOURCES;FILES")
  set(package_dir "${FLEXALLOC_PYTHON_DIR}/${arg_PACKAGE}")

  set(copies "")
  foreach(file IN LISTS arg_FILES)
    add_custom_command(
      OUTPUT "${package_dir}/${file}"
      COMMAND "${CMAKE_COMMAND}" -E copy "${CMAKE_CURRENT_SOURCE_DIR}/${file}"
              "${package_dir}/${file}"
      DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/${file}"
      COMMENT "Copying ${arg_PACKAGE}/${file}")
    list(APPEND copies "${package_dir}/${file}")
  endforeach()

  Python3_add_library(${target} MODULE WITH_SOABI ${arg_SOURCES} ${copies})
  set_target_properties(
    ${target}
    PROPERTIES OUTPUT_NAME "${arg_MODULE}"
               LIBRARY_OUTPUT_DIRECTORY "${package_dir}"
               FLEXALLOC_USES_BOOST_PYTHON ON
               CXX_VISIBILITY_PRESET hidden
               VISIBILITY_INLINES_HIDDEN ON)
  # Boost.Python's own headers are behind these two notices.
  target_compile_definitions(${target} PRIVATE BOOST_ALLOW_DEPRECATED_HEADERS
                                               BOOST_BIND_GLOBAL_PLACEHOLDERS)
  target_link_libraries(
    ${target} PRIVATE flexalloc::flexalloc flexalloc_build
                      Boost::python${Python3_VERSION_MAJOR}${Python3_VERSION_MINOR})
endfunction()
