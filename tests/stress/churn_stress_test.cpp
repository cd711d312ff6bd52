// SPDX-License-Identifier: Apache-2.0
// Allocating, freeing, looking and trimming from all sides.

#include "stress_fixture.hpp"

namespace flex::test {
namespace {

// Blocks are freed on other threads than those that allocated them.
TYPED_TEST(Stress, FreesComeFromOtherThreads) {
  Arena<TypeParam> arena(64);
  Garbage passed_on;
  auto const handle = arena->registerMemoryPressureCallback(
      [&](Lock& lock) { withoutLock(lock, [&] { passed_on.clear(); }); });
  std::atomic<bool> stop{false};
  Task<bool> freer([&] {
    while (!stop) {
      passed_on.clearOldest(3);
      boost::this_thread::yield();
    }
    return true;
  });
  Stopwatch const watch(std::chrono::milliseconds(1500));
  together(3, [&](unsigned index) {
    Dice dice(index + 1);
    while (watch.running()) passed_on.add(arena->allocate((1 + dice.below(4)) * kPiece));
  });
  stop = true;
  freer.join();
  passed_on.clear();
  PressureStatistics const pressure = arena->statistics().pressure;
  EXPECT_EQ(pressure.outOfMemory(), 0U);
  EXPECT_GT(pressure.events, 0U) << "pressure was never reached";
}

// Short-lived blocks without pressure: the fast path, and frees that find the mutex taken.
TYPED_TEST(Stress, FreesThatFindTheMutexTakenAreDoneByItsHolder) {
  Arena<TypeParam> arena(4096);
  std::atomic<std::uint64_t> allocations{0};
  Stopwatch const watch(std::chrono::milliseconds(1500));
  together(4, [&](unsigned index) {
    Dice dice(index + 1);
    std::vector<CompositeAddress> held;
    while (watch.running()) {
      for (int i = 0; i < 64; ++i) {
        held.push_back(arena->allocate((1 + dice.below(4)) * 128));
        if (held.size() > 64) held.erase(held.begin() + static_cast<long>(dice.below(64)));
      }
      allocations += 64;
      if (index == 0) arena->checkInvariants();
    }
  });
  Statistics const now = arena->statistics();
  EXPECT_EQ(now.allocations.current, 0) << "a free was left undone";
  EXPECT_EQ(static_cast<std::uint64_t>(now.allocations.allocated), allocations);
  EXPECT_GT(now.pressure.deferred_frees, 0U) << "no free found the mutex taken";
}

TYPED_TEST(Stress, RegionsComeAndGoUnderLoad) {
  AllocatorOptions options;
  options.acquisition = Acquisition::on_demand;
  options.regions = 8;
  options.fallback_sizes = {8 * kPiece};
  auto const device = std::make_shared<ScriptedDevice>(64 * kPiece);
  FlexAllocator<TypeParam> allocator(device, options);
  Garbage garbage;
  auto const handle = allocator.registerMemoryPressureCallback(
      [&](Lock& lock) { withoutLock(lock, [&] { garbage.clear(); }); });
  Stopwatch const watch(std::chrono::milliseconds(1500));
  together(4, [&](unsigned index) {
    Dice dice(index + 1);
    while (watch.running()) {
      if (index == 0) {
        (void)allocator.trim();
        (void)allocator.statistics();
        (void)allocator.tryStatistics();
        allocator.checkInvariants();
        boost::this_thread::yield();
        continue;
      }
      CompositeAddress address = allocator.allocate((1 + dice.below(6)) * kPiece);
      if (dice.below(2) == 0) garbage.add(std::move(address));
      if (dice.below(8) == 0) garbage.clear();
    }
  });
  garbage.clear();
  PressureStatistics const pressure = allocator.statistics().pressure;
  EXPECT_GT(pressure.growths, 8U) << "no region came back after a trim";
  EXPECT_EQ(pressure.outOfMemory(), 0U);
  (void)allocator.trim();
  EXPECT_EQ(device->regionsHeld(), 0U);
}

// Each allocator's callback frees what belongs to the other one.
TYPED_TEST(Stress, TwoAllocatorsFreeEachOthersMemory) {
  Arena<TypeParam> left(4);
  Arena<TypeParam> right(4);
  auto const both = [&](Lock& lock) {
    withoutLock(lock, [&] {
      left.garbage.clear();
      right.garbage.clear();
    });
  };
  auto const held_back = [&](Lock&) {
    left.garbage.clear();
    right.garbage.clear();
  };
  auto const left_handle = left->registerMemoryPressureCallback(both);
  auto const right_handle = right->registerMemoryPressureCallback(held_back);
  Stopwatch const watch(std::chrono::milliseconds(1500));
  together(4, [&](unsigned index) {
    Arena<TypeParam>& mine = index % 2 == 0 ? left : right;
    while (watch.running()) mine.garbage.add(mine->allocate(2 * kPiece));
  });
  for (Arena<TypeParam>* arena : {&left, &right}) {
    EXPECT_EQ((*arena)->statistics().pressure.outOfMemory(), 0U);
    EXPECT_GT((*arena)->statistics().pressure.events, 100U);
  }
}

}  // namespace
}  // namespace flex::test
