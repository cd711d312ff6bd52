# SPDX-License-Identifier: Apache-2.0
#
# Compiles SOURCE twice with COMPILER: the right variant must pass, the misuse must fail and say
# something that matches EXPECTED. FLAGS and DEFINITIONS are lists.

foreach(definition IN LISTS DEFINITIONS)
  list(APPEND FLAGS "-D${definition}")
endforeach()

# Messages in plain English, with plain quotes.
set(ENV{LC_ALL} C)

file(READ "${SOURCE}" text)
if(NOT text MATCHES "FLEXALLOC_MISUSE")
  message(FATAL_ERROR "${SOURCE} has no '#if FLEXALLOC_MISUSE'")
endif()

execute_process(
  COMMAND "${COMPILER}" ${FLAGS} -DFLEXALLOC_MISUSE=0 -fsyntax-only "${SOURCE}"
  RESULT_VARIABLE right_failed
  ERROR_VARIABLE output)
if(right_failed)
  message(FATAL_ERROR "the right variant does not compile:\n${output}")
endif()

execute_process(
  COMMAND "${COMPILER}" ${FLAGS} -DFLEXALLOC_MISUSE=1 -fsyntax-only "${SOURCE}"
  RESULT_VARIABLE misuse_failed
  ERROR_VARIABLE output)
if(NOT misuse_failed)
  message(FATAL_ERROR "the misuse compiles")
endif()
if(NOT output MATCHES "${EXPECTED}")
  message(FATAL_ERROR "the misuse is refused, but no message matches '${EXPECTED}':\n${output}")
endif()
