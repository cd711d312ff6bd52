// SPDX-License-Identifier: Apache-2.0
// What HoldMutexDuringCallback promises beyond the common contract.

#include <gtest/gtest.h>

#include "sandbox.hpp"

namespace flex::test {
namespace {

using Box = Sandbox<HoldMutexDuringCallback>;

/// A request for two blocks inside its callback, which has let go of the mutex and frees all
/// garbage once the gate opens.
struct OpenEvent {
  OpenEvent() {
    box.litter();
    handle = box->registerMemoryPressureCallback(callback);
    request = box.request(2 * kBlock);
    gate.waitForArrivals();
  }
  ~OpenEvent() { gate.open(); }
  OpenEvent(OpenEvent const&) = delete;
  OpenEvent& operator=(OpenEvent const&) = delete;

  Box box;
  Gate gate;
  RecordingCallback callback{[this](Lock& lock) {
    withoutLock(lock, [this] {
      gate.pass();
      box.garbage.clear();
    });
  }};
  CallbackHandle handle;
  std::unique_ptr<Allocation> request;
};

TEST(HoldMutexDuringCallback, EntersTheCallbackWithTheLockOwned) {
  Box box;
  box.litter();
  RecordingCallback const callback([&](Lock& lock) {
    EXPECT_TRUE(lock.owned());
    EXPECT_TRUE(lock.owns_lock());
    Task<bool> other([&] {
      return box->tryAllocateAtOnce(kBlock).has_value() || box->tryStatistics().has_value();
    });
    EXPECT_FALSE(other.get()) << "the mutex is not really held";
    box.garbage.clear();
  });
  auto const handle = box->registerMemoryPressureCallback(callback);
  EXPECT_TRUE(box->allocate(kBlock));
  EXPECT_EQ(callback.runs(), 1U);
}

TEST(HoldMutexDuringCallback, IsClosedToOthersFromFailureToRetry) {
  OpenEvent event;
  event.box.garbage.clearOldest(1);  // fits others, not the requester
  EXPECT_FALSE(event.box->tryAllocate(kBlock));
  EXPECT_FALSE(event.box->tryAllocateAtOnce(kBlock));
  auto other = event.box.sleepingRequest(kBlock, 1);
  EXPECT_EQ(event.box->statistics().free, kBlock) << "nobody took what is free";
  event.gate.open();
  EXPECT_TRUE(event.request->get());
  EXPECT_TRUE(other->get());
  EXPECT_EQ(event.callback.runs(), 1U);
  EXPECT_TRUE(event.box->tryAllocate(kBlock)) << "open again";
}

TEST(HoldMutexDuringCallback, IsOpenToFreesDuringAnEvent) {
  OpenEvent event;
  event.box.garbage.clearOldest(3);
  EXPECT_EQ(event.box->statistics().free, 3 * kBlock);
  event.gate.open();
  EXPECT_TRUE(event.request->get());
  EXPECT_EQ(event.callback.runs(), 1U);
}

// Nobody takes what the event brings back, not even between the callback's return and the retry.
TEST(HoldMutexDuringCallback, RequesterGetsWhatItsEventBroughtBack) {
  OpenEvent event;
  std::vector<std::unique_ptr<Allocation>> others;
  for (std::size_t i = 1; i <= 4; ++i) {
    others.push_back(event.box.sleepingRequest(kCapacity - kBlock, i));
  }
  event.gate.open();
  CompositeAddress const kept = event.request->get();
  EXPECT_TRUE(kept);
  for (auto& other : others) EXPECT_EQ(reasonOf(*other), FailureReason::exhausted);
}

TEST(HoldMutexDuringCallback, NextOneSearchesBeforeItReclaims) {
  OpenEvent event;
  auto next = event.box.sleepingRequest(kBlock, 1);
  event.gate.open();
  EXPECT_TRUE(event.request->get());
  EXPECT_TRUE(next->get());
  EXPECT_EQ(event.callback.runs(), 1U);
  EXPECT_EQ(event.box.pressure().reclaims, 1U);
}

TEST(HoldMutexDuringCallback, NextOneReclaimsItselfIfTheEventBeganBeforeItCame) {
  Box box;
  auto const held = box.hold(kBlocks);
  Gate gate;
  OpenAtEnd const open(gate);
  RecordingCallback const callback([&](Lock& lock) { withoutLock(lock, [&] { gate.pass(); }); });
  auto const handle = box->registerMemoryPressureCallback(callback);
  auto first = box.request(kBlock);
  gate.waitForArrivals();
  auto second = box.sleepingRequest(kBlock, 1);
  gate.open();
  EXPECT_EQ(reasonOf(*first), FailureReason::exhausted);
  EXPECT_EQ(reasonOf(*second), FailureReason::exhausted);
  EXPECT_EQ(callback.runs(), 2U);
}

// Arrival is what counts, not the turn: both came before the third one's reclaim began.
TEST(HoldMutexDuringCallback, OneReclaimCoversAllWhoCameBeforeIt) {
  Box box;
  auto const held = box.hold(kBlocks);
  Gate gate;
  OpenAtEnd const open(gate);
  RecordingCallback const callback([&](Lock& lock) { withoutLock(lock, [&] { gate.pass(); }); });
  auto const handle = box->registerMemoryPressureCallback(callback);
  auto first = box.request(kBlock);
  gate.waitForArrivals();
  std::vector<std::unique_ptr<Allocation>> others;
  for (std::size_t i = 1; i <= 5; ++i) others.push_back(box.sleepingRequest(kBlock, i));
  gate.open();
  EXPECT_EQ(reasonOf(*first), FailureReason::exhausted);
  for (auto& other : others) EXPECT_EQ(reasonOf(*other), FailureReason::exhausted);
  EXPECT_EQ(callback.runs(), 2U);
  PressureStatistics const pressure = box.pressure();
  EXPECT_EQ(pressure.events, 6U);
  EXPECT_EQ(pressure.coalesced, 4U) << "four events ended without a reclaim of their own";
}

TEST(HoldMutexDuringCallback, ServesThoseAtTheGateInTheirOrder) {
  OpenEvent event;
  std::vector<std::unique_ptr<Allocation>> others;
  for (std::size_t i = 1; i <= 3; ++i) others.push_back(event.box.sleepingRequest(kBlock, i));
  event.gate.open();
  std::vector<CompositeAddress> addresses;
  EXPECT_TRUE(event.request->get());
  for (auto& other : others) addresses.push_back(other->get());
  EXPECT_LT(addresses[0].address(), addresses[1].address());
  EXPECT_LT(addresses[1].address(), addresses[2].address());
}

TEST(HoldMutexDuringCallback, DoesNotWaitForTheFreesOfOthers) {
  Box box;
  auto const held = box.hold(kBlocks);
  auto const info =
      outOfMemory([&] { return box->allocate(kBlock, {}, waitAtMost(kLongestWait)); });
  ASSERT_TRUE(info);
  EXPECT_EQ(info->reason, FailureReason::exhausted);
  EXPECT_EQ(box.clock->parks(), 0U);
}

TEST(HoldMutexDuringCallback, OpensTheGateAfterAnException) {
  AllocatorOptions options = oneRegion();
  options.callback_errors = CallbackErrors::propagate;
  Box box(options);
  auto held = box.hold(kBlocks);
  RecordingCallback const callback([](Lock& lock) {
    letGo(lock);
    throw std::domain_error("broken callback");
  });
  auto const handle = box->registerMemoryPressureCallback(callback);
  EXPECT_THROW((void)box->allocate(kBlock), std::domain_error);
  EXPECT_EQ(callback.runs(), 1U);
  held.pop_back();
  EXPECT_TRUE(box->tryAllocate(kBlock));
}

// The wake-up of the next one is given before it sleeps. // cases 70, 71
TEST(HoldMutexDuringCallback, LosesNoWakeUpThatComesBeforeTheSleep) {
  OpenEvent event;
  Gate about_to_sleep;
  OpenAtEnd const open(about_to_sleep);
  event.box.clock->beforeNextPark([&] { about_to_sleep.pass(); });
  auto next = event.box.request(kCapacity, waitAtMost(kLongestWait));
  about_to_sleep.waitForArrivals();
  event.gate.open();
  EXPECT_TRUE(event.request->get());
  about_to_sleep.open();
  EXPECT_TRUE(next->get()) << "no time has passed";
}

}  // namespace
}  // namespace flex::test
