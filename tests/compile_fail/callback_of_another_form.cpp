// SPDX-License-Identifier: Apache-2.0
// A callback takes the lock, or the lock and the event; nothing else.

#include <flex/pressure.hpp>

flex::MemoryPressureCallback make() {
#if FLEXALLOC_MISUSE
  return flex::MemoryPressureCallback([](int) {});
#else
  return flex::MemoryPressureCallback([](flex::Lock&) {});
#endif
}
