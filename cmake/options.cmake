# SPDX-License-Identifier: Apache-2.0
#
# Every switch of the build, in one place. Behaviour is chosen by types, not here; what is here
# decides what is built and how it is checked.

option(BUILD_SHARED_LIBS "Build libflexalloc as a shared library, so that several modules of one process share it" ON)

option(FLEXALLOC_BUILD_TESTS "Build the tests" ${PROJECT_IS_TOP_LEVEL})
option(FLEXALLOC_BUILD_EXAMPLES "Build the examples" ${PROJECT_IS_TOP_LEVEL})
option(FLEXALLOC_BUILD_BENCHMARKS "Build the benchmarks" ${PROJECT_IS_TOP_LEVEL})
option(FLEXALLOC_BUILD_PYTHON "Build the Python package spyre_alloc" ${PROJECT_IS_TOP_LEVEL})

option(FLEXALLOC_BUILD_FUZZER "Build the tests as what libFuzzer drives, and only that (clang only)" OFF)

option(FLEXALLOC_WERROR "Turn warnings into errors" OFF)
option(FLEXALLOC_THREAD_SAFETY_ANALYSIS "Check lock annotations at compile time (clang only)" OFF)
set(FLEXALLOC_SANITIZE "" CACHE STRING
    "Sanitizers to build with, a list: address, undefined, leak, thread")

# Checking the lock rules at run time changes the layout of the public mutex type, so the choice is
# a public definition of the library: whoever links it is compiled the same way.
if(CMAKE_BUILD_TYPE STREQUAL "Debug")
  set(flexalloc_check_lock_rules_default ON)
else()
  set(flexalloc_check_lock_rules_default OFF)
endif()
option(FLEXALLOC_CHECK_LOCK_RULES "Assert at run time who owns a mutex and who is attached to Python"
       ${flexalloc_check_lock_rules_default})
