// SPDX-License-Identifier: Apache-2.0
// What ReleaseAndCondvar promises beyond the common contract: reclaiming with the mutex free.

#include <gtest/gtest.h>

#include "sandbox.hpp"

namespace flex::test {
namespace {

using std::chrono::seconds;
using Box = Sandbox<ReleaseAndCondvar>;

TEST(ReleaseAndCondvar, EntersTheCallbackWithoutTheLock) {
  Box box;
  box.litter();
  RecordingCallback const callback([&](Lock& lock) {
    EXPECT_FALSE(lock.owned());
    EXPECT_TRUE(box->tryStatistics().has_value()) << "the mutex is not really free";
    box.garbage.clear();
  });
  auto const handle = box->registerMemoryPressureCallback(callback);
  EXPECT_TRUE(box->allocate(kBlock));
  EXPECT_EQ(callback.runs(), 1U);
  EXPECT_FALSE(callback.calls().front().lock_owned);
}

TEST(ReleaseAndCondvar, LetsOthersAllocateWhatFitsDuringAReclaim) {
  Box box;
  box.litter(kBlocks - 1);
  RecordingCallback const callback([&](Lock&) {
    Task<bool> other([&] { return static_cast<bool>(box->allocate(kBlock)); });
    EXPECT_TRUE(other.get());
    box.garbage.clear();
  });
  auto const handle = box->registerMemoryPressureCallback(callback);
  EXPECT_TRUE(box->allocate(2 * kBlock));
  EXPECT_EQ(callback.runs(), 1U);
}

TEST(ReleaseAndCondvar, OnlyOneReclaimsAtATime) {
  Box box;
  box.litter();
  std::atomic<int> inside{0};
  Gate gate;
  OpenAtEnd const open(gate);
  RecordingCallback const callback([&](Lock&) {
    EXPECT_EQ(++inside, 1);
    gate.pass();
    box.garbage.clear();
    --inside;
  });
  auto const handle = box->registerMemoryPressureCallback(callback);
  auto first = box.request(kBlock);
  gate.waitForArrivals();
  auto second = box.sleepingRequest(kBlock, 1);
  auto third = box.sleepingRequest(kBlock, 2);
  EXPECT_EQ(callback.runs(), 1U);
  gate.open();
  EXPECT_TRUE(first->get());
  EXPECT_TRUE(second->get());
  EXPECT_TRUE(third->get());
  EXPECT_EQ(callback.runs(), 1U);
}

TEST(ReleaseAndCondvar, GetsWhatOthersFreeInTheOrdinaryWay) {
  Box box;
  auto held = box.hold(kBlocks);
  auto waiting = box.sleepingRequest(kBlock, 1);
  held.pop_back();
  EXPECT_TRUE(waiting->get());
  PressureStatistics const pressure = box.pressure();
  EXPECT_EQ(pressure.handoffs, 1U);
  EXPECT_EQ(pressure.waits, 1U);
  EXPECT_EQ(pressure.timeouts, 0U);
  EXPECT_EQ(pressure.outOfMemory(), 0U);
}

TEST(ReleaseAndCondvar, WaitsForOthersUntilItsTimeIsOver) {
  Box box(oneRegion(), singleDomain(kCapacity), {.look_again = kLongestWait});
  auto held = box.hold(kBlocks);
  RecordingCallback const callback;
  auto const handle = box->registerMemoryPressureCallback(callback);
  auto waiting = box.sleepingRequest(kBlock, 1, waitAtMost(seconds(5)));
  box.clock->advance(seconds(5) - Duration(1));
  box.clock->waitForParked(1);
  EXPECT_FALSE(waiting->done());
  box.clock->advance(Duration(1));
  auto const info = outOfMemory([&] { return waiting->get(); });
  ASSERT_TRUE(info);
  EXPECT_EQ(info->reason, FailureReason::exhausted) << "all was done, so it did not time out";
  EXPECT_EQ(info->waited_ms, 5000.0);
  EXPECT_EQ(info->reclaims, 1U);
  EXPECT_EQ(callback.runs(), 1U);
  EXPECT_EQ(box.pressure().timeouts, 1U);
}

// The end of its time and its memory come together: memory wins. // case 67
TEST(ReleaseAndCondvar, TakesWhatItWasHandedEvenIfItsTimeIsOver) {
  Box box;
  auto held = box.hold(kBlocks);
  // By the time it could sleep its time is over, and then memory comes: the mutex is free.
  box.clock->beforeNextPark([&] { box.clock->advance(seconds(1)); });
  box.clock->afterNextPark([&] { held.pop_back(); });
  EXPECT_TRUE(box->allocate(kBlock, {}, waitAtMost(seconds(1))));
}

// cases 70, 71
TEST(ReleaseAndCondvar, LosesNoFreeBetweenItsFailureAndItsSleep) {
  Box box;
  auto held = box.hold(kBlocks);
  box.clock->beforeNextPark([&] { held.pop_back(); });
  auto waiting = box.request(kBlock, waitAtMost(kLongestWait));
  EXPECT_TRUE(waiting->get()) << "no time has passed";
  EXPECT_EQ(box.pressure().waits, 1U) << "it did not come to sleep";
}

TEST(ReleaseAndCondvar, LosesNoFreeOfAnotherThreadBetweenItsFailureAndItsSleep) {
  Box box;
  auto held = box.hold(kBlocks);
  box.clock->beforeNextPark([&] {
    Task<bool> other([&] {
      held.pop_back();
      return true;
    });
    EXPECT_TRUE(other.get());
  });
  auto waiting = box.request(kBlock, waitAtMost(kLongestWait));
  EXPECT_TRUE(waiting->get()) << "no time has passed";
}

// case 94
TEST(ReleaseAndCondvar, AWaiterTakesOverWhenTheReclaimerFails) {
  AllocatorOptions options = oneRegion();
  options.callback_errors = CallbackErrors::propagate;
  Box box(options);
  box.litter();
  Gate gate;
  OpenAtEnd const open(gate);
  bool first = true;
  RecordingCallback const callback([&](Lock&) {
    if (std::exchange(first, false)) {
      gate.pass();
      throw std::domain_error("broken callback");
    }
    box.garbage.clear();
  });
  auto const handle = box->registerMemoryPressureCallback(callback);
  auto failing = box.request(kBlock);
  gate.waitForArrivals();
  auto waiting = box.sleepingRequest(kBlock, 1, waitAtMost(kLongestWait));
  gate.open();
  EXPECT_THROW((void)failing->get(), std::domain_error);
  EXPECT_TRUE(waiting->get());
  EXPECT_EQ(callback.runs(), 2U);
}

// A waiter that came after the reclaim began is not covered by it, so it runs its own.
TEST(ReleaseAndCondvar, WhoCameDuringAReclaimRunsItsOwn) {
  Box box;
  box.litter();
  Gate gate;
  OpenAtEnd const open(gate);
  std::atomic<int> run{0};
  RecordingCallback const callback([&](Lock&) {
    if (++run == 1) {
      gate.pass();
      box.garbage.clearOldest(1);
    } else {
      box.garbage.clear();
    }
  });
  auto const handle = box->registerMemoryPressureCallback(callback);
  auto first = box.request(kBlock);
  gate.waitForArrivals();
  auto second = box.sleepingRequest(kBlock, 1, waitAtMost(kLongestWait));
  gate.open();
  CompositeAddress const kept = first->get();
  EXPECT_TRUE(kept);
  EXPECT_TRUE(second->get()) << "nobody woke it to reclaim";
  EXPECT_EQ(callback.runs(), 2U);
}

// The same if the one who reclaimed stays: nobody leaves the queue then, and nothing is freed.
TEST(ReleaseAndCondvar, WhoCameDuringAReclaimInVainRunsItsOwn) {
  Box box;
  box.litter();
  Gate gate;
  OpenAtEnd const open(gate);
  std::atomic<int> run{0};
  RecordingCallback const callback([&](Lock&) {
    if (++run == 1) {
      gate.pass();
    } else {
      box.garbage.clear();
    }
  });
  auto const handle = box->registerMemoryPressureCallback(callback);
  auto first = box.request(kBlock, waitAtMost(kLongestWait));
  gate.waitForArrivals();
  auto second = box.sleepingRequest(kBlock, 1, waitAtMost(kLongestWait));
  gate.open();
  EXPECT_TRUE(second->get()) << "nobody woke it to reclaim";
  EXPECT_TRUE(first->get());
  EXPECT_EQ(callback.runs(), 2U);
}

}  // namespace
}  // namespace flex::test
