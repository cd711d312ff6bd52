// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the allocator asks of a device.

#include <cstddef>
#include <cstdint>
#include <optional>

#include <flex/topology.hpp>

namespace flex {

/// An address in the device's own address space; 0 is none.
using DeviceAddress = std::uint64_t;

/// One contiguous range taken from a device.
struct DeviceRegion {
  DeviceAddress base = 0;
  std::uint64_t nbytes = 0;
  DomainId domain = 0;
};

/// A device back end. Calls may block; the allocator makes them with no lock held, and never more
/// than one tryAllocate at a time.
///
/// Thread-safe: any member may be called from any thread at any time.
class DeviceMemory {
 public:
  DeviceMemory() = default;
  DeviceMemory(DeviceMemory const&) = delete;
  DeviceMemory& operator=(DeviceMemory const&) = delete;
  virtual ~DeviceMemory() = default;

  /// The banks of the device; the same at every call.
  [[nodiscard]] virtual DeviceTopology const& topology() const noexcept = 0;

  /// The largest region the device can ever give, in bytes.
  [[nodiscard]] virtual std::uint64_t maxRegionBytes() const noexcept = 0;

  /// A range of exactly `nbytes` (a multiple of kGranule, > 0) in `domain`, at a base that is a
  /// multiple of kGranule, or nothing if the device has no more. Throws only what is no shortage.
  [[nodiscard]] virtual std::optional<DeviceRegion> tryAllocate(std::uint64_t nbytes,
                                                                DomainId domain) = 0;

  /// Gives a range from tryAllocate back.
  virtual void release(DeviceRegion const& region) noexcept = 0;

  /// Where the host reads and writes `address`; null if this device is not addressable by the host.
  [[nodiscard]] virtual std::byte* hostPointer(DeviceAddress /*address*/) const noexcept {
    return nullptr;
  }
};

}  // namespace flex
