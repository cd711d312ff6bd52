// SPDX-License-Identifier: Apache-2.0
#pragma once
// Time as the allocator sees it. Injected, so that tests own it.

#include <memory>

#include <flex/sync/parker.hpp>
#include <flex/sync/primitives.hpp>

namespace flex {

using Duration = sync::Duration;
using TimePoint = sync::TimePoint;

/// Longest max_wait: every wait is bounded.
inline constexpr Duration kLongestWait = std::chrono::hours(24);

/// `now + length`, at most the last representable moment.
[[nodiscard]] constexpr TimePoint saturatingAdd(TimePoint now, Duration length) noexcept {
  return length > TimePoint::max() - now ? TimePoint::max() : now + length;
}

/// Thread-safe: any member may be called from any thread at any time.
class Clock {
 public:
  Clock() = default;
  Clock(Clock const&) = delete;
  Clock& operator=(Clock const&) = delete;
  virtual ~Clock() = default;

  [[nodiscard]] virtual TimePoint now() const noexcept = 0;

  /// Sleeps at `parker` until its permit comes or `until` is reached, and may return earlier.
  /// Throws boost::thread_interrupted.
  virtual void park(sync::Parker& parker, TimePoint until) = 0;
};

/// The machine's steady clock. Sleeps in slices of at most 100 ms, so that a wake-up which the
/// system itself loses (glibc bug 25847) costs a slice and not a deadline.
[[nodiscard]] std::shared_ptr<Clock> steadyClock();

}  // namespace flex
