// SPDX-License-Identifier: Apache-2.0
// A handle that is not kept unregisters at once: the compiler warns, and a warning can be an error.

#include <flex/flex_allocator.hpp>

#pragma GCC diagnostic error "-Wunused-result"

void registerCallback(flex::FlexAllocator<>& allocator) {
#if FLEXALLOC_MISUSE
  allocator.registerMemoryPressureCallback([](flex::Lock&) {});
#else
  auto const handle = allocator.registerMemoryPressureCallback([](flex::Lock&) {});
#endif
}
