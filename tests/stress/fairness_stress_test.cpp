// SPDX-License-Identifier: Apache-2.0
// Who asked first is served, however many others keep asking. // cases 58, 74

#include "stress_fixture.hpp"
#include "watchdog.hpp"

namespace flex::test {
namespace {

// A needs a block that only a reclaim can make; B and C never stop taking pieces of it. Each of
// them may hold one piece, anywhere, so of the rest a quarter of all is in one piece whatever they
// do.
TYPED_TEST(Stress, RequesterGetsItsMemoryWhileOthersSpin) {
  constexpr std::uint64_t kPieces = 16;
  Arena<TypeParam> arena(kPieces);
  auto const handle = arena->registerMemoryPressureCallback(arena.collector());
  std::atomic<bool> stop{false};
  auto const spin = [&] {
    std::uint64_t got = 0;
    while (!stop) {
      if (auto piece = arena->tryAllocate(kPiece)) {
        arena.garbage.add(std::move(*piece));
        ++got;
      } else {
        boost::this_thread::yield();
      }
    }
    return got;
  };
  Task<std::uint64_t> b(spin);
  Task<std::uint64_t> c(spin);
  int rounds = 0;
  Stopwatch const watch(std::chrono::milliseconds(3000));
  for (; rounds < 1000 && watch.running(); ++rounds) {
    waitUntil([&] { return arena->statistics().largest_free < kPieces * kPiece / 4; },
              "others take what is free");
    CompositeAddress large;
    ASSERT_NO_THROW(large = arena->allocate(kPieces * kPiece / 4)) << "round " << rounds;
  }
  stop = true;
  EXPECT_GT(b.get() + c.get(), 0U);
  PressureStatistics const pressure = arena->statistics().pressure;
  EXPECT_EQ(pressure.outOfMemory(), 0U);
  EXPECT_GE(pressure.events, static_cast<std::uint64_t>(rounds) / 2) << "no pressure";
  EXPECT_GE(rounds, 50);
}

TYPED_TEST(Stress, BurstOfEightIsServedByFewReclaims) {
  constexpr unsigned kRequests = 8;
  Arena<TypeParam> arena(kRequests);
  std::atomic<std::uint64_t> runs{0};
  auto const handle = arena->registerMemoryPressureCallback([&](Lock& lock) {
    ++runs;
    withoutLock(lock, [&] { arena.garbage.clear(); });
  });
  for (int round = 0; round < 100; ++round) {
    for (unsigned i = 0; i < kRequests; ++i) arena.garbage.add(arena->allocate(kPiece));
    runs = 0;
    boost::barrier served(kRequests);
    together(kRequests, [&](unsigned) {
      CompositeAddress const piece = arena->allocate(kPiece);
      served.wait();
    });
    ASSERT_GE(runs, 1U);
    ASSERT_LE(runs, 2U) << "round " << round;
  }
  EXPECT_EQ(arena->statistics().pressure.outOfMemory(), 0U);
}

// Waiters that time out, are served and fail, all mixed: nobody is left behind. // case 21
TYPED_TEST(Stress, EveryoneReturnsAtCapacity) {
  Arena<TypeParam> arena(4, std::chrono::milliseconds(2));
  auto const handle = arena->registerMemoryPressureCallback(
      [&](Lock& lock) { withoutLock(lock, [&] { arena.garbage.clearOldest(1); }); });
  std::atomic<std::uint64_t> served{0};
  std::atomic<std::uint64_t> failed{0};
  Stopwatch const watch(std::chrono::milliseconds(2000));
  together(8, [&](unsigned index) {
    Dice dice(index + 1);
    while (watch.running()) {
      try {
        CompositeAddress address = arena->allocate((1 + dice.below(3)) * kPiece);
        ++served;
        if (dice.below(4) == 0) arena.garbage.add(std::move(address));
      } catch (OutOfMemoryError const&) {
        ++failed;
      }
    }
  });
  EXPECT_GT(served, 100U);
  EXPECT_GT(arena->statistics().pressure.events, 100U);
  EXPECT_EQ(arena->statistics().pressure.outOfMemory(), failed);
}

// Interrupted at any point, a request leaves nothing behind.
TYPED_TEST(Stress, InterruptedRequestsLeaveNothingBehind) {
  Arena<TypeParam> arena(2);
  auto const handle = arena->registerMemoryPressureCallback([&](Lock& lock) {
    withoutLock(lock, [&] {
      boost::this_thread::interruption_point();
      arena.garbage.clear();
    });
  });
  std::uint64_t interrupted = 0;
  Stopwatch const watch(std::chrono::milliseconds(2000));
  // What becomes garbage behind the last look at it, with nobody left who asks, is found late: so a
  // round may take seconds, and time alone does not say that enough has happened.
  auto const enough = [&] { return arena->statistics().pressure.events > 100; };
  for (std::uint64_t round = 0; watch.running() || !enough(); ++round) {
    std::atomic<bool> stop{false};
    std::vector<std::unique_ptr<Task<bool>>> tasks;
    for (int i = 0; i < 3; ++i) {
      tasks.push_back(std::make_unique<Task<bool>>([&] {
        while (!stop) arena.garbage.add(arena->allocate(2 * kPiece));
        return true;
      }));
    }
    for (std::uint64_t i = 0; i < round % 50; ++i) boost::this_thread::yield();
    tasks[round % 3]->interrupt();
    interrupted += tasks[round % 3]->wasInterrupted() ? 1U : 0U;
    stop = true;
    for (auto& task : tasks) task->join();
  }
  EXPECT_GT(interrupted, 0U);
}

}  // namespace
}  // namespace flex::test
