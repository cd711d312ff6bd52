// SPDX-License-Identifier: Apache-2.0
// What ReleaseAndCondvar promises beyond the common contract: order, and bounded overtaking.

#include <gtest/gtest.h>

#include "sandbox.hpp"

namespace flex::test {
namespace {

using std::chrono::seconds;
using Box = Sandbox<ReleaseAndCondvar>;

/// All blocks used; requests queue behind each other in the order of enqueue().
struct FullBox {
  explicit FullBox(std::uint64_t overtake_limit = 1024)
      : box(oneRegion(), singleDomain(kCapacity), {.overtake_limit = overtake_limit}),
        held(box.hold(kBlocks)) {}

  Allocation& enqueue(std::uint64_t nbytes, Duration longest = kLongestWait) {
    queue.push_back(box.sleepingRequest(nbytes, ++asleep, waitAtMost(longest)));
    return *queue.back();
  }
  /// Frees `count` neighbouring blocks.
  void release(std::size_t count) {
    for (; count > 0; --count) held.pop_back();
  }

  Box box;
  std::vector<CompositeAddress> held;
  std::size_t asleep = 0;
  std::vector<std::unique_ptr<Allocation>> queue;
};

TEST(ReleaseAndCondvarQueue, HandsMemoryOverInOrderOfArrival) {
  FullBox full;
  Allocation& first = full.enqueue(kBlock);
  Allocation& second = full.enqueue(kBlock);
  Allocation& third = full.enqueue(kBlock);
  full.release(1);
  first.join();
  EXPECT_FALSE(second.done());
  EXPECT_FALSE(third.done());
  full.release(1);
  second.join();
  EXPECT_FALSE(third.done());
  full.release(1);
  EXPECT_TRUE(third.get());
  EXPECT_TRUE(second.get());
  EXPECT_TRUE(first.get());
  EXPECT_EQ(full.box.pressure().handoffs, 3U);
  EXPECT_EQ(full.box.pressure().overtakes, 0U);
}

TEST(ReleaseAndCondvarQueue, NewcomerDoesNotTakeWhatTheFirstOneCanUse) {
  FullBox full;
  Allocation& first = full.enqueue(kBlock);
  Gate awake;
  OpenAtEnd const open(awake);
  full.box.clock->afterNextPark([&] { awake.pass(); });
  // The hook is taken by the first one to wake, which is the one that is served.
  full.release(1);
  awake.waitForArrivals();
  EXPECT_FALSE(full.box->tryAllocate(kBlock)) << "it was handed over, though nobody took it yet";
  awake.open();
  EXPECT_TRUE(first.get());
}

TEST(ReleaseAndCondvarQueue, NewcomerOvertakesWithWhatTheFirstOneCannotUse) {
  FullBox full;
  Allocation& first = full.enqueue(4 * kBlock);
  full.release(2);
  CompositeAddress newcomer = full.box->allocate(kBlock);
  EXPECT_TRUE(newcomer);
  EXPECT_EQ(full.box.pressure().overtakes, 1U);
  EXPECT_FALSE(first.done());
  newcomer.reset();
  full.release(2);
  EXPECT_TRUE(first.get());
}

TEST(ReleaseAndCondvarQueue, WaiterBehindTheFirstOneOvertakesWithWhatThatCannotUse) {
  FullBox full;
  Allocation& first = full.enqueue(4 * kBlock);
  Allocation& second = full.enqueue(kBlock);
  full.release(1);
  CompositeAddress overtaken = second.get();
  EXPECT_TRUE(overtaken);
  EXPECT_FALSE(first.done());
  EXPECT_EQ(full.box.pressure().overtakes, 1U);
  overtaken.reset();
  full.release(3);
  EXPECT_TRUE(first.get());
}

TEST(ReleaseAndCondvarQueue, NobodyOvertakesBeyondTheLimit) {
  FullBox full(2);
  Allocation& first = full.enqueue(4 * kBlock);
  full.release(3);
  std::vector<CompositeAddress> newcomers;
  newcomers.push_back(full.box->allocate(kBlock));
  newcomers.push_back(full.box->allocate(kBlock));
  EXPECT_FALSE(full.box->tryAllocate(kBlock));
  EXPECT_FALSE(full.box->tryAllocateAtOnce(kBlock));
  Allocation& third = full.enqueue(kBlock);
  EXPECT_FALSE(third.done()) << "a third one passed";
  EXPECT_EQ(full.box->statistics().free, kBlock);
  EXPECT_EQ(full.box.pressure().overtakes, 2U);
  newcomers.clear();
  full.release(2);
  EXPECT_TRUE(first.get());
  EXPECT_TRUE(third.get());
}

TEST(ReleaseAndCondvarQueue, LimitStartsAnewWithEveryFirstOne) {
  FullBox full(1);
  Allocation& first = full.enqueue(4 * kBlock, seconds(1));
  Allocation& second = full.enqueue(4 * kBlock);
  full.release(3);
  CompositeAddress const overtaker = full.box->allocate(kBlock);
  EXPECT_FALSE(full.box->tryAllocate(kBlock));
  full.box.clock->advance(seconds(1));
  EXPECT_EQ(reasonOf(first), FailureReason::exhausted);
  EXPECT_TRUE(full.box->tryAllocate(kBlock));
  full.release(4);
  EXPECT_TRUE(second.get());
}

// Only who takes memory overtakes: an attempt in vain costs the next newcomer nothing.
TEST(ReleaseAndCondvarQueue, NewcomerThatGetsNothingIsNoOvertaker) {
  FullBox full(2);
  Allocation& first = full.enqueue(4 * kBlock);
  full.release(1);
  for (int i = 0; i < 10; ++i) {
    EXPECT_FALSE(full.box->tryAllocate(2 * kBlock));
    EXPECT_FALSE(full.box->tryAllocateAtOnce(2 * kBlock));
  }
  EXPECT_EQ(full.box.pressure().overtakes, 0U);
  EXPECT_TRUE(full.box->tryAllocate(kBlock));
  EXPECT_EQ(full.box.pressure().overtakes, 1U);
  full.release(3);
  EXPECT_TRUE(first.get());
}

// Whoever becomes the first one has precedence from that moment on, awake or not.
TEST(ReleaseAndCondvarQueue, NewcomerDoesNotTakeWhatTheNewFirstOneCanUse) {
  FullBox full(1);
  Gate awake;
  OpenAtEnd const open(awake);
  Allocation& first = full.enqueue(4 * kBlock, seconds(1));
  full.release(2);
  CompositeAddress const overtaker = full.box->allocate(kBlock);  // the limit is reached
  Allocation& second = full.enqueue(kBlock);                      // would fit, and may not overtake
  EXPECT_FALSE(second.done());
  auto const thread = second.id();
  full.box.clock->afterEveryPark([&] {
    if (sync::thisThread() == thread) awake.pass();  // it is slow to wake
  });
  full.box.clock->advance(seconds(1));
  EXPECT_EQ(reasonOf(first), FailureReason::exhausted);
  EXPECT_FALSE(full.box->tryAllocate(kBlock)) << "took what the new first one can use";
  awake.open();
  EXPECT_TRUE(second.get());
}

TEST(ReleaseAndCondvarQueue, WhoLeavesInterruptedMakesRoomForTheNext) {
  FullBox full(0);
  Allocation& first = full.enqueue(4 * kBlock);
  Allocation& second = full.enqueue(kBlock);
  full.release(1);
  EXPECT_FALSE(second.done());
  first.interrupt();
  EXPECT_TRUE(first.wasInterrupted());
  EXPECT_TRUE(second.get()) << "no time has passed";
}

TEST(ReleaseAndCondvarQueue, MemoryHandedToAnInterruptedRequestGoesToTheNext) {
  FullBox full;
  Allocation& first = full.enqueue(kBlock);
  Allocation& second = full.enqueue(kBlock);
  // The first one may still be on its way back to sleep: the reclaim of the second one woke it.
  std::atomic<bool> interrupt{true};
  full.box.clock->afterEveryPark([&interrupt] {
    if (interrupt.exchange(false)) throw boost::thread_interrupted();
  });
  full.release(1);
  EXPECT_TRUE(first.wasInterrupted());
  EXPECT_TRUE(second.get()) << "no time has passed";
}

// What may not be taken does not make it pressure.
TEST(ReleaseAndCondvarQueue, NewcomerAtTheLimitRunsNoCallbackWhileItsMemoryIsFree) {
  FullBox full(0);
  RecordingCallback const callback;
  auto const handle = full.box->registerMemoryPressureCallback(callback);
  Allocation& first = full.enqueue(4 * kBlock);
  EXPECT_EQ(callback.runs(), 1U);
  full.release(1);
  Allocation& newcomer = full.enqueue(kBlock);
  EXPECT_EQ(callback.runs(), 1U) << "it met no exhaustion, only precedence";
  full.release(4);
  EXPECT_TRUE(first.get());
  EXPECT_TRUE(newcomer.get());
}

}  // namespace
}  // namespace flex::test
