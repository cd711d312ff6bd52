// SPDX-License-Identifier: Apache-2.0
// Each broken rule is told, and nothing that keeps the rules is. // case 12
#include <vector>

#include <gtest/gtest.h>

#include <flex/flex_allocator.hpp>
#include <flex/sync/lock_rules.hpp>
#include <flex/sync/mutex.hpp>

#include "sandbox.hpp"

namespace flex::sync {
namespace {

#if FLEXALLOC_CHECK_LOCK_RULES

thread_local bool attached = false;
thread_local int begun = 0;
thread_local int ended = 0;
std::vector<LockRule>* broken = nullptr;

class NoWork final : public DeferredWork {
  void run() noexcept override {}
};

/// Notes broken rules instead of ending the process, for as long as it lives.
class LockRules : public ::testing::Test {
 protected:
  LockRules() {
    broken = &broken_;
    begun = ended = 0;
    old_ = setLockRuleHandler([](LockRule rule, char const*) noexcept { broken->push_back(rule); });
    setInterpreterProbe({.attached = []() noexcept { return attached; },
                         .wait_begins = []() noexcept { ++begun; },
                         .wait_ends = []() noexcept { ++ended; }});
  }
  ~LockRules() override {
    attached = false;
    setInterpreterProbe({});
    setLockRuleHandler(old_);
  }

  void expectBroken(std::vector<LockRule> const& expected) { EXPECT_EQ(broken_, expected); }

  NoWork work_;
  Mutex mutex_{work_};
  std::vector<LockRule> broken_;
  LockRuleHandler old_ = nullptr;
};

TEST_F(LockRules, TellWhoWaitsForTheMutexWhileAttached) {
  attached = true;
  { Lock const lock(mutex_); }
  expectBroken({LockRule::wait_attached});
  EXPECT_EQ(begun, 1);
  EXPECT_EQ(ended, 1);
}

TEST_F(LockRules, LetWhoIsAttachedTry) {
  attached = true;
  {
    Lock const lock(mutex_, kTryToLock);
    EXPECT_TRUE(lock.owned());
  }
  expectBroken({});
}

TEST_F(LockRules, TellWhoAttachesWhileHolding) {
  assertMayAttach("here");
  expectBroken({});
  Lock const lock(mutex_);
  assertMayAttach("here");
  expectBroken({LockRule::attach_holding});
}

TEST_F(LockRules, TellWhoEntersForeignCodeWhileHolding) {
  Lock lock(mutex_);
  assertNoMutexHeld("here");
  expectBroken({LockRule::foreign_code});
  lock.unlock();
  assertNoMutexHeld("here");
  expectBroken({LockRule::foreign_code});
}

TEST_F(LockRules, TellWhoUsesStateWithoutTheMutex) {
  {
    Lock const lock(mutex_);
    mutex_.assertHeld();
  }
  expectBroken({});
  [&]() FLEXALLOC_NO_THREAD_SAFETY_ANALYSIS { mutex_.assertHeld(); }();
  expectBroken({LockRule::state_unlocked});
}

// A callback that keeps the lock must not make another allocator ask its device.
TEST_F(LockRules, TellADeviceCallUnderAnotherAllocatorsMutex) {
  test::Sandbox<HoldMutexDuringCallback> other(test::onDemand(2, test::kBlock));
  test::Sandbox<HoldMutexDuringCallback> box;
  auto const held = box.hold(test::kBlocks);
  CompositeAddress taken;
  auto const handle =
      box->registerMemoryPressureCallback([&](Lock&) { taken = other->allocate(test::kBlock); });
  EXPECT_THROW((void)box->allocate(test::kBlock), OutOfMemoryError);
  expectBroken({LockRule::foreign_code});
}

TEST_F(LockRules, AreKeptByTheAllocatorUnderPressure) {
  test::Sandbox<HoldMutexDuringCallback> box;
  box.litter();
  auto const handle = box->registerMemoryPressureCallback(box.collector());
  EXPECT_TRUE(box->allocate(test::kBlock));
  attached = true;
  EXPECT_TRUE(box->tryAllocateAtOnce(test::kBlock)) << "needs no waiting";
  attached = false;
  expectBroken({});
}

using LockRulesDeathTest = LockRules;

TEST_F(LockRulesDeathTest, EndTheProcessUnlessToldOtherwise) {
  ::testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_DEATH(
      {
        setLockRuleHandler(nullptr);
        Lock const lock(mutex_);
        assertMayAttach("an attaching place");
      },
      "an attaching place.*R2");
}

#else

TEST(LockRules, CostNothingWhereTheyAreNotChecked) {
  assertMayAttach("here");
  assertNoMutexHeld("here");
}

#endif

}  // namespace
}  // namespace flex::sync
