// SPDX-License-Identifier: Apache-2.0
// Callbacks that come and go while chains run. // cases 97, 98

#include "stress_fixture.hpp"

namespace flex::test {
namespace {

TYPED_TEST(Stress, CallbacksComeAndGoWhileChainsRun) {
  Arena<TypeParam> arena(4);
  auto const collector = arena->registerMemoryPressureCallback(arena.collector(), 10);
  std::atomic<std::uint64_t> runs{0};
  Stopwatch const watch(std::chrono::milliseconds(2000));
  together(4, [&](unsigned index) {
    if (index < 2) {
      while (watch.running()) arena.garbage.add(arena->allocate(kPiece));
      return;
    }
    while (watch.running()) {
      // Dies after the handle, and is used by the callback: a run that goes on afterwards is a
      // race.
      auto const alive = std::make_unique<std::uint64_t>(0);
      auto handle = arena->registerMemoryPressureCallback(
          [&runs, target = alive.get()](Lock&) {
            ++*target;
            ++runs;
          },
          static_cast<int>(index));
      for (int i = 0; i < 20; ++i) boost::this_thread::yield();
      if (index == 3) arena->registerMemoryPressureCallback(nullptr, 3);
    }
  });
  EXPECT_GT(runs, 0U) << "no callback ran between its coming and going";
  EXPECT_EQ(arena->statistics().pressure.outOfMemory(), 0U);
}

// The owner of a handle frees what the callback uses once it has let go of it, even if another
// thread was faster to unregister the callback.
TYPED_TEST(Stress, LettingGoOfAHandleWaitsThoughAnotherThreadUnregistered) {
  Arena<TypeParam> arena(4);
  auto const collector = arena->registerMemoryPressureCallback(arena.collector(), 10);
  std::atomic<bool> stop{false};
  auto const allocate = [&] {
    while (!stop) arena.garbage.add(arena->allocate(kPiece));
    return true;
  };
  Task<bool> first(allocate);
  Task<bool> second(allocate);
  std::atomic<std::uint64_t> runs{0};
  std::atomic<std::uint64_t> late{0};
  Stopwatch const watch(std::chrono::milliseconds(2000));
  while (watch.running()) {
    std::atomic<int> inside{0};
    auto handle = arena->registerMemoryPressureCallback([&](Lock&) {
      ++inside;
      ++runs;
      for (int i = 0; i < 3; ++i) boost::this_thread::yield();
      --inside;
    });
    for (int i = 0; i < 5; ++i) boost::this_thread::yield();
    together(2, [&](unsigned index) {
      if (index == 0) {
        arena->registerMemoryPressureCallback(nullptr);
        return;
      }
      handle.reset();
      if (inside != 0) ++late;
    });
  }
  stop = true;
  EXPECT_TRUE(first.get());
  EXPECT_TRUE(second.get());
  EXPECT_GT(runs, 0U);
  EXPECT_EQ(late, 0U) << "unregistering returned while the callback was running";
}

}  // namespace
}  // namespace flex::test
