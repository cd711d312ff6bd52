// SPDX-License-Identifier: Apache-2.0
#pragma once
// A request in trouble, as a strategy sees it: everything a strategy can do with one.

#include <cstdint>

#include <flex/pressure.hpp>
#include <flex/statistics.hpp>
#include <flex/sync/clock.hpp>
#include <flex/sync/mutex.hpp>
#include <flex/sync/parker.hpp>

namespace flex {

/// How a strategy leaves a request.
enum class Verdict : std::uint8_t {
  served,     ///< it has its memory
  exhausted,  ///< all that this strategy does was done, and nothing fits
  timed_out,  ///< its time ended before all was done
  stopped,    ///< waiting has come to an end for all (the allocator closes)
};

/// How a sleep ended.
enum class WaitEnd : std::uint8_t { woken, timed_out, stopped };

/// Whether a callback is entered with the mutex held (it lets go itself) or without.
enum class CallbackLock : std::uint8_t { held, released };

/// One request that found no memory.
///
/// Thread-safety: all members require the allocator's mutex; those under "requesting thread" must
/// be called from the thread that made the request.
class PressureRequest {
 public:
  PressureRequest() = default;
  PressureRequest(PressureRequest const&) = delete;
  PressureRequest& operator=(PressureRequest const&) = delete;

  // --- any thread

  [[nodiscard]] bool served() const noexcept { return served_; }

  /// Generation when the request arrived, read before its first search: reclaims numbered above it
  /// began afterwards.
  [[nodiscard]] Generation arrived() const noexcept { return arrived_; }

  /// Whether the calling thread is the one that made the request.
  [[nodiscard]] bool onItsThread() const noexcept { return sync::thisThread() == thread_; }

  /// Searches the pool for the request; on success the memory is the request's. Never throws, never
  /// calls foreign code. Requires: not served.
  [[nodiscard]] virtual bool tryServe() noexcept = 0;

  /// Whether a search would serve the request, were it allowed to take what it finds.
  [[nodiscard]] virtual bool fits() const noexcept = 0;

  // --- requesting thread

  /// Asks the device for a further region, letting go of the mutex meanwhile. True: the mutex was
  /// let go of, whatever came of it, so search again. False: it was not, and the pool cannot grow:
  /// the request has met true exhaustion. A loop of search and grow() ends.
  [[nodiscard]] virtual bool grow(Lock& lock) = 0;

  /// Starts a run of the callback chain and returns its number.
  virtual Generation beginReclaim() = 0;

  /// Runs the next callback of the chain; false: there is none left. The mutex is held again on
  /// return, also if this throws: boost::thread_interrupted, or what the callback threw where
  /// CallbackErrors::propagate is set.
  [[nodiscard]] virtual bool runNextCallback(Lock& lock, CallbackLock mode) = 0;

  /// Whether the run came to the chain's end and every callback did its work.
  [[nodiscard]] virtual bool reclaimComplete() const noexcept = 0;

  /// Lets go of the mutex and sleeps until the parker's permit, the request's deadline, or the end
  /// of all waiting; returns `woken` after `at_most`, and may do so early. The mutex is held again
  /// on return, also if this throws (boost::thread_interrupted, or what RequestOptions::poll
  /// throws).
  [[nodiscard]] virtual WaitEnd wait(Lock& lock, sync::Parker& parker,
                                     Duration at_most = kLongestWait) = 0;

 protected:
  ~PressureRequest() = default;

  sync::ThreadId const thread_ = sync::thisThread();
  bool served_ = false;
  Generation arrived_ = 0;
};

/// What a strategy is built from: the allocator's mutex, which guards all of the strategy's state,
/// the counters it adds to, and the time.
struct StrategyContext {
  sync::Mutex& mutex;
  PressureStatistics& statistics;
  Clock& clock;
};

}  // namespace flex
