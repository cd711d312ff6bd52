// SPDX-License-Identifier: Apache-2.0
#pragma once
// The synchronisation types of flex/sync/primitives.hpp, under the scheduler: every lock, unlock,
// wait, notify, atomic access and clock read is a choice of who runs next.

#include <atomic>
#include <chrono>
#include <compare>
#include <cstdint>
#include <mutex>
#include <utility>

#include <boost/thread/exceptions.hpp>

#include "scheduler.hpp"

namespace flex::sync {

using Duration = interleave::Duration;
using TimePoint = interleave::TimePoint;

template <class T>
class Atomic {
 public:
  Atomic() noexcept = default;
  Atomic(T value) noexcept : value_(value) {}  // NOLINT(google-explicit-constructor)
  Atomic(Atomic const&) = delete;
  Atomic& operator=(Atomic const&) = delete;
  ~Atomic() = default;

  [[nodiscard]] T load(std::memory_order /*order*/ = std::memory_order_seq_cst) const noexcept {
    interleave::Scheduler::instance().access(object_, interleave::Op::load);
    return value_;
  }
  void store(T value, std::memory_order /*order*/ = std::memory_order_seq_cst) noexcept {
    interleave::Scheduler::instance().access(object_, interleave::Op::store);
    value_ = value;
  }
  T exchange(T value, std::memory_order /*order*/ = std::memory_order_seq_cst) noexcept {
    interleave::Scheduler::instance().access(object_, interleave::Op::store);
    return std::exchange(value_, value);
  }
  T fetch_add(T value, std::memory_order /*order*/ = std::memory_order_seq_cst) noexcept {
    interleave::Scheduler::instance().access(object_, interleave::Op::store);
    T const before = value_;
    value_ = static_cast<T>(value_ + value);
    return before;
  }
  T fetch_sub(T value, std::memory_order /*order*/ = std::memory_order_seq_cst) noexcept {
    interleave::Scheduler::instance().access(object_, interleave::Op::store);
    T const before = value_;
    value_ = static_cast<T>(value_ - value);
    return before;
  }
  bool compare_exchange_strong(T& expected, T desired,
                               std::memory_order /*success*/ = std::memory_order_seq_cst,
                               std::memory_order /*failure*/ = std::memory_order_seq_cst) noexcept {
    interleave::Scheduler::instance().access(object_, interleave::Op::store);
    if (value_ == expected) {
      value_ = desired;
      return true;
    }
    expected = value_;
    return false;
  }
  bool compare_exchange_weak(T& expected, T desired,
                             std::memory_order success = std::memory_order_seq_cst,
                             std::memory_order failure = std::memory_order_seq_cst) noexcept {
    return compare_exchange_strong(expected, desired, success, failure);
  }
  operator T() const noexcept { return load(); }  // NOLINT(google-explicit-constructor)
  T operator=(T value) noexcept {                 // NOLINT(misc-unconventional-assign-operator)
    store(value);
    return value;
  }

 private:
  T value_{};
  mutable interleave::Object object_;
};

class RawMutex {
 public:
  RawMutex() = default;
  explicit RawMutex(char const* name) { core_.object.rename(name); }
  RawMutex(RawMutex const&) = delete;
  RawMutex& operator=(RawMutex const&) = delete;
  ~RawMutex() = default;

  void lock() { interleave::Scheduler::instance().lock(core_); }
  [[nodiscard]] bool try_lock() { return interleave::Scheduler::instance().tryLock(core_); }
  void unlock() { interleave::Scheduler::instance().unlock(core_); }

 private:
  friend class RawCondition;
  interleave::MutexCore core_;
};

using RawUniqueLock = std::unique_lock<RawMutex>;

class RawCondition {
 public:
  RawCondition() = default;
  explicit RawCondition(char const* name) : object_(name) {}

  void wait(RawUniqueLock& lock) { waitFor(lock, Duration(-1)); }
  void waitFor(RawUniqueLock& lock, Duration at_most) {
    interleave::Scheduler::instance().wait(object_, lock.mutex()->core_, at_most);
  }
  void notifyAll() noexcept { interleave::Scheduler::instance().notifyAll(object_); }

 private:
  interleave::Object object_;
};

struct ThreadId {
  int index = -1;
  friend auto operator<=>(ThreadId const&, ThreadId const&) = default;
};

inline ThreadId thisThread() noexcept { return {interleave::Scheduler::instance().self()}; }

inline void interruptionPoint() { interleave::Scheduler::instance().interruptionPoint(); }

class InterruptionDisabled {
 public:
  InterruptionDisabled() noexcept { interleave::Scheduler::instance().disableInterruption(+1); }
  InterruptionDisabled(InterruptionDisabled const&) = delete;
  InterruptionDisabled& operator=(InterruptionDisabled const&) = delete;
  ~InterruptionDisabled() { interleave::Scheduler::instance().disableInterruption(-1); }
};

/// All steps have one order here, so there is nothing to fence.
inline void fenceAfterUnlock() noexcept {}

// ---------------------------------------------------------------------------- ownership

using ThreadToken = int;
inline constexpr ThreadToken kNoThread = 0;
inline ThreadToken thisThreadToken() noexcept {
  return interleave::Scheduler::instance().self() + 2;
}

/// Soon, so that few steps lead to it.
inline constexpr std::uint64_t kShortestPatience = 1;
[[nodiscard]] inline bool canBeOwned() noexcept {
  return interleave::Scheduler::instance().faults().ownership;
}

class LateFlag {
 public:
  explicit LateFlag(bool value) noexcept : core_(value) {}
  [[nodiscard]] bool load(std::memory_order /*order*/) const noexcept {
    return interleave::Scheduler::instance().loadLate(core_);
  }
  void store(bool value, std::memory_order /*order*/) noexcept {
    interleave::Scheduler::instance().storeLate(core_, value);
  }

 private:
  mutable interleave::LateCore core_;
};

inline void lightBarrier() noexcept {}
inline void heavyBarrier() noexcept { interleave::Scheduler::instance().barrier(); }
inline void backOff(unsigned /*looks*/) noexcept { interleave::Scheduler::instance().yield(); }

inline TimePoint steadyNow() noexcept { return interleave::Scheduler::instance().now(); }

}  // namespace flex::sync
