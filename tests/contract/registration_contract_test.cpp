// SPDX-License-Identifier: Apache-2.0
// Registering and unregistering while callbacks run. // case 98

#include "pressure_contract.hpp"

namespace flex::test {
namespace {

template <class Strategy>
void expectExhaustion(Sandbox<Strategy>& box) {
  EXPECT_THROW((void)box->allocate(kCapacity, {}, neverSleep()), OutOfMemoryError);
}

TYPED_TEST(PressureContract, RunsACallbackRegisteredInsideAnotherFromTheNextReclaimOn) {
  Sandbox<TypeParam> box;
  auto const held = box.hold(1);
  RecordingCallback const later;
  CallbackHandle later_handle;
  RecordingCallback const callback([&](Lock&) {
    if (!later_handle) later_handle = box->registerMemoryPressureCallback(later, 5);
  });
  auto const handle = box->registerMemoryPressureCallback(callback);
  expectExhaustion(box);
  EXPECT_EQ(later.runs(), 0U);
  expectExhaustion(box);
  EXPECT_EQ(callback.runs(), 2U);
  EXPECT_EQ(later.runs(), 1U);
}

TYPED_TEST(PressureContract, LetsACallbackUnregisterItself) {
  Sandbox<TypeParam> box;
  auto const held = box.hold(1);
  CallbackHandle handle;
  RecordingCallback const callback([&](Lock&) { handle.reset(); });
  handle = box->registerMemoryPressureCallback(callback);
  expectExhaustion(box);
  EXPECT_FALSE(handle);
  expectExhaustion(box);
  EXPECT_EQ(callback.runs(), 1U);
}

TYPED_TEST(PressureContract, RunsNoCallbackThatAnotherUnregisteredBeforeItsTurn) {
  Sandbox<TypeParam> box;
  auto const held = box.hold(1);
  RecordingCallback const second;
  CallbackHandle second_handle = box->registerMemoryPressureCallback(second, 2);
  RecordingCallback const first([&](Lock&) { second_handle.reset(); });
  auto const first_handle = box->registerMemoryPressureCallback(first, 1);
  expectExhaustion(box);
  EXPECT_EQ(first.runs(), 1U);
  EXPECT_EQ(second.runs(), 0U);
}

TYPED_TEST(PressureContract, UnregistersAllOfAPriorityByNull) {
  Sandbox<TypeParam> box;
  auto const held = box.hold(1);
  RecordingCallback const removed;
  RecordingCallback const kept;
  auto const handle1 = box->registerMemoryPressureCallback(removed, 3);
  auto const handle2 = box->registerMemoryPressureCallback(removed, 3);
  auto const handle3 = box->registerMemoryPressureCallback(kept, 4);
  box->registerMemoryPressureCallback(nullptr, 3);
  expectExhaustion(box);
  EXPECT_EQ(removed.runs(), 0U);
  EXPECT_EQ(kept.runs(), 1U);
  std::function<void(Lock&)> const none;
  EXPECT_FALSE(box->registerMemoryPressureCallback(none, 4)) << "an empty function is none, too";
  expectExhaustion(box);
  EXPECT_EQ(kept.runs(), 1U);
}

TYPED_TEST(PressureContract, UnregistersWhenTheHandleIsReplacedOrDies) {
  Sandbox<TypeParam> box;
  auto const held = box.hold(1);
  RecordingCallback const first;
  RecordingCallback const second;
  {
    CallbackHandle handle = box->registerMemoryPressureCallback(first);
    handle = box->registerMemoryPressureCallback(second);
    expectExhaustion(box);
    handle = nullptr;
    EXPECT_FALSE(handle);
    handle = box->registerMemoryPressureCallback(second);
  }
  expectExhaustion(box);
  EXPECT_EQ(first.runs(), 0U);
  EXPECT_EQ(second.runs(), 1U);
}

TYPED_TEST(PressureContract, DestroysWhatAnUnregisteredCallbackHeld) {
  Sandbox<TypeParam> box;
  auto const token = std::make_shared<int>(0);
  CallbackHandle handle = box->registerMemoryPressureCallback([token](Lock&) {});
  EXPECT_GT(token.use_count(), 1);
  handle.reset();
  EXPECT_EQ(token.use_count(), 1);
}

TYPED_TEST(PressureContract, LetsAHandleOutliveTheAllocator) {
  auto const token = std::make_shared<int>(0);
  CallbackHandle handle;
  {
    Sandbox<TypeParam> box;
    handle = box->registerMemoryPressureCallback([token](Lock&) {});
  }
  EXPECT_TRUE(handle);
  handle.reset();
  EXPECT_EQ(token.use_count(), 1);
}

/// A request that is inside its callback until the gate opens.
template <class Strategy>
struct RunningCallback {
  RunningCallback() {
    box.litter();
    callback = RecordingCallback([this](Lock& lock) {
      withoutLock(lock, [this] {
        gate.pass();
        ended = true;
      });
    });
    handle = box->registerMemoryPressureCallback(callback, 1);
    request = box.request(kBlock, neverSleep());
  }

