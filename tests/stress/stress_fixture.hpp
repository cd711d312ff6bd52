// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the stress tests share: real time, both strategies, a bound on how long they run.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include <boost/thread/barrier.hpp>
#include <gtest/gtest.h>

#include <flex/flex_allocator.hpp>

#include "garbage.hpp"
#include "gate.hpp"
#include "recording_callback.hpp"
#include "scripted_device.hpp"
#include "task.hpp"

namespace flex::test {

inline constexpr std::uint64_t kPiece = 1 * kKiB;

/// Ends loops after `length` of real time.
class Stopwatch {
 public:
  explicit Stopwatch(std::chrono::milliseconds length)
      : end_(std::chrono::steady_clock::now() + length) {}
  [[nodiscard]] bool running() const { return std::chrono::steady_clock::now() < end_; }

 private:
  std::chrono::steady_clock::time_point const end_;
};

/// An allocator of `pieces` pieces in one region, by the real clock.
template <class Strategy>
class Arena {
 public:
  explicit Arena(std::uint64_t pieces, Duration max_wait = std::chrono::seconds(20)) {
    AllocatorOptions options;
    options.regions = 1;
    options.max_wait = max_wait;
    device = std::make_shared<ScriptedDevice>(pieces * kPiece);
    allocator = std::make_unique<FlexAllocator<Strategy>>(device, options);
  }
  ~Arena() {
    garbage.clear();
    if (allocator != nullptr) {
      allocator->checkInvariants();
      EXPECT_EQ(allocator->statistics().allocations.current, 0);
      EXPECT_TRUE(allocator->tryAllocate(allocator->statistics().total)) << "something is lost";
      allocator.reset();
    }
    EXPECT_EQ(device->regionsHeld(), 0U);
  }
  Arena(Arena const&) = delete;
  Arena& operator=(Arena const&) = delete;

  FlexAllocator<Strategy>* operator->() { return allocator.get(); }

  [[nodiscard]] MemoryPressureCallback collector() {
    return [this](Lock& lock) { withoutLock(lock, [this] { garbage.clear(); }); };
  }

  std::shared_ptr<ScriptedDevice> device;
  std::unique_ptr<FlexAllocator<Strategy>> allocator;
  Garbage garbage;
};

/// Runs `work(index)` on `count` threads that start together; throws what one of them threw.
template <class Work>
void together(unsigned count, Work work) {
  boost::barrier start(count);
  std::vector<std::unique_ptr<Task<bool>>> tasks;
  for (unsigned i = 0; i < count; ++i) {
    tasks.push_back(std::make_unique<Task<bool>>([&start, &work, i] {
      start.wait();
      work(i);
      return true;
    }));
  }
  for (auto& task : tasks) task->get();
}

/// A small generator of its own a thread; the same sequence every time.
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : state_(seed * 2 + 1) {}
  std::uint64_t below(std::uint64_t bound) {
    state_ ^= state_ << 13U;
    state_ ^= state_ >> 7U;
    state_ ^= state_ << 17U;
    return state_ % bound;
  }

 private:
  std::uint64_t state_;
};

template <class Strategy>
class Stress : public ::testing::Test {};

struct StressName {
  template <class Strategy>
  static std::string GetName(int /*index*/) {  // NOLINT(readability-identifier-naming): gtest's
    std::string name(Strategy::kName);
    std::ranges::replace(name, '-', '_');
    return name;
  }
};

using StressStrategies = ::testing::Types<HoldMutexDuringCallback, ReleaseAndCondvar>;
TYPED_TEST_SUITE(Stress, StressStrategies, StressName);

}  // namespace flex::test
