// SPDX-License-Identifier: Apache-2.0
#pragma once
// A device made of host memory, with the limits of real firmware.

#include <limits>
#include <map>

#include <flex/bytes.hpp>
#include <flex/device_memory.hpp>
#include <flex/sync/fork_mutex.hpp>
#include <flex/sync/primitives.hpp>

namespace flex {

/// What a SimulatedDevice has and refuses. Defaults: no limit but the capacity.
struct SimulatedDeviceOptions {
  /// Bytes of each domain and their distances.
  DeviceTopology topology = singleDomain(8 * kGiB);
  /// Regions that may exist at once (entries of the firmware's table).
  std::uint32_t table_entries = std::numeric_limits<std::uint32_t>::max();
  std::uint64_t max_region_bytes = std::numeric_limits<std::uint64_t>::max();
  /// Bytes of all regions together, whatever the domains could hold.
  std::uint64_t budget_bytes = std::numeric_limits<std::uint64_t>::max();
  /// How long every tryAllocate takes.
  sync::Duration latency{0};
  /// The n-th tryAllocate (from 1) fails, and only that one. 0: none.
  std::uint64_t fail_on_call = 0;
};

/// Address space is reserved from the host and touched only where a user copies data into it, so a
/// device of 110 GiB costs what is used of it. Device addresses are host addresses.
///
/// Thread-safe: any member may be called from any thread at any time.
class SimulatedDevice final : public DeviceMemory {
 public:
  /// Throws std::invalid_argument (see DeviceTopology::validate).
  explicit SimulatedDevice(SimulatedDeviceOptions options);
  /// One domain of `capacity` bytes, no further limits.
  explicit SimulatedDevice(std::uint64_t capacity);
  ~SimulatedDevice() override;

  [[nodiscard]] DeviceTopology const& topology() const noexcept override;
  [[nodiscard]] std::uint64_t maxRegionBytes() const noexcept override;
  [[nodiscard]] std::optional<DeviceRegion> tryAllocate(std::uint64_t nbytes,
                                                        DomainId domain) override;
  void release(DeviceRegion const& region) noexcept override;
  [[nodiscard]] std::byte* hostPointer(DeviceAddress address) const noexcept override;

  /// Number of tryAllocate calls so far.
  [[nodiscard]] std::uint64_t calls() const noexcept;
  /// Makes the n-th tryAllocate from now (from 1) fail. 0: none.
  void failOnCall(std::uint64_t nth_from_now) noexcept;
  /// Bytes of all regions that exist now.
  [[nodiscard]] std::uint64_t bytesInUse() const noexcept;

 private:
  SimulatedDeviceOptions const options_;
  mutable sync::ForkMutex mutex_;
  std::map<DeviceAddress, DeviceRegion> regions_;
  std::vector<std::uint64_t> used_by_domain_;
  std::uint64_t used_ = 0;
  std::uint64_t calls_ = 0;
  std::uint64_t failing_call_;
};

}  // namespace flex
