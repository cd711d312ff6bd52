// SPDX-License-Identifier: Apache-2.0
#pragma once
// An allocator on a small scripted device and a clock that stands still; proves at its end that
// nothing was lost.

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <flex/flex_allocator.ipp>

#include "byte_literals.hpp"
#include "garbage.hpp"
#include "gate.hpp"
#include "manual_clock.hpp"
#include "recording_callback.hpp"
#include "scripted_device.hpp"
#include "task.hpp"

namespace flex::test {

/// What tests allocate: the device of a Sandbox holds kBlocks of these.
inline constexpr std::uint64_t kBlock = 1 * kKiB;
inline constexpr std::uint64_t kBlocks = 16;
inline constexpr std::uint64_t kCapacity = kBlocks * kBlock;

inline RequestOptions waitAtMost(Duration longest) { return {.max_wait = longest}; }
/// May reclaim, may not sleep.
inline RequestOptions neverSleep() { return waitAtMost(Duration::zero()); }
inline RequestOptions mustNotWait() { return {.may_wait = false}; }

/// One region that serves all, a second of manual time to wait.
inline AllocatorOptions oneRegion() {
  AllocatorOptions options;
  options.regions = 1;
  return options;
}

/// At most `regions` regions of `each` bytes, taken when needed.
inline AllocatorOptions onDemand(std::uint32_t regions, std::uint64_t each) {
  AllocatorOptions options;
  options.acquisition = Acquisition::on_demand;
  options.regions = regions;
  options.fallback_sizes = {each};
  return options;
}

template <PressureStrategy Strategy>
class Sandbox {
 public:
  using Allocator = FlexAllocator<Strategy>;

  explicit Sandbox(AllocatorOptions options = oneRegion(),
                   DeviceTopology topology = singleDomain(kCapacity),
                   typename Strategy::Options strategy_options = {})
      : device(std::make_shared<ScriptedDevice>(std::move(topology))),
        clock(std::make_shared<ManualClock>()) {
    options.clock = clock;
    allocator = std::make_unique<Allocator>(device, std::move(options), strategy_options);
  }
  Sandbox(Sandbox const&) = delete;
  Sandbox& operator=(Sandbox const&) = delete;
  ~Sandbox() {
    garbage.clear();
    if (allocator != nullptr) expectNothingIsUsed();
    allocator.reset();
    EXPECT_EQ(device->regionsHeld(), 0U) << "regions were not given back to the device";
    EXPECT_EQ(device->wrongReleases(), 0U);
  }

  Allocator& operator*() { return *allocator; }
  Allocator* operator->() { return allocator.get(); }

  [[nodiscard]] PressureStatistics pressure() { return allocator->statistics().pressure; }

  /// Allocates `count` blocks that only a callback will free.
  void litter(std::uint64_t count = kBlocks) {
    for (; count > 0; --count) garbage.add(allocator->allocate(kBlock));
  }
  /// Allocates `count` blocks that the test keeps.
  [[nodiscard]] std::vector<CompositeAddress> hold(std::uint64_t count) {
    std::vector<CompositeAddress> held;
    for (; count > 0; --count) held.push_back(allocator->allocate(kBlock));
    return held;
  }

  /// A request on a thread of its own.
  [[nodiscard]] std::unique_ptr<Allocation> request(std::uint64_t nbytes,
                                                    RequestOptions options = {}) {
    return std::make_unique<Allocation>(
        [this, nbytes, options] { return allocator->allocate(nbytes, {}, options); });
  }
  /// The same, once it sleeps; `sleeping` is the number of all that sleep then.
  [[nodiscard]] std::unique_ptr<Allocation> sleepingRequest(std::uint64_t nbytes,
                                                            std::size_t sleeping,
                                                            RequestOptions options = {}) {
    auto allocation = request(nbytes, options);
    clock->waitForParked(sleeping);
    return allocation;
  }

  /// A callback that frees all garbage, with the mutex free.
  [[nodiscard]] RecordingCallback collector() {
    return RecordingCallback(
        [this](Lock& lock) { withoutLock(lock, [this] { garbage.clear(); }); });
  }

  std::shared_ptr<ScriptedDevice> device;
  std::shared_ptr<ManualClock> clock;
  std::unique_ptr<Allocator> allocator;
  Garbage garbage;

 private:
  void expectNothingIsUsed() {
    EXPECT_NO_THROW(allocator->checkInvariants());
    Statistics const now = allocator->statistics();
    EXPECT_EQ(now.allocations.current, 0);
    EXPECT_EQ(now.allocated_bytes.current, 0);
    EXPECT_EQ(now.requested_bytes.current, 0);
    EXPECT_EQ(now.free, now.total);
    EXPECT_EQ(clock->parked(), 0U);
    // Every region can be had in one piece, all at once.
    std::vector<CompositeAddress> all;
    std::uint64_t taken = 0;
    for (std::uint64_t largest = now.largest_free; largest > 0;
         largest = allocator->statistics().largest_free) {
      std::optional<CompositeAddress> whole = allocator->tryAllocateAtOnce(largest);
      if (!whole)
        whole = allocator->tryAllocateAtOnce(largest, {.memory_type = MemoryType::program});
      if (!whole) break;
      taken += largest;
      all.push_back(std::move(*whole));
    }
    EXPECT_EQ(taken, now.total);
    EXPECT_EQ(static_cast<std::int64_t>(all.size()), now.regions.current);
  }
};

}  // namespace flex::test