  Sandbox<Strategy> box;
  Gate gate;
  std::atomic<bool> ended{false};
  RecordingCallback callback;
  CallbackHandle handle;
  std::unique_ptr<Allocation> request;
};

TYPED_TEST(PressureContract, UnregisteringFromAnotherThreadWaitsForTheRun) {
  RunningCallback<TypeParam> running;
  OpenAtEnd const open(running.gate);
  running.gate.waitForArrivals();
  Task<bool> unregister([&] {
    running.handle.reset();
    return running.ended.load();
  });
  for (int i = 0; i < 2000 && !unregister.done(); ++i) boost::this_thread::yield();
  running.gate.open();
  EXPECT_TRUE(unregister.get()) << "returned while the callback was running";
  EXPECT_EQ(reasonOf(*running.request), FailureReason::exhausted);
  EXPECT_EQ(running.callback.runs(), 1U);
}

// Whoever unregistered it first: who lets go of the handle may free what the callback uses.
TYPED_TEST(PressureContract, LettingGoOfTheHandleWaitsThoughAnotherThreadUnregistered) {
  RunningCallback<TypeParam> running;
  OpenAtEnd const open(running.gate);
  running.gate.waitForArrivals();
  Task<bool> first([&] {
    running.box->registerMemoryPressureCallback(nullptr, 1);
    return true;
  });
  for (int i = 0; i < 2000; ++i) boost::this_thread::yield();  // most likely it is unlisted now
  Task<bool> second([&] {
    running.handle.reset();
    return running.ended.load();
  });
  for (int i = 0; i < 2000 && !second.done(); ++i) boost::this_thread::yield();
  running.gate.open();
  EXPECT_TRUE(second.get()) << "returned while the callback was running";
  EXPECT_TRUE(first.get());
  EXPECT_EQ(reasonOf(*running.request), FailureReason::exhausted);
}

TYPED_TEST(PressureContract, UnregisteringWaitsForTheRunOfACallbackThatUnregisteredItself) {
  Sandbox<TypeParam> box;
  box.litter();
  Gate gate;
  OpenAtEnd const open(gate);
  std::atomic<bool> ended{false};
  RecordingCallback const callback([&](Lock& lock) {
    withoutLock(lock, [&] {
      box->registerMemoryPressureCallback(nullptr, 1);  // itself
      gate.pass();
      ended = true;
    });
  });
  CallbackHandle handle = box->registerMemoryPressureCallback(callback, 1);
  auto request = box.request(kBlock, neverSleep());
  gate.waitForArrivals();
  Task<bool> unregister([&] {
    handle.reset();
    return ended.load();
  });
  for (int i = 0; i < 2000 && !unregister.done(); ++i) boost::this_thread::yield();
  gate.open();
  EXPECT_TRUE(unregister.get()) << "returned while the callback was running";
  EXPECT_EQ(reasonOf(*request), FailureReason::exhausted);
  EXPECT_EQ(callback.runs(), 1U);
}

}  // namespace
}  // namespace flex::test
