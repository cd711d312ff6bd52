// SPDX-License-Identifier: Apache-2.0
// Bounds, interruption and refusal of waits. // cases 67, 77

#include "pressure_contract.hpp"

namespace flex::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

/// A request inside its callback, which opens the gate to go on: what comes later has to wait.
template <class Strategy>
struct Occupied {
  Occupied() {
    box.litter();
    handle = box->registerMemoryPressureCallback(callback);
    request = box.request(2 * kBlock);
    gate.waitForArrivals();
  }
  ~Occupied() { gate.open(); }
  Occupied(Occupied const&) = delete;
  Occupied& operator=(Occupied const&) = delete;

  Sandbox<Strategy> box;
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

TYPED_TEST(PressureContract, ReclaimsButNeverSleepsWithoutTimeToWait) {
  Sandbox<TypeParam> box;
  box.litter();
  RecordingCallback const callback;
  auto const handle = box->registerMemoryPressureCallback(callback);
  auto const info = outOfMemory([&] { return box->allocate(kBlock, {}, neverSleep()); });
  ASSERT_TRUE(info);
  EXPECT_EQ(info->reason, FailureReason::exhausted);
  EXPECT_EQ(info->waited_ms, 0.0);
  EXPECT_EQ(callback.runs(), 1U);
  EXPECT_EQ(box.clock->parks(), 0U);
  EXPECT_EQ(box.pressure().waits, 0U);
}

TYPED_TEST(PressureContract, TakesTheWaitOfTheAllocatorWhereTheRequestNamesNone) {
  AllocatorOptions options = oneRegion();
  options.max_wait = Duration::zero();
  Sandbox<TypeParam> box(options);
  auto const held = box.hold(kBlocks);
  EXPECT_THROW((void)box->allocate(kBlock), OutOfMemoryError);
  EXPECT_EQ(box.clock->parks(), 0U);
}

TYPED_TEST(PressureContract, TimesOutAfterASingleTickWhileAnotherReclaims) {
  Occupied<TypeParam> occupied;
  auto waiting = occupied.box.sleepingRequest(kBlock, 1, waitAtMost(Duration(1)));
  EXPECT_FALSE(waiting->done());
  occupied.box.clock->advance(Duration(1));
  auto const info = outOfMemory([&] { return waiting->get(); });
  ASSERT_TRUE(info);
  EXPECT_EQ(info->reason, FailureReason::timed_out);
  EXPECT_GT(info->waited_ms, 0.0);
  EXPECT_FALSE(occupied.request->done());
  EXPECT_EQ(occupied.box.pressure().timeouts, 1U);
  occupied.gate.open();
  EXPECT_TRUE(occupied.request->get());
}

TYPED_TEST(PressureContract, TimesOutAtOnceWithoutTimeToWaitWhileAnotherReclaims) {
  Occupied<TypeParam> occupied;
  auto const info = outOfMemory([&] { return occupied.box->allocate(kBlock, {}, neverSleep()); });
  ASSERT_TRUE(info);
  EXPECT_EQ(info->reason, FailureReason::timed_out);
  EXPECT_EQ(occupied.box.clock->parks(), 0U);
}

TYPED_TEST(PressureContract, WaitsAsLongAsCanBeAskedFor) {
  Occupied<TypeParam> occupied;
  auto waiting = occupied.box.sleepingRequest(kBlock, 1, waitAtMost(kLongestWait));
  occupied.box.clock->advance(kLongestWait - Duration(1));
  EXPECT_FALSE(waiting->done());
  occupied.gate.open();
  EXPECT_TRUE(waiting->get());
  EXPECT_TRUE(occupied.request->get());
}

TYPED_TEST(PressureContract, RefusesAWaitThatIsOutOfRange) {
  Sandbox<TypeParam> box;
  auto const held = box.hold(kBlocks);
  box->stopWaiting(FailureReason::must_not_wait);  // or an accepted one would keep us for days
  EXPECT_THROW((void)box->allocate(kBlock, {}, waitAtMost(kLongestWait + Duration(1))),
               std::invalid_argument);
  EXPECT_THROW((void)box->allocate(kBlock, {}, waitAtMost(Duration(-1))), std::invalid_argument);
}

TYPED_TEST(PressureContract, LeavesNoTraceOfAnInterruptedWaiter) {
  Occupied<TypeParam> occupied;
  auto first = occupied.box.sleepingRequest(kBlock, 1);
  auto second = occupied.box.sleepingRequest(kBlock, 2);
  first->interrupt();
  EXPECT_TRUE(first->wasInterrupted());
  EXPECT_FALSE(second->done());
  occupied.gate.open();
  EXPECT_TRUE(second->get());
  EXPECT_TRUE(occupied.request->get());
}

// case 94
TYPED_TEST(PressureContract, ReplacesAnInterruptedReclaimer) {
  Sandbox<TypeParam> box;
  box.litter();
  Gate gate;
  OpenAtEnd const open(gate);
  bool first = true;
  RecordingCallback const callback([&](Lock& lock) {
    letGo(lock);
    if (std::exchange(first, false)) gate.pass();
    box.garbage.clear();
  });
  auto const handle = box->registerMemoryPressureCallback(callback);
  auto reclaiming = box.request(kBlock);
  gate.waitForArrivals();
  auto waiting = box.sleepingRequest(kBlock, 1);
  reclaiming->interrupt();
  EXPECT_TRUE(reclaiming->wasInterrupted());
  EXPECT_TRUE(waiting->get());
  EXPECT_EQ(callback.runs(), 2U);
}

TYPED_TEST(PressureContract, GivesBackWhatAnInterruptedRequestWasHanded) {
  Occupied<TypeParam> occupied;
  Gate awake;
  OpenAtEnd const open(awake);
  occupied.box.clock->afterNextPark([&] {
    boost::this_thread::disable_interruption const uninterrupted;
    awake.pass();
  });
  auto waiting = occupied.box.sleepingRequest(kBlock, 1);
  occupied.gate.open();
  EXPECT_TRUE(occupied.request->get());
  awake.waitForArrivals();  // it was woken, has memory perhaps, and does not know yet
  waiting->interrupt();
  awake.open();
  // Whether the interruption finds it is open; that nothing is lost is what the sandbox checks.
  waiting->join();
}

TYPED_TEST(PressureContract, LetsWhoMustNotWaitPassAndFailAtOnce) {
  Occupied<TypeParam> occupied;
  auto info = outOfMemory([&] { return occupied.box->allocate(kBlock, {}, mustNotWait()); });
  ASSERT_TRUE(info);
  EXPECT_EQ(info->reason, FailureReason::must_not_wait);
  EXPECT_EQ(info->reclaims, 0U);
  info = outOfMemory([&] {
    return occupied.box->allocate(
        kBlock, {}, {.may_wait = false, .no_wait_reason = FailureReason::inside_finalizer});
  });
  ASSERT_TRUE(info);
  EXPECT_EQ(info->reason, FailureReason::inside_finalizer);
  EXPECT_EQ(occupied.callback.runs(), 1U);
  EXPECT_EQ(occupied.box.clock->parks(), 0U);
}

TYPED_TEST(PressureContract, ServesWhoMustNotWaitWithWhatIsFree) {
  Occupied<TypeParam> occupied;
  occupied.box.garbage.clearOldest(1);  // less than the reclaiming request needs
  EXPECT_TRUE(occupied.box->allocate(kBlock, {}, mustNotWait()));
  EXPECT_EQ(occupied.callback.runs(), 1U);
}

TYPED_TEST(PressureContract, PollsWhileItSleepsAndEndsWithWhatThePollThrows) {
  Occupied<TypeParam> occupied;
  static std::atomic<int> polls;
  polls = 0;
  RequestOptions options;
  options.max_wait = seconds(60);
  options.poll = [](void* context) {
    EXPECT_EQ(context, &polls);
    if (++polls == 3) throw std::runtime_error("stop");
  };
  options.poll_context = &polls;
  auto waiting = occupied.box.sleepingRequest(kBlock, 1, options);
  for (std::size_t sleeps = 1; sleeps <= 3; ++sleeps) {
    waitUntil([&] { return occupied.box.clock->parks() >= sleeps; }, "it sleeps until a poll");
    occupied.box.clock->advance(milliseconds(50));
  }
  EXPECT_THROW((void)waiting->get(), std::runtime_error);
  EXPECT_EQ(polls, 3);
  occupied.gate.open();
  EXPECT_TRUE(occupied.request->get());
}

}  // namespace
}  // namespace flex::test
