// SPDX-License-Identifier: Apache-2.0
// Allocators that end while memory of theirs is on its way back. // cases 51, 63

#include "stress_fixture.hpp"

namespace flex::test {
namespace {

TYPED_TEST(Stress, AllocatorEndsWhileFreesAreInFlight) {
  Stopwatch const watch(std::chrono::milliseconds(2000));
  std::uint64_t rounds = 0;
  for (; watch.running(); ++rounds) {
    Arena<TypeParam> arena(64);
    std::vector<CompositeAddress> held[3];
    for (auto& mine : held) {
      for (int i = 0; i < 16; ++i) mine.push_back(arena->allocate(kPiece));
    }
    together(4, [&](unsigned index) {
      if (index < 3) {
        held[index].clear();
      } else {
        arena.allocator.reset();
      }
    });
  }
  EXPECT_GT(rounds, 20U);
}

// Addresses of many chunks, freed by several threads after the allocator is gone: the last chunk of
// the last one ends it, not the first.
TYPED_TEST(Stress, AddressesOfManyChunksOutliveTheirAllocator) {
  constexpr unsigned kOwners = 3;
  constexpr std::size_t kChunks = 32;
  Stopwatch const watch(std::chrono::milliseconds(2500));
  std::uint64_t rounds = 0;
  for (; watch.running(); ++rounds) {
    Arena<TypeParam> arena(2 * kOwners * kChunks);
    std::vector<CompositeAddress> singles;
    for (std::size_t i = 0; i < 2 * kOwners * kChunks; ++i) {
      singles.push_back(arena->allocate(kPiece));
    }
    for (std::size_t i = 0; i < singles.size(); i += 2) singles[i].reset();
    std::vector<CompositeAddress> scattered;
    for (unsigned i = 0; i < kOwners; ++i) {
      scattered.push_back(arena->allocate(kChunks * kPiece, {.policy = PlacementPolicy::scatter}));
      ASSERT_EQ(scattered.back().chunks().size(), kChunks);
    }
    singles.clear();
    arena.allocator.reset();
    together(kOwners, [&](unsigned index) { scattered[index].reset(); });
    ASSERT_EQ(arena.device->regionsHeld(), 0U);
  }
  EXPECT_GT(rounds, 20U);
}

TYPED_TEST(Stress, AllocatorEndsWhileRequestsWait) {
  Stopwatch const watch(std::chrono::milliseconds(2000));
  std::uint64_t closed = 0;
  for (std::uint64_t round = 0; watch.running(); ++round) {
    Arena<TypeParam> arena(2);
    std::vector<CompositeAddress> held;
    held.push_back(arena->allocate(2 * kPiece));
    Gate inside;
    OpenAtEnd const open(inside);
    auto handle = arena->registerMemoryPressureCallback(
        [&](Lock& lock) { withoutLock(lock, [&] { inside.pass(); }); });
    auto* const allocator = arena.allocator.get();
    std::vector<std::unique_ptr<Allocation>> requests;
    requests.push_back(std::make_unique<Allocation>([&] { return allocator->allocate(kPiece); }));
    inside.waitForArrivals();
    for (int i = 0; i < 2; ++i) {
      requests.push_back(std::make_unique<Allocation>([&] { return allocator->allocate(kPiece); }));
    }
    waitUntil([&] { return arena->statistics().pressure.waits >= 2; }, "two requests wait");
    Task<bool> end([&] {
      arena.allocator.reset();
      return true;
    });
    for (std::uint64_t i = 0; i < round % 20; ++i) boost::this_thread::yield();
    inside.open();
    for (auto& request : requests) {
      closed += reasonOf(*request) == FailureReason::closed ? 1U : 0U;
    }
    end.join();
    handle.reset();
    held.clear();
  }
  EXPECT_GT(closed, 20U);
}

}  // namespace
}  // namespace flex::test
