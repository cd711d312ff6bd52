// SPDX-License-Identifier: Apache-2.0
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

// The work of a thread whose try failed is done by whoever holds the mutex, however late it comes.
TEST(Mutex, NeverStrandsWork) {
  CountingWork work;
  Mutex mutex(work);
  constexpr unsigned kThreads = 2;
  constexpr int kRounds = 20'000;
  boost::barrier round_begins(kThreads);
  boost::barrier round_ends(kThreads);
  std::atomic<std::uint64_t> stranded{0};
  auto const play = [&](bool judge) FLEXALLOC_NO_THREAD_SAFETY_ANALYSIS {
    for (int round = 0; round < kRounds; ++round) {
      round_begins.wait();
      for (int i = 0; i < 4; ++i) {
        work.leave();
        if (mutex.tryLock()) mutex.unlock();
      }
      round_ends.wait();
      if (judge && work.pending()) ++stranded;
    }
    return true;
  };
  Task<bool> other([&] { return play(false); });
  EXPECT_TRUE(play(true));
  EXPECT_TRUE(other.get());
  EXPECT_EQ(stranded, 0U) << "work was left undone, and nobody held the mutex";
  EXPECT_EQ(work.done, std::uint64_t{kThreads} * kRounds * 4);
}

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
