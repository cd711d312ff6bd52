// SPDX-License-Identifier: Apache-2.0
// When callbacks run, in which order, and what they are told.

#include <flex/simulated_device.hpp>
#include <spyre/spyre_allocator.hpp>

#include "exposing.hpp"
#include "pressure_contract.hpp"

namespace flex::test {
namespace {

TYPED_TEST(PressureContract, RunsNoCallbackWhileMemoryIsFree) {
  Sandbox<TypeParam> box;
  RecordingCallback const callback;
  auto const handle = box->registerMemoryPressureCallback(callback);
  auto const held = box.hold(kBlocks);
  EXPECT_EQ(callback.runs(), 0U);
  EXPECT_EQ(box.pressure().events, 0U);
}

// case 39
TYPED_TEST(PressureContract, RunsNoCallbackWhileRegionsCanBeAdded) {
  Sandbox<TypeParam> box(onDemand(4, kCapacity / 4));
  RecordingCallback const callback;
  auto const handle = box->registerMemoryPressureCallback(callback);
  auto const held = box.hold(kBlocks);
  EXPECT_EQ(box->statistics().regions.current, 4);
  EXPECT_EQ(box.pressure().growths, 4U);
  EXPECT_EQ(callback.runs(), 0U);
  EXPECT_THROW((void)box->allocate(kBlock, {}, neverSleep()), OutOfMemoryError);
  EXPECT_EQ(callback.runs(), 1U) << "pressure was never reached";
}

TYPED_TEST(PressureContract, RunsNoCallbackWhilePendingFreesSuffice) {
  using Strategy = Exposing<TypeParam>;
  sync::Mutex* mutex = nullptr;
  typename Strategy::Options options;
  options.mutex = &mutex;
  Sandbox<Strategy> box(oneRegion(), singleDomain(kCapacity), options);
  RecordingCallback const callback;
  auto const handle = box->registerMemoryPressureCallback(callback);
  auto held = box.hold(kBlocks);
  {
    Lock const lock(*mutex);
    held.pop_back();  // cannot get the mutex: leaves the block to us
  }
  EXPECT_EQ(box.pressure().deferred_frees, 1U);
  EXPECT_TRUE(box->allocate(kBlock, {}, neverSleep()));
  EXPECT_EQ(callback.runs(), 0U);
}

TYPED_TEST(PressureContract, RunsCallbacksByPriorityThenRegistration) {
  Sandbox<TypeParam> box;
  std::vector<int> order;
  auto const noting = [&order](int name) {
    return [&order, name](Lock&) { order.push_back(name); };
  };
  auto const handles = {
      std::make_shared<CallbackHandle>(box->registerMemoryPressureCallback(noting(3), 7)),
      std::make_shared<CallbackHandle>(box->registerMemoryPressureCallback(noting(1), -5)),
      std::make_shared<CallbackHandle>(box->registerMemoryPressureCallback(noting(4), 7)),
      std::make_shared<CallbackHandle>(box->registerMemoryPressureCallback(noting(2), 0))};
  ASSERT_EQ(handles.size(), 4U);
  auto const held = box.hold(kBlocks);
  EXPECT_THROW((void)box->allocate(kBlock, {}, neverSleep()), OutOfMemoryError);
  EXPECT_EQ(order, (std::vector<int>{1, 2, 3, 4}));
}

TYPED_TEST(PressureContract, RunsCallbacksOnTheRequestingThread) {
  Sandbox<TypeParam> box;
  box.litter();
  RecordingCallback const callback = box.collector();
  auto const handle = box->registerMemoryPressureCallback(callback);
  auto request = box.request(kBlock);
  auto const thread = request->id();
  EXPECT_TRUE(request->get());
  ASSERT_EQ(callback.runs(), 1U);
  EXPECT_EQ(callback.calls().front().thread, thread);
}

// case 66
TYPED_TEST(PressureContract, SearchesAfterEveryCallbackAndStopsWhenServed) {
  Sandbox<TypeParam> box;
  box.litter();
  RecordingCallback const first;
  RecordingCallback const second(
      [&](Lock& lock) { withoutLock(lock, [&] { box.garbage.clearOldest(1); }); });
  RecordingCallback const third = box.collector();
  auto const handle1 = box->registerMemoryPressureCallback(first, 1);
  auto const handle2 = box->registerMemoryPressureCallback(second, 2);
  auto const handle3 = box->registerMemoryPressureCallback(third, 3);
  EXPECT_TRUE(box->allocate(kBlock, {}, neverSleep()));
  EXPECT_EQ(first.runs(), 1U);
  EXPECT_EQ(second.runs(), 1U);
  EXPECT_EQ(third.runs(), 0U);
  EXPECT_EQ(box.pressure().bytes_reclaimed, kBlock);
}

// cases 39, 96
TYPED_TEST(PressureContract, TellsCallbacksWhatIsKnown) {
  Sandbox<TypeParam> box;
  box.litter(12);
  auto const held = box.hold(2);
  RecordingCallback const first(
      [&](Lock& lock) { withoutLock(lock, [&] { box.garbage.clearOldest(1); }); });
  RecordingCallback const second;
  auto const handle1 = box->registerMemoryPressureCallback(first, 1);
  auto const handle2 = box->registerMemoryPressureCallback(second, 2);
  auto const info = outOfMemory(
      [&] { return box->allocateInDomain(5 * kBlock - 7, 0, MemoryType::tensor, neverSleep()); });
  ASSERT_TRUE(info);
  ASSERT_EQ(first.runs(), 1U);
  ASSERT_EQ(second.runs(), 1U);
  PressureEvent const before = first.calls().front().event;
  EXPECT_EQ(before.requested, 5 * kBlock - 7);
  EXPECT_EQ(before.free, 2 * kBlock);
  EXPECT_EQ(before.largest_free, 2 * kBlock);
  EXPECT_EQ(before.total, kCapacity);
  EXPECT_EQ(before.domain, std::optional<DomainId>(0));
  EXPECT_EQ(before.memory_type, MemoryType::tensor);
  EXPECT_EQ(before.generation, 1U);
  PressureEvent const after = second.calls().front().event;
  EXPECT_EQ(after.free, 3 * kBlock);
  EXPECT_GE(before.attempt, 1U);
  EXPECT_GT(after.attempt, before.attempt);
  EXPECT_EQ(after.generation, 1U);
  EXPECT_EQ(info->requested, 5 * kBlock - 7);
  EXPECT_EQ(info->free, 3 * kBlock);
  EXPECT_EQ(info->reclaims, 1U);
  EXPECT_EQ(info->bytes_reclaimed, kBlock);
}

// cases 83, 85
TYPED_TEST(PressureContract, ReclaimsOnceWhenFragmentedAndSaysSo) {
  Sandbox<TypeParam> box;
  auto held = box.hold(kBlocks);
  for (std::size_t i = 0; i < held.size(); i += 2) held[i].reset();
  RecordingCallback const callback;
  auto const handle = box->registerMemoryPressureCallback(callback);
  auto const info = outOfMemory([&] { return box->allocate(4 * kBlock, {}, neverSleep()); });
  ASSERT_TRUE(info);
  EXPECT_EQ(info->reason, FailureReason::fragmented);
  EXPECT_EQ(info->free, kCapacity / 2);
  EXPECT_EQ(info->largest_free, kBlock);
  EXPECT_EQ(callback.runs(), 1U);
}

TYPED_TEST(PressureContract, RunsNoCallbackForWhatNoRegionCanHold) {
  Sandbox<TypeParam> box;
  RecordingCallback const callback;
  auto const handle = box->registerMemoryPressureCallback(callback);
  auto const info = outOfMemory([&] { return box->allocate(kCapacity + 1); });
  ASSERT_TRUE(info);
  EXPECT_EQ(info->reason, FailureReason::larger_than_any_region);
  EXPECT_EQ(callback.runs(), 0U);
  EXPECT_EQ(box.pressure().failuresFor(FailureReason::larger_than_any_region), 1U);
}

// case 79
TYPED_TEST(PressureContract, ReclaimsAtALimitAsItDoesAtTheCapacity) {
  auto const device = std::make_shared<SimulatedDevice>(
      SimulatedDeviceOptions{.topology = singleDomain(4 * kMiB), .budget_bytes = 2 * kMiB});
  FlexAllocator<TypeParam> allocator(device, onDemand(4, 1 * kMiB));
  Garbage garbage;
  garbage.add(allocator.allocate(1 * kMiB));
  garbage.add(allocator.allocate(1 * kMiB));
  RecordingCallback const callback(
      [&](Lock& lock) { withoutLock(lock, [&] { garbage.clear(); }); });
  auto const handle = allocator.registerMemoryPressureCallback(callback);
  EXPECT_TRUE(allocator.allocate(1 * kMiB, {}, neverSleep()));
  EXPECT_EQ(callback.runs(), 1U);
}

// case 78
TYPED_TEST(PressureContract, ReclaimsOnEveryAllocatingCall) {
  auto const device = std::make_shared<ScriptedDevice>(kCapacity);
  spyre::SpyreAllocator<TypeParam> bridge(device, oneRegion());
  Garbage garbage;
  RecordingCallback const callback(
      [&](Lock& lock) { withoutLock(lock, [&] { garbage.clear(); }); });
  auto const handle = bridge.registerMemoryPressureCallback(callback);
  auto const fill = [&] { garbage.add(bridge.flexAllocator().allocate(kCapacity)); };
  fill();
  EXPECT_TRUE(bridge.allocate(kBlock, {}, neverSleep()));
  EXPECT_EQ(callback.runs(), 1U);
  fill();
  EXPECT_TRUE(bridge.flexAllocator().allocate(kBlock, {}, neverSleep()));
  EXPECT_EQ(callback.runs(), 2U);
  fill();
  EXPECT_TRUE(
      bridge.flexAllocator().allocateInDomain(kBlock, 0, MemoryType::program, neverSleep()));
  EXPECT_EQ(callback.runs(), 3U);
  fill();
  EXPECT_FALSE(bridge.tryAllocate(kBlock));
  EXPECT_FALSE(bridge.tryAllocateAtOnce(kBlock));
  EXPECT_EQ(callback.runs(), 3U) << "attempts run no callbacks";
}

// case 41
TYPED_TEST(PressureContract, LeaksNothingOverManyFailures) {
  Sandbox<TypeParam> box;
  auto const held = box.hold(kBlocks);
  std::uint64_t const metadata = box->statistics().metadata_bytes;
  RecordingCallback const callback;
  auto const handle = box->registerMemoryPressureCallback(callback);
  constexpr std::uint64_t kFailures = 10'000;
  for (std::uint64_t i = 0; i < kFailures; ++i) {
    ASSERT_THROW((void)box->allocate(kBlock, {}, neverSleep()), OutOfMemoryError);
  }
  EXPECT_EQ(callback.runs(), kFailures);
  EXPECT_EQ(box.pressure().outOfMemory(), kFailures);
  EXPECT_EQ(box->statistics().metadata_bytes, metadata);
  EXPECT_EQ(box->statistics().allocations.allocated, static_cast<std::int64_t>(kBlocks));
}

}  // namespace
}  // namespace flex::test
