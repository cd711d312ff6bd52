// SPDX-License-Identifier: Apache-2.0
// The only place where the allocator meets the strategies that ship with it.
#include <flex/flex_allocator.ipp>

namespace flex {

template class FlexAllocator<HoldMutexDuringCallback>;
template class FlexAllocator<ReleaseAndCondvar>;

}  // namespace flex
