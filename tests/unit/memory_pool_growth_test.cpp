// SPDX-License-Identifier: Apache-2.0
// Which regions an allocator asks the device for, and gives back.
#include <gtest/gtest.h>

#include "sandbox.hpp"

namespace flex::test {
namespace {

using Box = Sandbox<HoldMutexDuringCallback>;

AllocatorOptions growing(std::uint32_t regions, std::vector<std::uint64_t> sizes) {
  AllocatorOptions options = onDemand(regions, kBlock);
  options.fallback_sizes = std::move(sizes);
  return options;
}

TEST(MemoryPoolGrowth, AsksForNothingBeforeItIsNeeded) {
  Box box(growing(4, {4 * kBlock}));
  EXPECT_EQ(box.device->calls(), 0U);
  EXPECT_EQ(box->statistics().total, 0U);
  EXPECT_EQ(box->statistics().capacity, kCapacity);
}

TEST(MemoryPoolGrowth, TriesTheFallbackSizesInTheirOrder) {
  Box box(growing(4, {12 * kBlock, 8 * kBlock, 4 * kBlock}));
  CompositeAddress const first = box->allocate(kBlock);
  EXPECT_EQ(box->statistics().total, 12 * kBlock);
  CompositeAddress const rest = box->allocate(11 * kBlock);
  CompositeAddress const second = box->allocate(kBlock);
  EXPECT_EQ(box->statistics().total, 16 * kBlock) << "12 and 8 were refused, 4 was left";
  EXPECT_EQ(box.device->calls(), 4U);
}

TEST(MemoryPoolGrowth, AsksForTheRequestsOwnSizeWhereNoFallbackFits) {
  Box box(growing(4, {2 * kBlock}));
  CompositeAddress const large = box->allocate(5 * kBlock + 1);
  EXPECT_EQ(box->statistics().total, 5 * kBlock + 128);
}

TEST(MemoryPoolGrowth, KeepsToTheLargestRegion) {
  AllocatorOptions options = growing(4, {12 * kBlock});
  options.max_region_bytes = 4 * kBlock;
  Box box(options);
  CompositeAddress const small = box->allocate(kBlock);
  EXPECT_EQ(box->statistics().total, 4 * kBlock);
  auto const info = outOfMemory([&] { return box->allocate(5 * kBlock); });
  ASSERT_TRUE(info);
  EXPECT_EQ(info->reason, FailureReason::larger_than_any_region);
}

TEST(MemoryPoolGrowth, KeepsToTheNumberOfRegionsOfEachDomain) {
  Box box(growing(2, {kBlock}), {{kCapacity, kCapacity}, {}});
  std::vector<CompositeAddress> held;
  for (int i = 0; i < 4; ++i) held.push_back(box->allocate(kBlock));
  EXPECT_EQ(box->statistics().regions.current, 4);
  EXPECT_FALSE(box->tryAllocate(kBlock));
}

TEST(MemoryPoolGrowth, GivesEachTypeOfMemoryItsOwnRegions) {
  Box box(growing(2, {kBlock}));
  CompositeAddress const tensor = box->allocate(128);
  CompositeAddress const program = box->allocateInDomain(128, 0, MemoryType::program);
  EXPECT_EQ(box->statistics().regions.current, 2);
  Box single(growing(1, {kBlock}));
  CompositeAddress const a = single->allocate(128);
  CompositeAddress const b = single->allocateInDomain(128, 0, MemoryType::program);
  EXPECT_EQ(single->statistics().regions.current, 1);
}

TEST(MemoryPoolGrowth, GrowsOnlyTheDomainsThatAnInterleavedRequestLacks) {
  Box box(growing(2, {4 * kBlock}), {{kCapacity, kCapacity}, {}});
  CompositeAddress const zero = box->allocateInDomain(kBlock, 0);
  CompositeAddress const both = box->allocate(2 * kBlock, {.policy = PlacementPolicy::interleave});
  EXPECT_EQ(both.chunks().size(), 2U);
  EXPECT_EQ(box->statistics().regions.current, 2);
}

TEST(MemoryPoolGrowth, TrimsWhatIsWhollyFreeAndTakesItBack) {
  AllocatorOptions options;
  options.regions = 4;
  Box box(options);
  CompositeAddress const used = box->allocate(kBlock);
  EXPECT_EQ(box->trim(), kCapacity * 3 / 4);
  EXPECT_EQ(box.device->regionsHeld(), 1U);
  Statistics const now = box->statistics();
  EXPECT_EQ(now.regions.current, 1);
  EXPECT_EQ(now.reserved_bytes.current, static_cast<std::int64_t>(kCapacity / 4));
  EXPECT_EQ(now.capacity, kCapacity) << "what it can hold has not changed";
  EXPECT_EQ(box->trim(), 0U);
  box->checkInvariants();
  CompositeAddress const tensor = box->allocate(kCapacity / 4);
  CompositeAddress const program = box->allocateInDomain(kCapacity / 4, 0, MemoryType::program);
  EXPECT_EQ(box->statistics().regions.current, 3) << "each came back as what it was";
  EXPECT_EQ(box.pressure().growths, 2U);
}

TEST(MemoryPoolGrowth, AttemptsAskTheDeviceButNotAtOnce) {
  Box box(growing(2, {kBlock}));
  EXPECT_FALSE(box->tryAllocateAtOnce(128));
  EXPECT_EQ(box.device->calls(), 0U);
  EXPECT_TRUE(box->tryAllocate(128));
  EXPECT_EQ(box.device->calls(), 1U);
}

TEST(MemoryPoolGrowth, NoticesARegionThatTheDeviceWantedBack) {
  Box box(growing(2, {kBlock}));
  { CompositeAddress const first = box->allocate(kBlock); }
  EXPECT_EQ(box->trim(), kBlock);
  box.device->follow([](std::uint64_t) { return DeviceAnswer::refuse; });
  EXPECT_FALSE(box->tryAllocate(kBlock));
  box.device->follow(nullptr);
  EXPECT_TRUE(box->tryAllocate(kBlock));
}

}  // namespace
}  // namespace flex::test
