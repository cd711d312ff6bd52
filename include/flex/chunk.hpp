// SPDX-License-Identifier: Apache-2.0
#pragma once
// A block as its user sees it.

#include <cstdint>

#include <flex/device_memory.hpp>

namespace flex {

/// One contiguous piece of device memory.
struct Chunk {
  DeviceAddress address = 0;  ///< region base + offset
  std::uint64_t offset = 0;   ///< bytes from the region's start, a multiple of kGranule
  std::uint64_t nbytes = 0;   ///< a multiple of kGranule
  std::uint32_t region = 0;   ///< region id
  DomainId domain = 0;
};

}  // namespace flex
