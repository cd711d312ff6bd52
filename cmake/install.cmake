# SPDX-License-Identifier: Apache-2.0
#
# What an installation contains: the library, its headers and the CMake package `flexalloc`.

include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

set(flexalloc_package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/flexalloc")

install(
  TARGETS flexalloc flexalloc_interface_core flexalloc_interface_strategies
  EXPORT flexalloc_targets
  RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}"
  LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}"
  ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}"
  FILE_SET HEADERS DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")

install(
  EXPORT flexalloc_targets
  FILE flexalloc-targets.cmake
  NAMESPACE flexalloc::
  DESTINATION "${flexalloc_package_dir}")

configure_package_config_file(
  "${PROJECT_SOURCE_DIR}/cmake/flexalloc-config.cmake.in"
  "${PROJECT_BINARY_DIR}/flexalloc-config.cmake" INSTALL_DESTINATION "${flexalloc_package_dir}")
write_basic_package_version_file(
  "${PROJECT_BINARY_DIR}/flexalloc-config-version.cmake"
  VERSION "${PROJECT_VERSION}"
  COMPATIBILITY SameMinorVersion)

install(FILES "${PROJECT_BINARY_DIR}/flexalloc-config.cmake"
              "${PROJECT_BINARY_DIR}/flexalloc-config-version.cmake"
        DESTINATION "${flexalloc_package_dir}")
