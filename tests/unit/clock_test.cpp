// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <flex/sync/clock.hpp>

#include "manual_clock.hpp"
#include "task.hpp"

namespace flex {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(Clock, AddsUpToTheLastMoment) {
  TimePoint const start{};
  EXPECT_EQ(saturatingAdd(start, seconds(1)) - start, seconds(1));
  EXPECT_EQ(saturatingAdd(TimePoint::max() - Duration(1), hours(24)), TimePoint::max());
  EXPECT_EQ(saturatingAdd(TimePoint::max(), Duration(0)), TimePoint::max());
}

TEST(SteadyClock, NeverGoesBack) {
  TimePoint const before = steadyClock()->now();
  EXPECT_GE(steadyClock()->now(), before);
}

// case 72
TEST(SteadyClock, SleepsInSlices) {
  sync::Parker parker;
  TimePoint const before = steadyClock()->now();
  steadyClock()->park(parker, saturatingAdd(before, hours(24)));
  Duration const slept = steadyClock()->now() - before;
  EXPECT_GE(slept, milliseconds(50));
  EXPECT_LT(slept, seconds(20)) << "it slept to its end, not for a slice";
}

TEST(SteadyClock, DoesNotSleepIntoThePast) {
  sync::Parker parker;
  TimePoint const before = steadyClock()->now();
  steadyClock()->park(parker, before - seconds(5));
  EXPECT_LT(steadyClock()->now() - before, seconds(5));
}

TEST(SteadyClock, ReturnsForASignal) {
  sync::Parker parker;
  parker.signal();
  steadyClock()->park(parker, TimePoint::max());
  EXPECT_FALSE(parker.park(Duration(0))) << "the permit is still there";
}

TEST(ManualClock, WakesWhoseTimeHasCome) {
  test::ManualClock clock;
  sync::Parker parker;
  test::Task<bool> sleeper([&] {
    while (clock.now() < TimePoint(seconds(2))) clock.park(parker, TimePoint(seconds(2)));
    return true;
  });
  clock.waitForParked(1);
  clock.advance(seconds(1));
  clock.waitForParked(1);
  EXPECT_FALSE(sleeper.done());
  clock.advance(seconds(1));
  EXPECT_TRUE(sleeper.get());
  EXPECT_EQ(clock.parked(), 0U);
}

}  // namespace
}  // namespace flex
