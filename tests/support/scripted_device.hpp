// SPDX-License-Identifier: Apache-2.0
#pragma once
// A device that does what a test tells it to.

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <utility>

#include <boost/thread/mutex.hpp>

#include <flex/bytes.hpp>
#include <flex/device_memory.hpp>

namespace flex::test {

enum class DeviceAnswer { give, refuse };

/// Addresses with nothing behind them, and a script that is asked at every tryAllocate. The script
/// may block at a gate, and may throw.
///
/// Thread-safe: any member may be called from any thread at any time.
class ScriptedDevice final : public DeviceMemory {
 public:
  /// Gets the number of the call, from 1.
  using Script = std::function<DeviceAnswer(std::uint64_t call)>;

  explicit ScriptedDevice(DeviceTopology topology) : topology_(std::move(topology)) {}
  explicit ScriptedDevice(std::uint64_t capacity) : ScriptedDevice(singleDomain(capacity)) {}

  void follow(Script script) {
    boost::unique_lock<boost::mutex> const lock(mutex_);
    script_ = std::move(script);
  }

  /// What every release() does first: it may block at a gate, not throw.
  void beforeRelease(std::function<void()> hook) {
    boost::unique_lock<boost::mutex> const lock(mutex_);
    before_release_ = std::move(hook);
  }

  [[nodiscard]] DeviceTopology const& topology() const noexcept override { return topology_; }
  [[nodiscard]] std::uint64_t maxRegionBytes() const noexcept override {
    std::uint64_t largest = 0;
    for (std::uint64_t const capacity : topology_.domain_capacity) {
      if (capacity > largest) largest = capacity;
    }
    return largest;
  }

  [[nodiscard]] std::optional<DeviceRegion> tryAllocate(std::uint64_t nbytes,
                                                        DomainId domain) override {
    Script script;
    std::uint64_t call = 0;
    {
      boost::unique_lock<boost::mutex> const lock(mutex_);
      call = ++calls_;
      script = script_;
    }
    if (script && script(call) == DeviceAnswer::refuse) return std::nullopt;
    boost::unique_lock<boost::mutex> const lock(mutex_);
    std::uint64_t used = 0;
    for (auto const& [base, region] : regions_) used += region.domain == domain ? region.nbytes : 0;
    if (nbytes > topology_.domain_capacity[domain] - used) return std::nullopt;
    DeviceRegion const region{next_, nbytes, domain};
    next_ += nbytes + kGranule;
    regions_.emplace(region.base, region);
    return region;
  }

  void release(DeviceRegion const& region) noexcept override {
    std::function<void()> before;
    {
      boost::unique_lock<boost::mutex> const lock(mutex_);
      before = before_release_;
    }
    if (before) before();
    boost::unique_lock<boost::mutex> const lock(mutex_);
    if (regions_.erase(region.base) == 0) ++wrong_releases_;
  }

  [[nodiscard]] std::uint64_t calls() const {
    boost::unique_lock<boost::mutex> const lock(mutex_);
    return calls_;
  }
  [[nodiscard]] std::size_t regionsHeld() const {
    boost::unique_lock<boost::mutex> const lock(mutex_);
    return regions_.size();
  }
  /// Releases of what was not held.
  [[nodiscard]] std::uint64_t wrongReleases() const {
    boost::unique_lock<boost::mutex> const lock(mutex_);
    return wrong_releases_;
  }

 private:
  DeviceTopology const topology_;
  mutable boost::mutex mutex_;
  Script script_;
  std::function<void()> before_release_;
  std::map<DeviceAddress, DeviceRegion> regions_;
  DeviceAddress next_ = 1 * kGiB;
  std::uint64_t calls_ = 0;
  std::uint64_t wrong_releases_ = 0;
};

}  // namespace flex::test
