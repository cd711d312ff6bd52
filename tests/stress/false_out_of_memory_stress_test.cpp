// SPDX-License-Identifier: Apache-2.0
// What everybody needs at once always fits, so every failure would be a false one.
// cases 58, 59, 61, 66

#include "stress_fixture.hpp"

namespace flex::test {
namespace {

constexpr unsigned kThreads = 4;

// Each thread holds at most two pieces that it needs; all else is garbage until the callback runs.
TYPED_TEST(Stress, FourThreadsWhoseLiveDataFitsNeverFail) {
  Arena<TypeParam> arena(2 * kThreads);
  auto const handle = arena->registerMemoryPressureCallback(arena.collector());
  std::atomic<std::uint64_t> failures{0};
  Stopwatch const watch(std::chrono::milliseconds(2500));
  together(kThreads, [&](unsigned) {
    CompositeAddress needed;
    while (watch.running()) {
      for (int i = 0; i < 32; ++i) {
        try {
          CompositeAddress next = arena->allocate(kPiece);
          if (needed) arena.garbage.add(std::move(needed));
          needed = std::move(next);
        } catch (OutOfMemoryError const& error) {
          ++failures;
          ADD_FAILURE() << error.what();
          return;
        }
      }
    }
  });
  PressureStatistics const pressure = arena->statistics().pressure;
  EXPECT_EQ(failures, 0U);
  EXPECT_EQ(pressure.outOfMemory(), 0U);
  EXPECT_GE(pressure.events, 1000U) << "pressure was hardly reached";
  EXPECT_GE(pressure.reclaims, 100U);
}

// The same with sizes that differ, and capacity to spare for what fragmentation costs.
TYPED_TEST(Stress, DifferentSizesThatFitNeverFail) {
  Arena<TypeParam> arena(kThreads * 2 * 8);
  auto const handle = arena->registerMemoryPressureCallback(arena.collector());
  Stopwatch const watch(std::chrono::milliseconds(2000));
  together(kThreads, [&](unsigned index) {
    Dice dice(index + 1);
    while (watch.running()) {
      CompositeAddress first = arena->allocate((1 + dice.below(4)) * kPiece);
      CompositeAddress second = arena->allocate((1 + dice.below(4)) * kPiece);
      arena.garbage.add(std::move(first));
      if (dice.below(2) == 0) arena.garbage.add(std::move(second));
    }
  });
  PressureStatistics const pressure = arena->statistics().pressure;
  EXPECT_EQ(pressure.outOfMemory(), 0U);
  EXPECT_GE(pressure.events, 500U) << "pressure was hardly reached";
}

// The callback only orders the frees: another thread does them, some time later. // case 76
TYPED_TEST(Stress, GarbageThatAThirdThreadFreesIsEnoughForAPatientStrategy) {
  if (std::is_same_v<TypeParam, HoldMutexDuringCallback>) {
    GTEST_SKIP() << "this strategy promises not to wait for the frees of others";
  }
  Arena<TypeParam> arena(2 * kThreads);
  std::atomic<bool> ordered{false};
  std::atomic<bool> stop{false};
  auto const handle = arena->registerMemoryPressureCallback([&ordered](Lock&) { ordered = true; });
  Task<bool> finalizer([&] {
    while (!stop) {
      if (ordered.exchange(false)) arena.garbage.clear();
      boost::this_thread::yield();
    }
    return true;
  });
  Stopwatch const watch(std::chrono::milliseconds(1500));
  together(kThreads, [&](unsigned) {
    CompositeAddress needed;
    while (watch.running()) {
      CompositeAddress next = arena->allocate(kPiece);
      if (needed) arena.garbage.add(std::move(needed));
      needed = std::move(next);
      // What is still needed becomes garbage now and then, so that an order always finds some.
      if (arena.garbage.size() == 0) arena.garbage.add(std::move(needed));
    }
  });
  stop = true;
  PressureStatistics const pressure = arena->statistics().pressure;
  EXPECT_EQ(pressure.outOfMemory(), 0U);
  EXPECT_GE(pressure.events, 50U) << "pressure was hardly reached";
}

// Two threads that each need all there is: both finish in turn. // case 61
TYPED_TEST(Stress, TwoThreadsThatNeedEverythingTakeTurns) {
  if (std::is_same_v<TypeParam, HoldMutexDuringCallback>) {
    GTEST_SKIP() << "this strategy promises not to wait for the frees of others";
  }
  Arena<TypeParam> arena(4);
  auto const handle = arena->registerMemoryPressureCallback(arena.collector());
  together(2, [&](unsigned) {
    for (int i = 0; i < 300; ++i) arena.garbage.add(arena->allocate(4 * kPiece));
  });
  PressureStatistics const pressure = arena->statistics().pressure;
  EXPECT_EQ(pressure.outOfMemory(), 0U);
  EXPECT_GE(pressure.events, 300U);
}

}  // namespace
}  // namespace flex::test
