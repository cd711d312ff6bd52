// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <flex/sync/parker.hpp>

#include "task.hpp"

namespace flex::sync {
namespace {

constexpr Duration kLong = std::chrono::seconds(60);
using test::Task;

TEST(Parker, TakesAPermitThatWasGivenBefore) {
  Parker parker;
  parker.signal();
  EXPECT_TRUE(parker.park(kLong));
  EXPECT_FALSE(parker.park(Duration(0))) << "a permit is taken once";
}

TEST(Parker, KeepsOnePermitHoweverManyAreGiven) {
  Parker parker;
  parker.signal();
  parker.signal();
  EXPECT_TRUE(parker.park(kLong));
  EXPECT_FALSE(parker.park(Duration(0)));
}

TEST(Parker, EndsWithItsTime) {
  Parker parker;
  EXPECT_FALSE(parker.park(std::chrono::milliseconds(1)));
  EXPECT_FALSE(parker.park(Duration(0)));
}

TEST(Parker, IsWokenByASignalFromAnotherThread) {
  Parker parker;
  Task<bool> sleeper([&] { return parker.park(kLong); });
  parker.signal();
  EXPECT_TRUE(sleeper.get());
}

TEST(Parker, ANudgeEndsTheSleepWithoutAPermit) {
  Parker parker;
  Task<bool> sleeper([&] { return parker.park(kLong); });
  parker.nudge();
  EXPECT_FALSE(sleeper.get());
  parker.signal();
  EXPECT_TRUE(parker.park(Duration(0)));
}

TEST(Parker, AnInterruptionKeepsThePermit) {
  Parker parker;
  Task<bool> sleeper([&] { return parker.park(kLong); });
  sleeper.interrupt();
  EXPECT_TRUE(sleeper.wasInterrupted());
  EXPECT_FALSE(parker.park(Duration(0)));
  parker.signal();
  Task<bool> interrupted([&] {
    boost::this_thread::interruption_point();
    return false;
  });
  interrupted.join();
  EXPECT_TRUE(parker.park(Duration(0)));
}

}  // namespace
}  // namespace flex::sync
