// SPDX-License-Identifier: Apache-2.0
// Allocating inside a callback, on the thread that runs it. // cases 24, 64

#include "pressure_contract.hpp"

namespace flex::test {
namespace {

/// Runs `work` inside a callback of a request that cannot be served, with one block free: once with
/// the lock as it was handed over, once with the lock let go of.
template <class Strategy, class Work>
void insideACallback(Work work) {
  for (bool const let_go : {false, true}) {
    SCOPED_TRACE(let_go ? "lock let go of" : "lock as handed over");
    Sandbox<Strategy> box;
    box.litter(kBlocks - 1);
    RecordingCallback const callback([&](Lock& lock) {
      if (let_go) letGo(lock);
      work(box, lock);
    });
    auto const handle = box->registerMemoryPressureCallback(callback);
    EXPECT_THROW((void)box->allocate(kCapacity, {}, neverSleep()), OutOfMemoryError);
    EXPECT_EQ(callback.runs(), 1U) << "exactly one reclaim, and none inside it";
    EXPECT_EQ(box.clock->parks(), 0U);
  }
}

TYPED_TEST(PressureContract, NestedAllocationIsServedFromWhatIsFree) {
  insideACallback<TypeParam>([](auto& box, Lock&) {
    CompositeAddress const nested = box->allocate(kBlock);
    EXPECT_TRUE(nested);
  });
}

TYPED_TEST(PressureContract, NestedAllocationFailsAtOnceWithItsOwnReason) {
  insideACallback<TypeParam>([](auto& box, Lock&) {
    auto const info = outOfMemory([&] { return box->allocate(2 * kBlock); });
    ASSERT_TRUE(info);
    EXPECT_EQ(info->reason, FailureReason::inside_callback);
    EXPECT_EQ(info->free, kBlock);
    EXPECT_EQ(info->reclaims, 0U);
  });
}

TYPED_TEST(PressureContract, NestedFailureLeavesTheLockAsItWas) {
  insideACallback<TypeParam>([](auto& box, Lock& lock) {
    bool const owned = lock.owned();
    EXPECT_THROW((void)box->allocate(2 * kBlock), OutOfMemoryError);
    EXPECT_EQ(lock.owned(), owned);
    EXPECT_TRUE(box->allocate(kBlock));
    EXPECT_EQ(lock.owned(), owned);
  });
}

TYPED_TEST(PressureContract, NestedAttemptsAreServedFromWhatIsFree) {
  insideACallback<TypeParam>([](auto& box, Lock&) {
    EXPECT_TRUE(box->tryAllocate(kBlock));
    EXPECT_FALSE(box->tryAllocate(2 * kBlock));
  });
}

// A callback that needs a buffer of the allocator that it serves.
TYPED_TEST(PressureContract, NestedAllocationFindsWhatTheCallbackFreed) {
  insideACallback<TypeParam>([](auto& box, Lock&) {
    box.garbage.clearOldest(2);
    CompositeAddress staging = box->allocate(2 * kBlock);
    EXPECT_TRUE(staging);
    box.garbage.add(std::move(staging));
  });
}

TYPED_TEST(PressureContract, NestedAllocationOfAnotherAllocatorIsNotNested) {
  Sandbox<TypeParam> other;
  other.litter();
  RecordingCallback const other_callback = other.collector();
  auto const other_handle = other->registerMemoryPressureCallback(other_callback);
  insideACallback<TypeParam>([&](auto&, Lock& lock) {
    withoutLock(lock, [&] {
      CompositeAddress spilled = other->allocate(kCapacity);
      EXPECT_TRUE(spilled);
      other.garbage.add(std::move(spilled));
    });
  });
  EXPECT_EQ(other_callback.runs(), 2U);
}

// The allocation of another thread is not nested, though a callback waits for it.
TYPED_TEST(PressureContract, AllocationOnAnotherThreadIsNoNestedOne) {
  insideACallback<TypeParam>([](auto& box, Lock& lock) {
    withoutLock(lock, [&] {
      Allocation other([&] { return box->allocate(2 * kBlock, {}, mustNotWait()); });
      EXPECT_EQ(reasonOf(other), FailureReason::must_not_wait);
    });
  });
}

}  // namespace
}  // namespace flex::test
