// SPDX-License-Identifier: Apache-2.0
#pragma once
// The only place that names a threading library. Everything that synchronises is built from the
// types below, so a second file of this name, found first on the include path, puts the unchanged
// allocator under another scheduler (an explorer of interleavings).

#include <atomic>
#include <chrono>
#include <cstdint>

#include <boost/chrono/duration.hpp>
#include <boost/thread/condition_variable.hpp>
#include <boost/thread/mutex.hpp>
#include <boost/thread/thread.hpp>

namespace flex::sync {

using Duration = std::chrono::nanoseconds;
using TimePoint = std::chrono::time_point<std::chrono::steady_clock, Duration>;

template <class T>
using Atomic = std::atomic<T>;

using RawMutex = boost::mutex;

/// Condition over a RawMutex. Every wait is an interruption point (boost::thread_interrupted).
class RawCondition {
 public:
  void wait(boost::unique_lock<RawMutex>& lock) { condition_.wait(lock); }

  /// May return early; the caller looks again at what it waits for.
  void waitFor(boost::unique_lock<RawMutex>& lock, Duration at_most) {
    condition_.wait_for(lock, boost::chrono::nanoseconds(at_most.count()));
  }

  void notifyAll() noexcept { condition_.notify_all(); }

 private:
  boost::condition_variable condition_;
};

using RawUniqueLock = boost::unique_lock<RawMutex>;
using ThreadId = boost::thread::id;

inline ThreadId thisThread() noexcept { return boost::this_thread::get_id(); }

/// Throws boost::thread_interrupted if this thread was asked to stop.
inline void interruptionPoint() { boost::this_thread::interruption_point(); }

/// While one exists, waits on this thread are no interruption points.
using InterruptionDisabled = boost::this_thread::disable_interruption;

/// Orders an unlock before the load that follows it. On x86 the unlock is itself a full barrier.
inline void fenceAfterUnlock() noexcept {
#if !defined(__x86_64__)
  std::atomic_thread_fence(std::memory_order_seq_cst);
#endif
}

// ---------------------------------------------------------------------------- ownership

/// Tells running threads apart. A later thread may have the token of one that has ended.
using ThreadToken = char const*;
inline constexpr ThreadToken kNoThread = nullptr;

extern constinit thread_local char thread_token [[gnu::tls_model("initial-exec")]];
inline ThreadToken thisThreadToken() noexcept { return &thread_token; }

/// Unlocks in a row after which a thread owns a mutex, to begin with (BiasedMutex). Large against
/// what the end of an ownership costs, which is about 0.5 us, and a pair saves some 10 ns.
inline constexpr std::uint64_t kShortestPatience = 256;

/// Whether this system has what heavyBarrier() needs. Not under ThreadSanitizer, whose lock-order
/// detector knows ordinary mutexes only.
[[nodiscard]] bool canBeOwned() noexcept;

/// A flag whose stores others may see late: at the latest after their heavyBarrier().
using LateFlag = Atomic<bool>;

/// The two sides of a barrier between two threads that each write and then read what the other one
/// wrote: lightBarrier() costs nothing, heavyBarrier() is a system call. At least one of the two
/// sees what the other one wrote. Requires of heavyBarrier(): canBeOwned() was true.
inline void lightBarrier() noexcept { std::atomic_signal_fence(std::memory_order_seq_cst); }
void heavyBarrier() noexcept;

/// Lets others run, after having looked `looks` times in vain for what one of them will do soon.
void backOff(unsigned looks) noexcept;

inline TimePoint steadyNow() noexcept {
  return std::chrono::time_point_cast<Duration>(std::chrono::steady_clock::now());
}

}  // namespace flex::sync
