// SPDX-License-Identifier: Apache-2.0
// Counters and their resets. // cases 88, 91
#include <gtest/gtest.h>

#include "sandbox.hpp"

namespace flex::test {
namespace {

using Box = Sandbox<ReleaseAndCondvar>;

void expectStat(Stat const& stat, std::int64_t current, std::int64_t peak, std::int64_t allocated,
                std::int64_t freed) {
  EXPECT_EQ(stat.current, current);
  EXPECT_EQ(stat.peak, peak);
  EXPECT_EQ(stat.allocated, allocated);
  EXPECT_EQ(stat.freed, freed);
}

TEST(Statistics, CountCurrentPeakAllocatedAndFreed) {
  Box box;
  CompositeAddress first = box->allocate(100);
  CompositeAddress const second = box->allocate(200);
  first.reset();
  Statistics const now = box->statistics();
  expectStat(now.allocations, 1, 2, 2, 1);
  expectStat(now.allocated_bytes, 256, 384, 384, 128);
  expectStat(now.requested_bytes, 200, 300, 300, 100);
  EXPECT_EQ(now.free, kCapacity - 256);
  EXPECT_EQ(now.total, kCapacity);
  EXPECT_EQ(now.total, static_cast<std::uint64_t>(now.reserved_bytes.current));
  EXPECT_EQ(now.blocks, 3U);
  EXPECT_GT(now.metadata_bytes, 0U);
}

TEST(Statistics, ResetThePeakToWhatIsUsedNow) {
  Box box;
  CompositeAddress first = box->allocate(kBlock);
  CompositeAddress const second = box->allocate(kBlock);
  first.reset();
  box->resetPeakStatistics();
  expectStat(box->statistics().allocations, 1, 1, 2, 1);
}

TEST(Statistics, ResetSumsWithoutTouchingWhatIsUsed) {
  Box box;
  CompositeAddress first = box->allocate(kBlock);
  CompositeAddress second = box->allocate(kBlock);
  first.reset();
  box->resetAccumulatedStatistics();
  expectStat(box->statistics().allocations, 1, 2, 0, 0);
  second.reset();
  expectStat(box->statistics().allocations, 0, 2, 0, 1);
  CompositeAddress const third = box->allocate(kBlock);
  expectStat(box->statistics().allocations, 1, 2, 1, 1);
  expectStat(box->statistics().allocated_bytes, 1024, 2048, 1024, 1024);
}

TEST(Statistics, ResetWhatPressureDid) {
  Box box;
  box.litter();
  auto const handle = box->registerMemoryPressureCallback(box.collector());
  EXPECT_TRUE(box->allocate(kBlock, {}, neverSleep()));
  EXPECT_EQ(box.pressure().events, 1U);
  EXPECT_EQ(box.pressure().reclaims, 1U);
  EXPECT_EQ(box.pressure().callbacks, 1U);
  EXPECT_EQ(box.pressure().bytes_reclaimed, kCapacity);
  box->resetAccumulatedStatistics();
  EXPECT_EQ(box.pressure().events, 0U);
  EXPECT_EQ(box.pressure().bytes_reclaimed, 0U);
}

// Frees while a callback runs are what it brought back, though the counters were reset meanwhile.
TEST(Statistics, SurviveAResetInsideACallback) {
  Box box;
  box.litter();
  auto const handle = box->registerMemoryPressureCallback([&](Lock&) {
    box.garbage.clearOldest(4);
    box->resetAccumulatedStatistics();
    box.garbage.clearOldest(4);
  });
  auto const info = outOfMemory([&] { return box->allocate(kCapacity, {}, neverSleep()); });
  ASSERT_TRUE(info);
  EXPECT_EQ(info->bytes_reclaimed, 8 * kBlock);
}

TEST(Statistics, CountFailuresByTheirReason) {
  Box box;
  auto const held = box.hold(kBlocks);
  (void)outOfMemory([&] { return box->allocate(kBlock, {}, neverSleep()); });
  (void)outOfMemory([&] { return box->allocate(kBlock, {}, mustNotWait()); });
  (void)outOfMemory([&] { return box->allocate(kCapacity + 1); });
  PressureStatistics const pressure = box.pressure();
  EXPECT_EQ(pressure.failuresFor(FailureReason::exhausted), 1U);
  EXPECT_EQ(pressure.failuresFor(FailureReason::must_not_wait), 1U);
  EXPECT_EQ(pressure.failuresFor(FailureReason::larger_than_any_region), 1U);
  EXPECT_EQ(pressure.outOfMemory(), 3U);
}

TEST(Statistics, MeasureTimeInCallbacksAndAsleep) {
  Box box;
  auto held = box.hold(kBlocks);
  auto const handle = box->registerMemoryPressureCallback(
      [&](Lock&) { box.clock->advance(std::chrono::milliseconds(7)); });
  auto waiting = box.sleepingRequest(kBlock, 1, waitAtMost(kLongestWait));
  box.clock->advance(std::chrono::milliseconds(5));
  box.clock->waitForParked(1);
  held.pop_back();
  EXPECT_TRUE(waiting->get());
  EXPECT_EQ(box.pressure().callback_time, std::chrono::milliseconds(7));
  EXPECT_EQ(box.pressure().wait_time, std::chrono::milliseconds(5));
}

}  // namespace
}  // namespace flex::test
