# SPDX-License-Identifier: Apache-2.0
#
# How this project compiles its own code. Nothing here reaches a user of the installed package.

add_library(flexalloc_build INTERFACE)

target_compile_options(
  flexalloc_build
  INTERFACE -Wall
            -Wextra
            -Wpedantic
            -Wshadow
            -Wconversion
            -Wsign-conversion
            -Wold-style-cast
            -Wnon-virtual-dtor
            # Gathers the words of a small record in a vector register, and so makes whoever reads
            # one of them wait for all.
            -fno-tree-slp-vectorize
            $<$<BOOL:${FLEXALLOC_WERROR}>:-Werror>)

if(FLEXALLOC_THREAD_SAFETY_ANALYSIS)
  if(NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    message(FATAL_ERROR "FLEXALLOC_THREAD_SAFETY_ANALYSIS needs clang, "
                        "but the compiler is ${CMAKE_CXX_COMPILER_ID} (${CMAKE_CXX_COMPILER})")
  endif()
  target_compile_options(flexalloc_build INTERFACE -Wthread-safety -Wthread-safety-beta)
endif()

if(FLEXALLOC_SANITIZE)
  foreach(sanitizer IN LISTS FLEXALLOC_SANITIZE)
    if(NOT sanitizer MATCHES "^(address|undefined|leak|thread)$")
      message(FATAL_ERROR "FLEXALLOC_SANITIZE names '${sanitizer}'; "
                          "allowed are address, undefined, leak, thread")
    endif()
  endforeach()
  list(JOIN FLEXALLOC_SANITIZE "," flexalloc_sanitizers)
  target_compile_options(
    flexalloc_build INTERFACE -fsanitize=${flexalloc_sanitizers} -fno-sanitize-recover=all
                              -fno-omit-frame-pointer)
  if("undefined" IN_LIST FLEXALLOC_SANITIZE)
    # This check wipes the vtable pointer of what is destroyed, and Boost.Python (instance_dealloc)
    # asks a holder for its whole size after having destroyed it. Nor does it align holders as they
    # ask for (make_constructor).
    target_compile_options(
      flexalloc_build
      INTERFACE -fno-sanitize=vptr
                $<$<BOOL:$<TARGET_PROPERTY:FLEXALLOC_USES_BOOST_PYTHON>>:-fno-sanitize=alignment>)
  endif()
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # g++ cannot tell what a sanitizer's own code initialises, and says so of Boost's headers.
    target_compile_options(flexalloc_build INTERFACE -Wno-maybe-uninitialized)
  endif()
  target_link_options(flexalloc_build INTERFACE -fsanitize=${flexalloc_sanitizers})
endif()
