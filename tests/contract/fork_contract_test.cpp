// SPDX-License-Identifier: Apache-2.0
// A child of a process with many threads has one of them; it never hangs, nor does its parent.

#include <csignal>
#include <functional>

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <flex/sync/fork_mutex.hpp>

#include "pressure_contract.hpp"

namespace flex::test {
namespace {

/// Called by the forking thread before anything is made ready for the fork.
std::function<void()> before_the_fork;
/// Called by the forking thread when the allocators are ready for the fork.
std::function<void()> in_the_fork;

// The handlers that run before a fork do so in the reverse of the order in which they were
// installed, so this one is there before any allocator is. The child's is the first: a child that
// hangs in another one ends, too.
int const kInstalled = ::pthread_atfork(
    [] {
      if (in_the_fork) in_the_fork();
    },
    nullptr, [] { ::alarm(static_cast<unsigned>(2 * kPatience.count())); });

enum Ending : int { kGood = 10, kBad = 11, kThrown = 12 };

/// How a child ends that does `work`, forked by a thread of its own; a negative signal if it hangs.
template <class Work>
int endingOfChild(Work work) {
  Task<pid_t> fork([&work] {
    pid_t const child = ::fork();
    if (child != 0) return child;
    int ending = kThrown;
    try {
      ending = work() ? kGood : kBad;
    } catch (...) {
    }
    ::_exit(ending);
  });
  pid_t const child = fork.get();
  int status = 0;
  auto const deadline = std::chrono::steady_clock::now() + kPatience;
  while (::waitpid(child, &status, WNOHANG) == 0) {
    if (std::chrono::steady_clock::now() > deadline) ::kill(child, SIGKILL);
    ::usleep(1000);
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

TYPED_TEST(PressureContract, ChildForkedDuringACallbackIsServed) {
  Sandbox<TypeParam> box;
  auto const held = box.hold(kBlocks - 1);
  Gate gate;
  OpenAtEnd const opener(gate);
  RecordingCallback const callback([&](Lock& lock) { withoutLock(lock, [&] { gate.pass(); }); });
  auto const handle = box->registerMemoryPressureCallback(callback);
  auto const inside = box.request(2 * kBlock, neverSleep());
  gate.waitForArrivals();
  EXPECT_EQ(endingOfChild([&] {
              (*box).checkInvariants();
              return static_cast<bool>(box->allocate(kBlock, {}, neverSleep()));
            }),
            kGood);
  gate.open();
  EXPECT_TRUE(outOfMemory([&] { return inside->get(); }));
}

// The mutex belongs to this thread, and another one forks.
TYPED_TEST(PressureContract, ChildGetsTheMutexFromAnOwnerThatDoesNotExistThere) {
  Sandbox<TypeParam> box;
  auto const useOften = [&] {
    for (std::uint64_t i = 0; i < 2 * sync::kShortestPatience; ++i) {
      if (!box->tryAllocate(kBlock)) return false;
    }
    return true;
  };
  EXPECT_TRUE(useOften());
  EXPECT_EQ(endingOfChild([&] {
              if (!useOften()) return false;         // as its own owner
              if (!sync::canBeOwned()) return true;  // ThreadSanitizer: a child starts no threads
              return Task<bool>(useOften).get();
            }),
            kGood);
  EXPECT_TRUE(useOften());
}

TYPED_TEST(PressureContract, ChildForkedDuringADeviceCallAsksTheDeviceItself) {
  Sandbox<TypeParam> box(onDemand(2, kCapacity / 2));
  Gate gate;
  OpenAtEnd const opener(gate);
  box.device->follow([&](std::uint64_t call) {
    if (call == 1) gate.pass();
    return DeviceAnswer::give;
  });
  auto const asking = box.request(kBlock);
  gate.waitForArrivals();
  EXPECT_EQ(endingOfChild([&] { return static_cast<bool>(box->allocate(kBlock)); }), kGood);
  gate.open();
  EXPECT_TRUE(asking->get());
}

TYPED_TEST(PressureContract, AllocatorMayBeMadeInTheMiddleOfAFork) {
  auto const device = std::make_shared<ScriptedDevice>(kCapacity);
  Gate gate;
  OpenAtEnd const opener(gate);
  device->follow([&](std::uint64_t) {
    gate.pass();
    return DeviceAnswer::give;
  });
  Task<bool> making([&] {
    FlexAllocator<TypeParam> allocator(device, oneRegion());
    return static_cast<bool>(allocator.allocate(kBlock));
  });
  gate.waitForArrivals();
  EXPECT_EQ(endingOfChild([] {
              FlexAllocator<TypeParam> allocator(std::make_shared<ScriptedDevice>(kCapacity),
                                                 oneRegion());
              return static_cast<bool>(allocator.allocate(kBlock));
            }),
            kGood);
  gate.open();
  EXPECT_TRUE(making.get());
}

// The last block of an allocator that is gone is freed when the fork has its mutex: whoever lets go
// of the mutex ends the engine.
TYPED_TEST(PressureContract, AllocatorMayEndInTheMiddleOfAFork) {
  ASSERT_EQ(kInstalled, 0);
  Sandbox<TypeParam> box;
  auto held = box.hold(1);
  box.allocator.reset();
  in_the_fork = [&] {
    Task<bool> free([&] {
      held.clear();
      return true;
    });
    EXPECT_TRUE(free.get());
  };
  EXPECT_EQ(endingOfChild([&] { return box.device->regionsHeld() == 0; }), kGood);
  in_the_fork = nullptr;
  EXPECT_EQ(box.device->regionsHeld(), 0U);
}

TEST(ForkMutex, IsHeldByNobodyInAForkedChild) {
  sync::ForkMutex mutex;
  std::uint64_t first = 0;
  std::uint64_t second = 0;
  Gate gate;
  OpenAtEnd const opener(gate);
  Task<bool> holding([&] {
    sync::RawUniqueLock const lock(mutex.raw());
    ++first;
    gate.pass();
    ++second;
    return true;
  });
  gate.waitForArrivals();
  static int const installed = ::pthread_atfork(
      [] {
        if (before_the_fork) before_the_fork();
      },
      nullptr, nullptr);
  ASSERT_EQ(installed, 0);
  before_the_fork = [&] { gate.open(); };
  Task<int> forking(
      [&] { return endingOfChild([&] { return mutex.raw().try_lock() && first == second; }); });
  EXPECT_EQ(forking.get(), kGood);
  EXPECT_TRUE(holding.get());
  before_the_fork = nullptr;
}

}  // namespace
}  // namespace flex::test
