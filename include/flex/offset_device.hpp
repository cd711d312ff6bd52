// SPDX-License-Identifier: Apache-2.0
#pragma once
// A device with addresses and nothing behind them.

#include <flex/bytes.hpp>
#include <flex/device_memory.hpp>
#include <flex/sync/fork_mutex.hpp>
#include <flex/sync/primitives.hpp>

namespace flex {

/// Hands out address ranges and no memory: for benchmarks and for planning a layout. Addresses are
/// never used twice.
///
/// Thread-safe: any member may be called from any thread at any time.
class OffsetDevice final : public DeviceMemory {
 public:
  /// Throws std::invalid_argument (see DeviceTopology::validate).
  explicit OffsetDevice(DeviceTopology topology);
  explicit OffsetDevice(std::uint64_t capacity) : OffsetDevice(singleDomain(capacity)) {}

  [[nodiscard]] DeviceTopology const& topology() const noexcept override { return topology_; }
  [[nodiscard]] std::uint64_t maxRegionBytes() const noexcept override;
  [[nodiscard]] std::optional<DeviceRegion> tryAllocate(std::uint64_t nbytes,
                                                        DomainId domain) override;
  void release(DeviceRegion const& region) noexcept override;

 private:
  DeviceTopology const topology_;
  sync::ForkMutex mutex_;
  std::vector<std::uint64_t> used_by_domain_;
  DeviceAddress next_ = kGiB;
};

}  // namespace flex
