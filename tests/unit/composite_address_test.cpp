// SPDX-License-Identifier: Apache-2.0
#include <type_traits>

#include <gtest/gtest.h>

#include "sandbox.hpp"

namespace flex::test {
namespace {

using Box = Sandbox<HoldMutexDuringCallback>;

static_assert(!std::is_copy_constructible_v<CompositeAddress>);
static_assert(!std::is_copy_assignable_v<CompositeAddress>);
static_assert(std::is_nothrow_move_constructible_v<CompositeAddress>);
static_assert(std::is_nothrow_move_assignable_v<CompositeAddress>);
static_assert(sizeof(CompositeAddress) == 2 * sizeof(void*));

TEST(CompositeAddress, OwnsNothingByDefault) {
  CompositeAddress address;
  EXPECT_FALSE(address);
  EXPECT_EQ(address.address(), 0U);
  EXPECT_EQ(address.nbytes(), 0U);
  EXPECT_TRUE(address.chunks().empty());
  address.reset();
}

TEST(CompositeAddress, TellsWhatWasAskedForAndWhereItIs) {
  Box box;
  CompositeAddress const address = box->allocate(1000);
  EXPECT_TRUE(address);
  EXPECT_EQ(address.nbytes(), 1000U);
  auto const chunks = address.chunks();
  ASSERT_EQ(chunks.size(), 1U);
  EXPECT_EQ(chunks[0].nbytes, 1024U);
  EXPECT_EQ(chunks[0].offset, 0U);
  EXPECT_EQ(chunks[0].address, address.address());
  EXPECT_EQ(chunks[0].domain, 0U);
}

TEST(CompositeAddress, MovingLeavesTheSourceEmpty) {
  Box box;
  CompositeAddress first = box->allocate(kBlock);
  DeviceAddress const where = first.address();
  CompositeAddress second = std::move(first);
  EXPECT_FALSE(first);  // NOLINT(bugprone-use-after-move): its state is what is tested
  EXPECT_EQ(first.address(), 0U);
  EXPECT_EQ(first.nbytes(), 0U);
  EXPECT_EQ(second.address(), where);
  first.reset();
  EXPECT_EQ(box->statistics().allocations.current, 1);
}

TEST(CompositeAddress, AssignmentFreesWhatWasOwned) {
  Box box;
  CompositeAddress first = box->allocate(kBlock);
  CompositeAddress second = box->allocate(2 * kBlock);
  DeviceAddress const where = second.address();
  first = std::move(second);
  EXPECT_EQ(box->statistics().allocations.current, 1);
  EXPECT_EQ(first.address(), where);
  EXPECT_EQ(first.nbytes(), 2 * kBlock);
}

TEST(CompositeAddress, SurvivesAssignmentToItself) {
  Box box;
  CompositeAddress address = box->allocate(kBlock);
  CompositeAddress& same = address;
  address = std::move(same);
  EXPECT_TRUE(address);
  EXPECT_EQ(box->statistics().allocations.current, 1);
}

TEST(CompositeAddress, FreesOnceHoweverOftenItIsReset) {
  Box box;
  CompositeAddress address = box->allocate(kBlock);
  address.reset();
  address.reset();
  EXPECT_FALSE(address);
  EXPECT_EQ(box->statistics().allocations.current, 0);
  EXPECT_EQ(box->statistics().allocations.freed, 1);
  EXPECT_EQ(box->statistics().misuses, 0U);
}

TEST(CompositeAddress, DeallocationSaysWhatItDid) {
  Box box;
  Box other;
  CompositeAddress address = box->allocate(kBlock);
  EXPECT_EQ(other->deallocate(std::move(address)), DeallocateResult::foreign);
  EXPECT_TRUE(address) << "a foreign one is left alone";
  EXPECT_EQ(other->statistics().misuses, 1U);
  EXPECT_EQ(box->deallocate(std::move(address)), DeallocateResult::freed);
  EXPECT_FALSE(address);
  EXPECT_EQ(box->deallocate(std::move(address)), DeallocateResult::empty);
}

TEST(CompositeAddress, OutlivesItsAllocator) {
  Box box;
  CompositeAddress address = box->allocate(kBlock);
  box.allocator.reset();
  EXPECT_TRUE(address);
  EXPECT_NE(address.address(), 0U);
  EXPECT_EQ(address.nbytes(), kBlock);
  address.reset();
  EXPECT_EQ(box.device->regionsHeld(), 0U);
}

TEST(CompositeAddress, MayBeFreedOnAnotherThread) {
  Box box;
  CompositeAddress address = box->allocate(kBlock);
  Task<bool> free([&] {
    address.reset();
    return true;
  });
  EXPECT_TRUE(free.get());
  EXPECT_EQ(box->statistics().free, kCapacity);
}

TEST(CompositeAddress, OwnsSeveralChunksInOrder) {
  Box box(oneRegion(), DeviceTopology{{kCapacity, kCapacity, kCapacity}, {}});
  CompositeAddress address =
      box->allocate(3 * kBlock, {.policy = PlacementPolicy::interleave, .domain_ids = {2, 0, 1}});
  auto const chunks = address.chunks();
  ASSERT_EQ(chunks.size(), 3U);
  EXPECT_EQ(chunks[0].domain, 2U);
  EXPECT_EQ(chunks[1].domain, 0U);
  EXPECT_EQ(chunks[2].domain, 1U);
  EXPECT_EQ(address.address(), chunks[0].address);
  EXPECT_EQ(address.nbytes(), 3 * kBlock);
  CompositeAddress const moved = std::move(address);
  EXPECT_EQ(moved.chunks().size(), 3U);
  EXPECT_EQ(box->statistics().allocations.current, 1);
  EXPECT_EQ(box->statistics().allocated_bytes.current, static_cast<std::int64_t>(3 * kBlock));
}

}  // namespace
}  // namespace flex::test
