// SPDX-License-Identifier: Apache-2.0
#include <functional>

#include <gtest/gtest.h>

#include <flex/pressure.hpp>

namespace flex {
namespace {

class NoWork final : public sync::DeferredWork {
  void run() noexcept override {}
};

void plain(Lock&) {}

TEST(MemoryPressureCallback, IsEmptyWithoutACallable) {
  EXPECT_FALSE(MemoryPressureCallback());
  EXPECT_FALSE(MemoryPressureCallback(nullptr));
  EXPECT_FALSE(MemoryPressureCallback(std::function<void(Lock&)>()));
  EXPECT_FALSE(MemoryPressureCallback(MemoryPressureCallback::Function()));
  EXPECT_FALSE(MemoryPressureCallback(static_cast<void (*)(Lock&)>(nullptr)));
}

TEST(MemoryPressureCallback, TakesBothForms) {
  NoWork work;
  sync::Mutex mutex(work);
  Lock lock(mutex);
  PressureEvent const event{.requested = 7};
  EXPECT_EQ(MemoryPressureCallback(&plain)(lock, event).outcome, ReclaimResult::Outcome::done);
  int runs = 0;
  MemoryPressureCallback const counting([&runs](Lock&) { ++runs; });
  (void)counting(lock, event);
  MemoryPressureCallback const answering([](Lock&, PressureEvent const& seen) {
    return ReclaimResult{.outcome = ReclaimResult::Outcome::skipped,
                         .note = std::to_string(seen.requested)};
  });
  EXPECT_EQ(answering(lock, event).outcome, ReclaimResult::Outcome::skipped);
  EXPECT_EQ(answering(lock, event).note, "7");
  EXPECT_EQ(runs, 1);
}

}  // namespace
}  // namespace flex
