// SPDX-License-Identifier: Apache-2.0
#pragma once
// Orders threads without sleeping.

#include <cstddef>

#include <boost/thread/condition_variable.hpp>
#include <boost/thread/mutex.hpp>

#include "watchdog.hpp"

namespace flex::test {

/// A door. Threads that come to it wait until it is open; others can wait for them to come.
/// Waiting at it is an interruption point.
///
/// Thread-safe: any member may be called from any thread at any time.
class Gate {
 public:
  void open() {
    boost::unique_lock<boost::mutex> const lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }

  /// Waits until the gate is open. Throws boost::thread_interrupted.
  void pass() {
    boost::unique_lock<boost::mutex> lock(mutex_);
    ++arrived_;
    changed_.notify_all();
    waitFor(
        lock, [this] { return open_; }, "a gate is opened");
  }

  /// Waits until `count` calls of pass() have begun.
  void waitForArrivals(std::size_t count = 1) {
    boost::unique_lock<boost::mutex> lock(mutex_);
    waitFor(
        lock, [this, count] { return arrived_ >= count; }, "enough threads come to a gate");
  }

  [[nodiscard]] std::size_t arrivals() const {
    boost::unique_lock<boost::mutex> const lock(mutex_);
    return arrived_;
  }

 private:
  template <class Predicate>
  void waitFor(boost::unique_lock<boost::mutex>& lock, Predicate holds, char const* what) {
    auto const patience = boost::chrono::seconds(kPatience.count());
    if (!changed_.wait_for(lock, patience, holds)) giveUpOn(what);
  }

  mutable boost::mutex mutex_;
  boost::condition_variable changed_;
  std::size_t arrived_ = 0;
  bool open_ = false;
};

/// Opens a gate at the latest when a test leaves its scope, so that a failed assertion does not
/// turn into a hang.
class OpenAtEnd {
 public:
  explicit OpenAtEnd(Gate& gate) : gate_(gate) {}
  OpenAtEnd(OpenAtEnd const&) = delete;
  OpenAtEnd& operator=(OpenAtEnd const&) = delete;
  ~OpenAtEnd() { gate_.open(); }

 private:
  Gate& gate_;
};

}  // namespace flex::test
