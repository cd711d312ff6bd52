// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include <flex/sync/biased_mutex.hpp>

#include "gate.hpp"
#include "task.hpp"

namespace flex::sync {
namespace {

using test::Gate;
using test::Task;

/// Makes this thread the owner, where threads can own mutexes.
void own(BiasedMutex& mutex) {
  for (std::uint64_t i = 0; i < kShortestPatience + 2; ++i) {
    ASSERT_TRUE(mutex.tryLock());
    mutex.unlock();
  }
}

bool anotherThreadGets(BiasedMutex& mutex) {
  return Task<bool>([&mutex] {
           bool const got = mutex.tryLock();
           if (got) mutex.unlock();
           return got;
         })
      .get();
}

TEST(BiasedMutex, WhatItsOwnerHoldsIsTakenForOthers) {
  BiasedMutex mutex;
  own(mutex);
  ASSERT_TRUE(mutex.tryLock());
  EXPECT_FALSE(anotherThreadGets(mutex));
  mutex.unlock();
  EXPECT_TRUE(anotherThreadGets(mutex));
}

TEST(BiasedMutex, WhatItsOwnerHoldsIsTakenForTheOwner) {
  BiasedMutex mutex;
  own(mutex);
  ASSERT_TRUE(mutex.tryLock());
  EXPECT_FALSE(mutex.tryLock());
  mutex.unlock();
  EXPECT_TRUE(mutex.tryLock());
  mutex.unlock();
}

TEST(BiasedMutex, WhoLocksWaitsUntilTheOwnerIsOut) {
  BiasedMutex mutex;
  own(mutex);
  ASSERT_TRUE(mutex.tryLock());
  bool owner_is_inside = true;  // guarded by the mutex
  Gate begun;
  Task<bool> other([&] {
    begun.pass();
    mutex.lock();
    bool const both = owner_is_inside;
    mutex.unlock();
    return both;
  });
  begun.waitForArrivals();
  begun.open();
  for (int i = 0; i < 1000; ++i) boost::this_thread::yield();  // lets a wrong one in
  owner_is_inside = false;
  mutex.unlock();
  EXPECT_FALSE(other.get());
}

TEST(BiasedMutex, TheOwnerMayLockAndGoOn) {
  BiasedMutex mutex;
  own(mutex);
  mutex.lock();
  EXPECT_FALSE(anotherThreadGets(mutex));
  mutex.unlock();
  own(mutex);
  EXPECT_TRUE(anotherThreadGets(mutex));
}

// More threads than can own it, one after the other and then all at once.
TEST(BiasedMutex, ServesMoreThreadsThanCanOwnIt) {
  BiasedMutex mutex;
  constexpr int kThreads = 12;
  std::uint64_t uses = 0;  // guarded by the mutex
  auto const use = [&] {
    std::uint64_t got = 0;
    for (std::uint64_t i = 0; i < 4 * kShortestPatience; ++i) {
      if (!mutex.tryLock()) continue;
      ++uses;
      ++got;
      mutex.unlock();
    }
    return got;
  };
  std::uint64_t counted = 0;
  std::vector<std::unique_ptr<Task<std::uint64_t>>> tasks;
  for (int i = 0; i < kThreads; ++i) {
    tasks.push_back(std::make_unique<Task<std::uint64_t>>(use));
    counted += tasks.back()->get();
  }
  EXPECT_EQ(counted, kThreads * 4 * kShortestPatience) << "one at a time, so each try succeeds";
  for (auto& task : tasks) task = std::make_unique<Task<std::uint64_t>>(use);
  for (auto& task : tasks) counted += task->get();
  EXPECT_EQ(uses, counted);
}

// One who becomes the owner again and again, and others who end that by trying and by waiting.
TEST(BiasedMutex, NobodyIsInsideBesideTheOwner) {
  BiasedMutex mutex;
  std::uint64_t uses = 0;  // guarded by the mutex
  std::atomic<bool> stop{false};
  auto const disturb = [&](bool wait) {
    std::uint64_t got = 0;
    while (!stop.load()) {
      for (std::uint64_t i = 0; i < 4 * kShortestPatience && !stop.load(); ++i) {
        boost::this_thread::yield();
      }
      if (wait) {
        mutex.lock();
      } else if (!mutex.tryLock()) {
        continue;
      }
      ++uses;
      ++got;
      mutex.unlock();
    }
    return got;
  };
  Task<std::uint64_t> trier([&] { return disturb(false); });
  Task<std::uint64_t> locker([&] { return disturb(true); });
  std::uint64_t counted = 0;
  for (int i = 0; i < 2'000'000; ++i) {
    if (!mutex.tryLock()) continue;
    ++uses;
    ++counted;
    mutex.unlock();
  }
  stop = true;
  counted += trier.get() + locker.get();
  EXPECT_EQ(uses, counted);
}

}  // namespace
}  // namespace flex::sync
