// SPDX-License-Identifier: Apache-2.0
#include <optional>
#include <type_traits>
#include <vector>

#include <gtest/gtest.h>

#include <spyre/spyre_allocator.hpp>

#include "sandbox.hpp"

namespace spyre {
namespace {

using flex::test::kBlock;
using flex::test::kCapacity;
using flex::test::oneRegion;
using flex::test::ScriptedDevice;
using flex::test::Task;

static_assert(!std::is_copy_constructible_v<DataPtr>);
static_assert(std::is_nothrow_move_constructible_v<DataPtr>);

/// Notes what it is told, and whether the allocator's mutex was free meanwhile.
class RecordingReporter final : public MemoryReporter {
 public:
  void report(void* data, std::int64_t change) noexcept override {
    changes.push_back(change);
    addresses.push_back(data);
    if (allocator == nullptr) return;
    Task<bool> other([this] { return allocator->flexAllocator().tryStatistics().has_value(); });
    mutex_was_free = mutex_was_free && other.get();
  }
  std::vector<std::int64_t> changes;
  std::vector<void*> addresses;
  SpyreAllocator<>* allocator = nullptr;
  bool mutex_was_free = true;
};

struct SpyreAllocatorTest : ::testing::Test {
  std::shared_ptr<RecordingReporter> reporter = std::make_shared<RecordingReporter>();
  std::shared_ptr<ScriptedDevice> device = std::make_shared<ScriptedDevice>(kCapacity);
  std::optional<SpyreAllocator<>> allocator{std::in_place, device, oneRegion(),
                                            flex::HoldMutexDuringCallback::Options{}, reporter};
};

TEST_F(SpyreAllocatorTest, ZeroBytesAreAnEmptyPointer) {
  DataPtr const empty = allocator->allocate(0);
  EXPECT_FALSE(empty);
  EXPECT_EQ(empty.get(), nullptr);
  EXPECT_EQ(empty.context(), nullptr);
  EXPECT_TRUE(allocator->tryAllocate(0).has_value());
  EXPECT_TRUE(allocator->tryAllocateAtOnce(0).has_value());
  EXPECT_TRUE(reporter->changes.empty());
  EXPECT_EQ(allocator->statistics().allocations.allocated, 0);
}

TEST_F(SpyreAllocatorTest, ReportsEveryChangeWithNoLockHeld) {
  reporter->allocator = &*allocator;
  {
    DataPtr const data = allocator->allocate(1000);
    EXPECT_TRUE(data);
    EXPECT_EQ(data.deleter(), &ReportAndDelete);
    EXPECT_EQ(reporter->changes, (std::vector<std::int64_t>{1024}));
    EXPECT_EQ(reporter->addresses.back(), data.get());
  }
  EXPECT_EQ(reporter->changes, (std::vector<std::int64_t>{1024, -1024}));
  EXPECT_EQ(reporter->addresses[0], reporter->addresses[1]);
  EXPECT_TRUE(reporter->mutex_was_free);
  EXPECT_EQ(allocator->getMemoryInfo().free, kCapacity);
}

TEST_F(SpyreAllocatorTest, ReportsNothingForAFailure) {
  EXPECT_THROW((void)allocator->allocate(kCapacity + 1), flex::OutOfMemoryError);
  EXPECT_FALSE(allocator->tryAllocate(kCapacity + 1));
  EXPECT_TRUE(reporter->changes.empty());
}

TEST_F(SpyreAllocatorTest, WorksWithoutAReporter) {
  SpyreAllocator<flex::ReleaseAndCondvar> plain(
      device = std::make_shared<ScriptedDevice>(kCapacity), oneRegion());
  DataPtr data = plain.allocate(kBlock);
  EXPECT_TRUE(data);
  data.clear();
  EXPECT_FALSE(data);
  EXPECT_EQ(plain.getMemoryInfo().free, kCapacity);
}

TEST_F(SpyreAllocatorTest, PointersMoveAndFreeOnce) {
  DataPtr first = allocator->allocate(kBlock);
  void* const where = first.get();
  DataPtr second = std::move(first);
  EXPECT_FALSE(first);  // NOLINT(bugprone-use-after-move): its state is what is tested
  EXPECT_EQ(second.get(), where);
  DataPtr third = allocator->allocate(kBlock);
  third = std::move(second);
  EXPECT_EQ(allocator->statistics().allocations.current, 1);
  DataPtr& same = third;
  third = std::move(same);
  EXPECT_EQ(third.get(), where);
  third.clear();
  third.clear();
  EXPECT_EQ(allocator->statistics().allocations.current, 0);
  EXPECT_EQ(allocator->statistics().allocations.freed, 2);
}

TEST_F(SpyreAllocatorTest, AReleasedContextIsFreedByTheDeleter) {
  DataPtr data = allocator->allocate(kBlock);
  Deleter const deleter = data.deleter();
  void* const context = data.releaseContext();
  ASSERT_NE(context, nullptr);
  data.clear();
  EXPECT_EQ(allocator->statistics().allocations.current, 1);
  deleter(context);
  EXPECT_EQ(allocator->statistics().allocations.current, 0);
  ReportAndDelete(nullptr);
}

TEST_F(SpyreAllocatorTest, TellsTheAddressBehindItsOwnPointersOnly) {
  DataPtr const data = allocator->allocate(kBlock);
  ASSERT_NE(addressOf(data), nullptr);
  EXPECT_EQ(addressOf(data)->nbytes(), kBlock);
  int other = 0;
  DataPtr const foreign(&other, &other, [](void*) {});
  EXPECT_EQ(addressOf(foreign), nullptr);
  EXPECT_EQ(addressOf(DataPtr{}), nullptr);
}

TEST_F(SpyreAllocatorTest, PointersOutliveTheAllocatorAndMayDieOnAnyThread) {
  DataPtr data = allocator->allocate(kBlock);
  allocator.reset();
  Task<bool> free([&] {
    data.clear();
    return true;
  });
  EXPECT_TRUE(free.get());
  EXPECT_EQ(device->regionsHeld(), 0U);
  EXPECT_EQ(reporter->changes.back(), -1024);
}

TEST_F(SpyreAllocatorTest, KeepsCountersThatCanBeReset) {
  DataPtr first = allocator->allocate(kBlock);
  first = allocator->allocate(2 * kBlock);
  EXPECT_EQ(allocator->statistics().allocated_bytes.peak, static_cast<std::int64_t>(3 * kBlock));
  allocator->resetPeakStatistics();
  allocator->resetAccumulatedStatistics();
  auto const bytes = allocator->statistics().allocated_bytes;
  EXPECT_EQ(bytes.current, static_cast<std::int64_t>(2 * kBlock));
  EXPECT_EQ(bytes.peak, bytes.current);
  EXPECT_EQ(bytes.allocated, 0);
  EXPECT_EQ(bytes.freed, 0);
}

TEST_F(SpyreAllocatorTest, EmptiesItsCache) {
  EXPECT_EQ(allocator->emptyCache(), kCapacity);
  EXPECT_EQ(device->regionsHeld(), 0U);
  EXPECT_EQ(allocator->getMemoryInfo().free, kCapacity) << "it can have them back";
  EXPECT_EQ(allocator->getMemoryInfo().total, kCapacity);
  EXPECT_TRUE(allocator->allocate(kBlock));
}

}  // namespace
}  // namespace spyre
