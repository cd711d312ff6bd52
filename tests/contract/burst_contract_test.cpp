// SPDX-License-Identifier: Apache-2.0
// Many requests that fail together share a reclaim. // case 74

#include <algorithm>
#include <set>

#include "pressure_contract.hpp"

namespace flex::test {
namespace {

constexpr std::size_t kRequests = 8;

/// Requests of which all have failed their first search before any of them reclaims: one is kept
/// inside the device, which the others wait for. The device has nothing more to give.
template <class Strategy>
class Burst {
 public:
  Burst() : box(onDemand(2, kCapacity)) {
    box.litter();
    box.device->follow([this](std::uint64_t call) {
      if (call == 2) device_gate_.pass();
      boost::unique_lock<boost::mutex> const lock(mutex_);
      askers_.insert(sync::thisThread());
      return DeviceAnswer::refuse;
    });
  }

  void begin(std::uint64_t nbytes) {
    for (std::size_t i = 0; i < kRequests; ++i) requests.push_back(box.request(nbytes));
    device_gate_.waitForArrivals();
    box.clock->waitForParked(kRequests - 1);
    device_gate_.open();
  }

  /// To be called inside a callback: waits until the other requests have been refused by the
  /// device, each by itself, and sleep or have ended.
  void letOthersCome() {
    waitUntil(
        [this] { return askers() == kRequests && box.clock->parked() + ended() >= kRequests - 1; },
        "the rest of the burst has come");
  }

  /// Lets time pass until all have ended; returns how many were served.
  std::size_t finish() {
    auto const settled = [this] { return box.clock->settled() + ended() == kRequests; };
    waitUntil(settled, "the burst settles");
    while (ended() < kRequests) {
      box.clock->advance(std::chrono::seconds(1));
      waitUntil(settled, "all have looked at the clock");
    }
    std::size_t served = 0;
    for (auto& request : requests) {
      std::optional<FailureReason> const reason = reasonOf(*request);
      if (!reason) ++served;
    }
    return served;
  }

  [[nodiscard]] std::size_t askers() const {
    boost::unique_lock<boost::mutex> const lock(mutex_);
    return askers_.size();
  }
  [[nodiscard]] std::size_t ended() const {
    return static_cast<std::size_t>(
        std::ranges::count_if(requests, [](auto const& request) { return request->done(); }));
  }

  Gate device_gate_;
  mutable boost::mutex mutex_;
  std::set<sync::ThreadId> askers_;
  Sandbox<Strategy> box;
  std::vector<std::unique_ptr<Allocation>> requests;  // last: they use all of the above
};

template <class Strategy>
void expectFewReclaims(Burst<Strategy>& burst, RecordingCallback const& callback) {
  PressureStatistics const pressure = burst.box.pressure();
  EXPECT_GE(callback.runs(), 1U) << "pressure was never reached";
  EXPECT_LE(callback.runs(), 2U);
  EXPECT_LE(pressure.reclaims, 2U);
  EXPECT_EQ(pressure.events, kRequests);
  // An event without a reclaim of its own is a coalesced one; one request may have run both.
  EXPECT_GE(pressure.reclaims + pressure.coalesced, pressure.events);
  EXPECT_LT(pressure.coalesced, pressure.events);
}

TYPED_TEST(PressureContract, BurstSharesAReclaimThatFreesNothing) {
  Burst<TypeParam> burst;
  RecordingCallback const callback(
      [&](Lock& lock) { withoutLock(lock, [&] { burst.letOthersCome(); }); });
  auto const handle = burst.box->registerMemoryPressureCallback(callback);
  burst.begin(kBlock);
  EXPECT_EQ(burst.finish(), 0U);
  expectFewReclaims(burst, callback);
  EXPECT_EQ(burst.box.pressure().outOfMemory(), kRequests);
}

TYPED_TEST(PressureContract, BurstSharesAReclaimThatFreesEverything) {
  Burst<TypeParam> burst;
  RecordingCallback const callback([&](Lock& lock) {
    withoutLock(lock, [&] {
      burst.letOthersCome();
      burst.box.garbage.clear();
    });
  });
  auto const handle = burst.box->registerMemoryPressureCallback(callback);
  burst.begin(2 * kBlock);
  EXPECT_EQ(burst.finish(), kRequests);
  expectFewReclaims(burst, callback);
  EXPECT_EQ(burst.box.pressure().outOfMemory(), 0U);
}

TYPED_TEST(PressureContract, BurstSharesAReclaimWhoseSecondCallbackFrees) {
  Burst<TypeParam> burst;
  RecordingCallback const cheap(
      [&](Lock& lock) { withoutLock(lock, [&] { burst.letOthersCome(); }); });
  RecordingCallback const thorough = burst.box.collector();
  auto const handle1 = burst.box->registerMemoryPressureCallback(cheap, 1);
  auto const handle2 = burst.box->registerMemoryPressureCallback(thorough, 2);
  burst.begin(2 * kBlock);
  EXPECT_EQ(burst.finish(), kRequests);
  expectFewReclaims(burst, cheap);
  EXPECT_GE(thorough.runs(), 1U);
  EXPECT_LE(thorough.runs(), 2U);
}

// What serves the requester alone is not the end: the others count on the rest of the chain.
TYPED_TEST(PressureContract, BurstGetsTheRestOfTheChainWhenTheFirstIsServed) {
  Burst<TypeParam> burst;
  RecordingCallback const cheap([&](Lock& lock) {
    withoutLock(lock, [&] {
      burst.letOthersCome();
      burst.box.garbage.clearOldest(2);
    });
  });
  RecordingCallback const thorough = burst.box.collector();
  auto const handle1 = burst.box->registerMemoryPressureCallback(cheap, 1);
  auto const handle2 = burst.box->registerMemoryPressureCallback(thorough, 2);
  burst.begin(2 * kBlock);
  EXPECT_EQ(burst.finish(), kRequests);
  EXPECT_EQ(cheap.runs(), 1U) << "all arrived before the first reclaim, so it is for all of them";
  EXPECT_EQ(thorough.runs(), 1U);
}

TYPED_TEST(PressureContract, BurstOfWhichHalfCanBeServedServesHalf) {
  Burst<TypeParam> burst;
  std::atomic<bool> first{true};
  RecordingCallback const callback([&](Lock& lock) {
    withoutLock(lock, [&] {
      burst.letOthersCome();
      if (first.exchange(false)) burst.box.garbage.clearOldest(kBlocks / 2);
    });
  });
  auto const handle = burst.box->registerMemoryPressureCallback(callback);
  burst.begin(2 * kBlock);
  // The served keep what they got until all have ended.
  std::size_t const served = burst.finish();
  EXPECT_EQ(served, kRequests / 2);
  expectFewReclaims(burst, callback);
}

}  // namespace
}  // namespace flex::test
