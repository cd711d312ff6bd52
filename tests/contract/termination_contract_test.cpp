// SPDX-License-Identifier: Apache-2.0
// The end of waiting and the end of the allocator. // cases 44, 63

#include <flex/sync/lock_rules.hpp>

#include "pressure_contract.hpp"

namespace flex::test {
namespace {

/// A request inside its callback, one that waits for it, and a gate that lets the callback end. The
/// callback frees nothing.
template <class Strategy>
struct Queue {
  Queue() {
    held = box.hold(kBlocks);
    handle = box->registerMemoryPressureCallback(callback);
    reclaiming = box.request(kBlock);
    gate.waitForArrivals();
    waiting = box.sleepingRequest(kBlock, 1);
  }
  ~Queue() { gate.open(); }
  Queue(Queue const&) = delete;
  Queue& operator=(Queue const&) = delete;

  Sandbox<Strategy> box;
  std::vector<CompositeAddress> held;
  Gate gate;
  RecordingCallback callback{[this](Lock& lock) { withoutLock(lock, [this] { gate.pass(); }); }};
  CallbackHandle handle;
  std::unique_ptr<Allocation> reclaiming;
  std::unique_ptr<Allocation> waiting;
};

TYPED_TEST(PressureContract, DestructionEndsEveryWaitWithItsReason) {
  Queue<TypeParam> queue;
  Task<bool> destroy([&] {
    queue.box.allocator.reset();
    return true;
  });
  EXPECT_EQ(reasonOf(*queue.waiting), FailureReason::closed);
  EXPECT_FALSE(destroy.done()) << "returned while a callback was running";
  queue.gate.open();
  EXPECT_TRUE(destroy.get());
  EXPECT_EQ(reasonOf(*queue.reclaiming), FailureReason::closed);
  EXPECT_EQ(queue.callback.runs(), 1U);
  queue.held.clear();  // addresses may outlive the allocator
}

TYPED_TEST(PressureContract, StoppingEndsEveryWaitWithTheGivenReason) {
  Queue<TypeParam> queue;
  queue.box->stopWaiting(FailureReason::interpreter_finalizing);
  EXPECT_EQ(reasonOf(*queue.waiting), FailureReason::interpreter_finalizing);
  queue.gate.open();
  EXPECT_EQ(reasonOf(*queue.reclaiming), FailureReason::interpreter_finalizing);
  EXPECT_EQ(queue.callback.runs(), 1U);
}

TYPED_TEST(PressureContract, RunsNoCallbackAfterWaitingWasStopped) {
  Sandbox<TypeParam> box;
  auto held = box.hold(kBlocks);
  RecordingCallback const callback;
  auto const handle = box->registerMemoryPressureCallback(callback);
  box->stopWaiting(FailureReason::interpreter_finalizing);
  auto const info = outOfMemory([&] { return box->allocate(kBlock); });
  ASSERT_TRUE(info);
  EXPECT_EQ(info->reason, FailureReason::interpreter_finalizing);
  EXPECT_EQ(callback.runs(), 0U);
  EXPECT_EQ(box.clock->parks(), 0U);
  held.pop_back();
  EXPECT_TRUE(box->allocate(kBlock)) << "what is free is still served";
}

TYPED_TEST(PressureContract, StartsNoFurtherCallbackOfAChainThatWasStopped) {
  Sandbox<TypeParam> box;
  auto const held = box.hold(kBlocks);
  RecordingCallback const second;
  RecordingCallback const first(
      [&](Lock&) { box->stopWaiting(FailureReason::interpreter_finalizing); });
  auto const handle1 = box->registerMemoryPressureCallback(first, 1);
  auto const handle2 = box->registerMemoryPressureCallback(second, 2);
  auto const info = outOfMemory([&] { return box->allocate(kBlock); });
  ASSERT_TRUE(info);
  EXPECT_EQ(info->reason, FailureReason::interpreter_finalizing);
  EXPECT_EQ(first.runs(), 1U);
  EXPECT_EQ(second.runs(), 0U);
}

TYPED_TEST(PressureContract, LetsACallbackDestroyTheAllocator) {
  for (bool const let_go : {false, true}) {
    Sandbox<TypeParam> box;
    auto held = box.hold(kBlocks);
    RecordingCallback const callback([&](Lock& lock) {
      if (let_go) letGo(lock);
      box.allocator.reset();
    });
    auto* const allocator = box.allocator.get();
    auto handle = allocator->registerMemoryPressureCallback(callback);
    auto const info = outOfMemory([&] { return allocator->allocate(kBlock); });
    ASSERT_TRUE(info);
    EXPECT_EQ(info->reason, FailureReason::closed);
    EXPECT_EQ(callback.runs(), 1U);
    held.clear();
  }
}

TYPED_TEST(PressureContract, KeepsRegionsUntilTheLastAddressIsGone) {
  Sandbox<TypeParam> box;
  auto held = box.hold(2);
  box.allocator.reset();
  EXPECT_EQ(box.device->regionsHeld(), 1U);
  held.pop_back();
  EXPECT_EQ(box.device->regionsHeld(), 1U);
  held.pop_back();
  EXPECT_EQ(box.device->regionsHeld(), 0U);
}

}  // namespace
}  // namespace flex::test
