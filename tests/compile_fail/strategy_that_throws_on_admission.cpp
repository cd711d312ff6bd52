// SPDX-License-Identifier: Apache-2.0
// admit() is asked on the fast path, where nothing can be undone: it must not throw.

#include <flex/flex_allocator.hpp>

struct Throwing : flex::HoldMutexDuringCallback {
  using flex::HoldMutexDuringCallback::HoldMutexDuringCallback;
#if FLEXALLOC_MISUSE
  bool admit() { return true; }
#else
  bool admit() noexcept { return true; }
#endif
};

using Allocator = flex::FlexAllocator<Throwing>;

bool holds(Allocator* allocator) { return allocator != nullptr; }
