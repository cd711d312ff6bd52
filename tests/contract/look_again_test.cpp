// SPDX-License-Identifier: Apache-2.0
// ReleaseAndCondvar looks for garbage again while requests sleep. // case 61

#include <gtest/gtest.h>

#include "sandbox.hpp"

namespace flex::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Duration kLookAgain = milliseconds(100);
constexpr Duration kInAnyCase = 100 * kLookAgain;

/// A full device, and a request for some blocks that sleeps after two reclaims in vain.
class Sleeper {
 public:
  explicit Sleeper(std::uint64_t blocks = 2)
      : handle(box->registerMemoryPressureCallback(callback)) {
    waiting = box.request(blocks * kBlock, waitAtMost(seconds(60)));
    box.clock->waitForSettled(1);
    EXPECT_EQ(callback.runs(), 1U);
    advance(kLookAgain);
    EXPECT_EQ(callback.runs(), 2U);
  }

  [[nodiscard]] std::size_t looks() const { return callback.runs() - 2; }

  /// Has another request served past the sleeping one, and what it got become garbage.
  void letAnotherLitter() {
    held.pop_back();
    box.garbage.add(box->allocate(kBlock));
  }
  /// Whoever sleeps has looked at the clock, and sleeps again. Who was just about to sleep may have
  /// looked before time moved, hence the second step.
  void advance(Duration length) {
    for (Duration const step : {length, Duration(1)}) {
      box.clock->advance(step);
      waitUntil([&] { return box.clock->settled() == sleepers || waiting->done(); }, "all looked");
    }
  }

  Sandbox<ReleaseAndCondvar> box;
  std::size_t sleepers = 1;
  std::vector<CompositeAddress> held = box.hold(kBlocks);
  Duration reclaim_takes{0};
  RecordingCallback callback{[this](Lock&) {
    box.clock->advance(reclaim_takes);
    box.garbage.clear();
  }};
  CallbackHandle handle;
  std::unique_ptr<Allocation> waiting;
};

TEST(LookAgain, SoonIfOthersWereServedSince) {
  Sleeper sleeper;
  sleeper.letAnotherLitter();
  sleeper.letAnotherLitter();
  EXPECT_EQ(sleeper.looks(), 0U);
  sleeper.advance(kLookAgain);
  EXPECT_TRUE(sleeper.waiting->get()) << "nobody else asks any more";
  EXPECT_EQ(sleeper.looks(), 1U);
}

TEST(LookAgain, SoonIfOneWasHandedMemoryAndDroppedIt) {
  Sandbox<ReleaseAndCondvar> box;
  RecordingCallback const callback = box.collector();
  auto const handle = box->registerMemoryPressureCallback(callback);
  std::vector<CompositeAddress> held = box.hold(kBlocks);
  auto first = box.sleepingRequest(kBlock, 1, waitAtMost(seconds(60)));
  auto second = box.sleepingRequest(kBlock, 2, waitAtMost(seconds(60)));
  std::size_t const reclaims = callback.runs();
  held.pop_back();
  box.garbage.add(first->get());
  box.clock->waitForParked(1);
  box.clock->advance(kLookAgain);
  EXPECT_TRUE(second->get());
  EXPECT_EQ(callback.runs(), reclaims + 1);
}

TEST(LookAgain, NotBefore) {
  Sleeper sleeper;
  sleeper.letAnotherLitter();
  sleeper.advance(kLookAgain - milliseconds(1));
  EXPECT_EQ(sleeper.looks(), 0U);
  sleeper.held.clear();
  EXPECT_TRUE(sleeper.waiting->get());
}

TEST(LookAgain, OnceForEveryTimeThatOthersWereServed) {
  Sleeper sleeper;
  sleeper.letAnotherLitter();
  sleeper.advance(kLookAgain);
  EXPECT_EQ(sleeper.looks(), 1U);
  for (int i = 0; i < 5; ++i) sleeper.advance(kLookAgain);
  EXPECT_EQ(sleeper.looks(), 1U) << "nobody was served since";
  sleeper.held.clear();
  EXPECT_TRUE(sleeper.waiting->get());
}

// What was in use when the last reclaim ran may be garbage now.
TEST(LookAgain, LateIfNobodyWasServed) {
  Sleeper sleeper;
  for (CompositeAddress& address : sleeper.held) sleeper.box.garbage.add(std::move(address));
  sleeper.advance(kInAnyCase - milliseconds(1));
  EXPECT_EQ(sleeper.looks(), 0U);
  sleeper.advance(milliseconds(1));
  EXPECT_TRUE(sleeper.waiting->get());
  EXPECT_EQ(sleeper.looks(), 1U);
}

TEST(LookAgain, RarelyIfReclaimsTakeLong) {
  Sleeper sleeper(4);
  sleeper.reclaim_takes = milliseconds(50);
  sleeper.letAnotherLitter();
  sleeper.advance(kLookAgain);
  EXPECT_EQ(sleeper.looks(), 1U);
  sleeper.letAnotherLitter();
  sleeper.advance(9 * milliseconds(50) - milliseconds(1));
  EXPECT_EQ(sleeper.looks(), 1U) << "more than a tenth of the time";
  sleeper.held.clear();
  EXPECT_TRUE(sleeper.waiting->get());
}

TEST(LookAgain, ByTheFirstAlone) {
  Sleeper sleeper;
  auto second = sleeper.box.request(2 * kBlock, waitAtMost(seconds(60)));
  sleeper.sleepers = 2;
  sleeper.box.clock->waitForSettled(2);
  EXPECT_EQ(sleeper.looks(), 1U) << "it came after the first reclaim";
  sleeper.letAnotherLitter();
  sleeper.advance(kLookAgain);
  EXPECT_EQ(sleeper.looks(), 2U);
  sleeper.held.clear();
  EXPECT_TRUE(sleeper.waiting->get());
  EXPECT_TRUE(second->get());
}

TEST(LookAgain, RefusesWhatIsNoInterval) {
  for (Duration const wrong : {Duration(0), Duration(-1), kLongestWait + Duration(1)}) {
    EXPECT_THROW(
        Sandbox<ReleaseAndCondvar>(oneRegion(), singleDomain(kCapacity), {.look_again = wrong}),
        std::invalid_argument);
  }
}

}  // namespace
}  // namespace flex::test
