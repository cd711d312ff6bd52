// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <memory>
#include <vector>

#include <boost/thread/barrier.hpp>
#include <gtest/gtest.h>

#include <flex/sync/mutex.hpp>

#include "gate.hpp"
#include "task.hpp"

namespace flex::sync {
namespace {

using test::Gate;
using test::Task;

/// Counts what was left for the holder.
class CountingWork final : public DeferredWork {
 public:
  void leave() noexcept { head_.fetch_add(1); }
  void run() noexcept override { done += head_.exchange(0); }
  std::uint64_t done = 0;  // guarded by the mutex
};

TEST(Mutex, DoesWhatWasLeftBeforeItLetsGo) {
  CountingWork work;
  Mutex mutex(work);
  Lock lock(mutex);
  work.leave();
  lock.unlock();
  EXPECT_FALSE(work.pending());
  EXPECT_EQ(work.done, 1U);
}

TEST(Mutex, TryFailsWhileAnotherThreadHoldsIt) {
  CountingWork work;
  Mutex mutex(work);
  Lock const lock(mutex);
  Task<bool> other([&] { return Lock(mutex, kTryToLock).owned(); });
  EXPECT_FALSE(other.get());
}

/// Two threads leave work at the same time, `each` pieces in a round. Nothing may be undone once
/// both are through.
void strandNothing(int rounds, std::array<std::uint64_t, 2> each) {
  CountingWork work;
  Mutex mutex(work);
  boost::barrier round_begins(2);
  boost::barrier round_ends(2);
  std::atomic<std::uint64_t> stranded{0};
  auto const play = [&](std::size_t self) FLEXALLOC_NO_THREAD_SAFETY_ANALYSIS {
    for (int round = 0; round < rounds; ++round) {
      round_begins.wait();
      for (std::uint64_t i = 0; i < each[self]; ++i) {
        work.leave();
        if (mutex.tryLock()) mutex.unlock();
      }
      round_ends.wait();
      if (self == 0 && work.pending()) ++stranded;
    }
    return true;
  };
  Task<bool> other([&] { return play(1); });
  EXPECT_TRUE(play(0));
  EXPECT_TRUE(other.get());
  EXPECT_EQ(stranded, 0U) << "work was left undone, and nobody held the mutex";
  EXPECT_EQ(work.done, static_cast<std::uint64_t>(rounds) * (each[0] + each[1]));
}

// The work of a thread whose try failed is done by whoever holds the mutex, however late it comes.
TEST(Mutex, NeverStrandsWork) { strandNothing(20'000, {4, 4}); }

TEST(Mutex, NeverStrandsWorkBesideItsOwner) { strandNothing(500, {4 * kShortestPatience, 1}); }

class Tombstone final : public Retired {
 public:
  Tombstone(Mutex& mutex, bool& free_when_destroyed)
      : mutex_(mutex), free_when_destroyed_(free_when_destroyed) {}
  ~Tombstone() override { free_when_destroyed_ = Lock(mutex_, kTryToLock).owned(); }

 private:
  Mutex& mutex_;
  bool& free_when_destroyed_;
};

TEST(Mutex, DestroysWhatWasRetiredRightAfterItLetGo) {
  CountingWork work;
  Mutex mutex(work);
  bool free_when_destroyed = false;
  Lock lock(mutex);
  work.retire(std::make_unique<Tombstone>(mutex, free_when_destroyed));
  EXPECT_FALSE(free_when_destroyed);
  lock.unlock();
  EXPECT_TRUE(free_when_destroyed);
}

TEST(Lock, DoesNothingTwice) {
  CountingWork work;
  Mutex mutex(work);
  [&]() FLEXALLOC_NO_THREAD_SAFETY_ANALYSIS {
    Lock lock(mutex);
    EXPECT_TRUE(lock.owned());
    lock.lock();
    lock.unlock();
    lock.unlock();
    EXPECT_FALSE(lock.owned());
    EXPECT_FALSE(lock.owns_lock());
    lock.lock();
    EXPECT_TRUE(lock.owned());
  }();
  EXPECT_TRUE(Lock(mutex, kTryToLock).owned()) << "its destruction lets go";
}

TEST(Gap, HasTheLockAgainHoweverItEnds) {
  CountingWork work;
  Mutex mutex(work);
  [&]() FLEXALLOC_NO_THREAD_SAFETY_ANALYSIS {
    Lock lock(mutex);
    try {
      Gap const gap(lock);
      EXPECT_FALSE(lock.owned());
      throw 1;
    } catch (int) {
      EXPECT_TRUE(lock.owned());
    }
  }();
}

}  // namespace
}  // namespace flex::sync
