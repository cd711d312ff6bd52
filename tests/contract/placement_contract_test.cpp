// SPDX-License-Identifier: Apache-2.0
// Pressure with several domains and with regions that come and go. // case 73

#include <stdexcept>

#include "pressure_contract.hpp"

namespace flex::test {
namespace {

DeviceTopology twoDomains() { return {{kCapacity, kCapacity}, {}}; }

AllocationDirective in(DomainId domain) { return {.domain_ids = {domain}}; }
AllocationDirective interleaved() { return {.policy = PlacementPolicy::interleave}; }

TYPED_TEST(PressureContract, ReclaimsForTheDomainThatIsWanted) {
  Sandbox<TypeParam> box(oneRegion(), twoDomains());
  for (std::uint64_t i = 0; i < kBlocks; ++i) box.garbage.add(box->allocate(kBlock, in(0)));
  RecordingCallback const callback = box.collector();
  auto const handle = box->registerMemoryPressureCallback(callback);
  EXPECT_TRUE(box->allocate(kCapacity, in(1), neverSleep()));
  EXPECT_EQ(callback.runs(), 0U);
  EXPECT_TRUE(box->allocate(kBlock, in(0), neverSleep()));
  ASSERT_EQ(callback.runs(), 1U);
  EXPECT_EQ(callback.calls().front().event.domain, std::optional<DomainId>(0));
  EXPECT_EQ(callback.calls().front().event.total, kCapacity);
}

TYPED_TEST(PressureContract, GoesOnWithTheChainWhileTheWrongDomainIsFreed) {
  Sandbox<TypeParam> box(oneRegion(), twoDomains());
  CompositeAddress zero = box->allocate(kCapacity, in(0));
  CompositeAddress one = box->allocate(kCapacity, in(1));
  RecordingCallback const first([&](Lock& lock) { withoutLock(lock, [&] { one.reset(); }); });
  RecordingCallback const second([&](Lock& lock) { withoutLock(lock, [&] { zero.reset(); }); });
  auto const handle1 = box->registerMemoryPressureCallback(first, 1);
  auto const handle2 = box->registerMemoryPressureCallback(second, 2);
  EXPECT_TRUE(box->allocate(kBlock, in(0), neverSleep()));
  EXPECT_EQ(first.runs(), 1U);
  EXPECT_EQ(second.runs(), 1U);
}

TYPED_TEST(PressureContract, InterleavesAllOrNothingUnderPressure) {
  Sandbox<TypeParam> box(oneRegion(), twoDomains());
  CompositeAddress full = box->allocate(kCapacity, in(1));
  std::uint64_t free_in_callback = 0;
  RecordingCallback const look([&](Lock&, PressureEvent const& event) {
    free_in_callback = event.free;
    return ReclaimResult{};
  });
  RecordingCallback const callback([&](Lock& lock) { withoutLock(lock, [&] { full.reset(); }); });
  auto const handle1 = box->registerMemoryPressureCallback(look, 1);
  auto const handle2 = box->registerMemoryPressureCallback(callback, 2);
  CompositeAddress const both = box->allocate(4 * kBlock, interleaved(), neverSleep());
  EXPECT_EQ(free_in_callback, kCapacity) << "half of the request was taken";
  EXPECT_EQ(callback.runs(), 1U);
  ASSERT_EQ(both.chunks().size(), 2U);
  EXPECT_EQ(both.chunks()[0].domain, 0U);
  EXPECT_EQ(both.chunks()[1].domain, 1U);
  EXPECT_EQ(both.chunks()[0].nbytes, 2 * kBlock);
}

TYPED_TEST(PressureContract, FailedInterleaveTakesNothing) {
  Sandbox<TypeParam> box(oneRegion(), twoDomains());
  CompositeAddress const full = box->allocate(kCapacity, in(1));
  EXPECT_THROW((void)box->allocate(4 * kBlock, interleaved(), neverSleep()), OutOfMemoryError);
  EXPECT_EQ(box->statistics().free, kCapacity);
  box->checkInvariants();
}

// A region on its way is no exhaustion: nobody reclaims while another thread asks the device.
TYPED_TEST(PressureContract, WaitsForARegionThatIsOnItsWayInsteadOfReclaiming) {
  Sandbox<TypeParam> box(onDemand(2, kCapacity / 2));
  box.litter(kBlocks / 2);
  RecordingCallback const callback = box.collector();
  auto const handle = box->registerMemoryPressureCallback(callback);
  Gate gate;
  OpenAtEnd const open(gate);
  box.device->follow([&](std::uint64_t) {
    gate.pass();
    return DeviceAnswer::give;
  });
  auto growing = box.request(kBlock);
  gate.waitForArrivals();
  auto other = box.sleepingRequest(kBlock, 1);
  EXPECT_EQ(reasonOf(*box.request(kBlock, mustNotWait())), FailureReason::must_not_wait);
  gate.open();
  EXPECT_TRUE(growing->get());
  EXPECT_TRUE(other->get());
  EXPECT_EQ(callback.runs(), 0U);
  EXPECT_EQ(box.pressure().growths, 2U);
}

// Nor while one that was trimmed is on its way back to the device, which then can give it again.
TYPED_TEST(PressureContract, WaitsForRegionsThatAreOnTheirWayBackInsteadOfFailing) {
  Gate gate;  // outlives the box, whose end gives regions back too
  Sandbox<TypeParam> box(onDemand(2, kCapacity / 2));
  { auto const held = box.hold(kBlocks); }
  RecordingCallback const callback;
  auto const handle = box->registerMemoryPressureCallback(callback);
  OpenAtEnd const open(gate);
  box.device->beforeRelease([&] { gate.pass(); });
  Task<std::uint64_t> trim([&] { return box->trim(); });
  gate.waitForArrivals();
  auto request = box.request(kBlock);
  waitUntil([&] { return request->done() || box.clock->parked() == 1 || callback.runs() > 0; },
            "the request sleeps, or does what it should not");
  gate.open();
  EXPECT_FALSE(reasonOf(*request).has_value()) << "all memory is free";
  EXPECT_EQ(callback.runs(), 0U);
  EXPECT_EQ(trim.get(), kCapacity);
}

TYPED_TEST(PressureContract, ReclaimsWhenTheDeviceRefuses) {
  Sandbox<TypeParam> box(onDemand(2, kCapacity / 2));
  box.litter(kBlocks / 2);
  RecordingCallback const callback = box.collector();
  auto const handle = box->registerMemoryPressureCallback(callback);
  box.device->follow([](std::uint64_t) { return DeviceAnswer::refuse; });
  EXPECT_TRUE(box->allocate(kBlock, {}, neverSleep()));
  EXPECT_EQ(callback.runs(), 1U);
  EXPECT_GE(box.device->calls(), 2U);
}

// case 10
TYPED_TEST(PressureContract, DeviceMayUseTheAllocatorUnderItsOwnLock) {
  Sandbox<TypeParam> box(onDemand(2, kCapacity / 2));
  boost::mutex lock_of_the_device;
  std::atomic<int> calls{0};
  auto const use = [&] {
    boost::unique_lock<boost::mutex> const lock(lock_of_the_device);
    ++calls;
    (void)box->statistics();
    box.garbage.clear();
  };
  std::vector<CompositeAddress> held = box.hold(1);
  box.device->follow([&](std::uint64_t) {
    use();
    return DeviceAnswer::give;
  });
  box.device->beforeRelease(use);
  Task<bool> other([&] {  // enters the device's lock while the allocator may be at work
    for (int i = 0; i < 100; ++i) use();
    return true;
  });
  box.garbage.add(box->allocate(kBlock));
  held.push_back(box->allocate(kCapacity / 2));
  held.clear();
  EXPECT_EQ(box->trim(), kCapacity);
  EXPECT_TRUE(other.get());
  EXPECT_GE(calls, 103);
  box.device->beforeRelease(nullptr);
}

// A device that failed once is asked again. // case 89
TYPED_TEST(PressureContract, StrongGuaranteeWhenTheDeviceThrowsAtCallN) {
  for (std::uint64_t n = 1; n <= 4; ++n) {
    SCOPED_TRACE(n);
    Sandbox<TypeParam> box(onDemand(4, kCapacity / 4));
    box.device->follow([n](std::uint64_t call) -> DeviceAnswer {
      if (call == n) throw DeviceError("broken device");
      return DeviceAnswer::give;
    });
    auto const held = box.hold((n - 1) * kBlocks / 4);
    Statistics const before = box->statistics();
    EXPECT_THROW((void)box->allocate(kBlock), DeviceError);
    Statistics const after = box->statistics();
    EXPECT_EQ(after.free, before.free);
    EXPECT_EQ(after.allocations.allocated, before.allocations.allocated);
    EXPECT_EQ(after.regions.current, before.regions.current);
    box->checkInvariants();
    EXPECT_TRUE(box->allocate(kBlock));
  }
}

TYPED_TEST(PressureContract, StrongGuaranteeWhenTheDeviceRefusesCallN) {
  for (std::uint64_t n = 1; n <= 4; ++n) {
    SCOPED_TRACE(n);
    Sandbox<TypeParam> box(onDemand(4, kCapacity / 4));
    auto const held = box.hold((n - 1) * kBlocks / 4);
    box.device->follow([](std::uint64_t) { return DeviceAnswer::refuse; });
    EXPECT_THROW((void)box->allocate(kBlock, {}, neverSleep()), OutOfMemoryError);
    EXPECT_GE(box.device->calls(), n);
    EXPECT_EQ(box->statistics().regions.current, static_cast<std::int64_t>(n - 1));
    box->checkInvariants();
    box.device->follow(nullptr);
    EXPECT_TRUE(box->allocate(kBlock));
  }
}

// case 95
TYPED_TEST(PressureContract, ConstructionGivesEveryRegionBackWhenTheDeviceFailsAtCallN) {
  for (std::uint64_t n = 1; n <= 7; ++n) {
    SCOPED_TRACE(n);
    auto const device = std::make_shared<ScriptedDevice>(kCapacity);
    device->follow(
        [n](std::uint64_t call) { return call == n ? DeviceAnswer::refuse : DeviceAnswer::give; });
    EXPECT_THROW(FlexAllocator<TypeParam>{device}, DeviceError);
    EXPECT_EQ(device->calls(), n);
    EXPECT_EQ(device->regionsHeld(), 0U);
    device->follow([n](std::uint64_t call) -> DeviceAnswer {
      if (call == 2 * n) throw std::runtime_error("broken device");
      return DeviceAnswer::give;
    });
    EXPECT_THROW(FlexAllocator<TypeParam>{device}, std::runtime_error);
    EXPECT_EQ(device->regionsHeld(), 0U);
  }
}

TYPED_TEST(PressureContract, TakesTrimmedRegionsBackBeforeItReclaims) {
  Sandbox<TypeParam> box;
  RecordingCallback const callback;
  auto const handle = box->registerMemoryPressureCallback(callback);
  EXPECT_EQ(box->trim(), kCapacity);
  EXPECT_EQ(box.device->regionsHeld(), 0U);
  EXPECT_TRUE(box->allocate(kCapacity));
  EXPECT_EQ(callback.runs(), 0U);
  EXPECT_EQ(box.pressure().growths, 1U);
}

// case 84
TYPED_TEST(PressureContract, GivesFreeRegionsBackToGetALargerOne) {
  Sandbox<TypeParam> box(onDemand(4, kCapacity / 2));
  { auto const held = box.hold(kBlocks); }
  ASSERT_EQ(box->statistics().regions.current, 2);
  EXPECT_TRUE(box->allocate(kCapacity, {}, neverSleep()));
}

TYPED_TEST(PressureContract, GivesFreeRegionsBackToGetALargerOneAtTheLimitOfRegions) {
  Sandbox<TypeParam> box(onDemand(2, kCapacity / 2));
  { auto const held = box.hold(kBlocks); }
  ASSERT_EQ(box->statistics().regions.current, 2);
  EXPECT_TRUE(box->allocate(kCapacity, {}, neverSleep()));
}

TYPED_TEST(PressureContract, GivesReclaimedRegionsBackToGetALargerOne) {
  Sandbox<TypeParam> box(onDemand(4, kCapacity / 2));
  box.litter();
  RecordingCallback const callback = box.collector();
  auto const handle = box->registerMemoryPressureCallback(callback);
  EXPECT_TRUE(box->allocate(kCapacity, {}, neverSleep()));
  EXPECT_EQ(callback.runs(), 1U);
}

}  // namespace
}  // namespace flex::test
