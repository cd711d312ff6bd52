// SPDX-License-Identifier: Apache-2.0
// What is no strategy is refused by name.

#include <flex/flex_allocator.hpp>

struct NotAStrategy {};

#if FLEXALLOC_MISUSE
using Allocator = flex::FlexAllocator<NotAStrategy>;
#else
using Allocator = flex::FlexAllocator<flex::ReleaseAndCondvar>;
#endif

bool holds(Allocator& allocator) { return allocator.device() != nullptr; }
