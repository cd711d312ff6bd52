// SPDX-License-Identifier: Apache-2.0
#pragma once
// Time that stands still until a test moves it.

#include <algorithm>
#include <cstddef>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include <boost/thread/mutex.hpp>

#include <flex/sync/clock.hpp>

#include "watchdog.hpp"

namespace flex::test {

/// Whoever sleeps by this clock sleeps until its permit comes or advance() reaches its end.
///
/// Thread-safe: any member may be called from any thread at any time.
class ManualClock final : public Clock {
 public:
  [[nodiscard]] TimePoint now() const noexcept override { return TimePoint(Duration(now_.load())); }

  void park(sync::Parker& parker, TimePoint until) override {
    Registration registration(*this, parker);
    runHook(before_park_);
    if (registration.sleepsBefore(until)) parker.park(kPatience);
    runHook(after_park_);
    std::function<void()> const after_every_park = currentHook(after_every_park_);
    if (after_every_park) after_every_park();
  }

  void advance(Duration length) {
    boost::unique_lock<boost::mutex> const lock(mutex_);
    now_ += length.count();
    for (Registration* const sleeper : parked_) sleeper->parker().nudge();
  }

  /// Threads inside park() now. One that was woken counts until it has returned.
  [[nodiscard]] std::size_t parked() const {
    boost::unique_lock<boost::mutex> const lock(mutex_);
    return parked_.size();
  }
  /// Of these, the ones that came to sleep, or slept again, after time last moved.
  [[nodiscard]] std::size_t settled() const {
    boost::unique_lock<boost::mutex> const lock(mutex_);
    return static_cast<std::size_t>(std::ranges::count_if(
        parked_, [this](Registration const* sleeper) { return sleeper->asleepAt(now()); }));
  }
  /// Calls of park() so far.
  [[nodiscard]] std::size_t parks() const {
    boost::unique_lock<boost::mutex> const lock(mutex_);
    return parks_;
  }
  void waitForParked(std::size_t count) const {
    waitUntil([&] { return parked() >= count; }, "enough threads sleep by the manual clock");
  }

  void waitForSettled(std::size_t count) const {
    waitUntil([&] { return settled() == count; }, "enough threads sleep by the time that it is");
  }

  /// Has the next thread that comes to sleep run `hook` first: its mutex is free, it is not yet
  /// asleep.
  void beforeNextPark(std::function<void()> hook) { setHook(before_park_, std::move(hook)); }
  /// Has the next thread that wakes run `hook` before it goes on.
  void afterNextPark(std::function<void()> hook) { setHook(after_park_, std::move(hook)); }
  /// The same for every thread that wakes.
  void afterEveryPark(std::function<void()> hook) { setHook(after_every_park_, std::move(hook)); }

 private:
  class Registration {
   public:
    Registration(ManualClock& clock, sync::Parker& parker) : clock_(clock), parker_(parker) {
      boost::unique_lock<boost::mutex> const lock(clock_.mutex_);
      clock_.parked_.push_back(this);
      ++clock_.parks_;
    }
    Registration(Registration const&) = delete;
    Registration& operator=(Registration const&) = delete;
    ~Registration() {
      boost::unique_lock<boost::mutex> const lock(clock_.mutex_);
      std::erase(clock_.parked_, this);
    }

    /// Whether there is reason to sleep; notes that it is done.
    [[nodiscard]] bool sleepsBefore(TimePoint until) {
      boost::unique_lock<boost::mutex> const lock(clock_.mutex_);
      if (clock_.now() >= until) return false;
      asleep_at_ = clock_.now();
      return true;
    }
    [[nodiscard]] bool asleepAt(TimePoint when) const { return asleep_at_ == when; }
    [[nodiscard]] sync::Parker& parker() const { return parker_; }

   private:
    ManualClock& clock_;
    sync::Parker& parker_;
    std::optional<TimePoint> asleep_at_;
  };

  void setHook(std::function<void()>& place, std::function<void()> hook) {
    boost::unique_lock<boost::mutex> const lock(mutex_);
    place = std::move(hook);
  }
  [[nodiscard]] std::function<void()> currentHook(std::function<void()> const& place) const {
    boost::unique_lock<boost::mutex> const lock(mutex_);
    return place;
  }
  void runHook(std::function<void()>& place) {
    std::function<void()> hook;
    {
      boost::unique_lock<boost::mutex> const lock(mutex_);
      hook = std::exchange(place, nullptr);
    }
    if (hook) hook();
  }

  sync::Atomic<Duration::rep> now_{0};
  mutable boost::mutex mutex_;
  std::vector<Registration*> parked_;
  std::size_t parks_ = 0;
  std::function<void()> before_park_;
  std::function<void()> after_park_;
  std::function<void()> after_every_park_;
};

}  // namespace flex::test
