// SPDX-License-Identifier: Apache-2.0
#pragma once
// How an allocator and a single request are set up.

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include <flex/bytes.hpp>
#include <flex/directive.hpp>
#include <flex/error.hpp>
#include <flex/sync/clock.hpp>

namespace flex {

/// When regions are taken from the device.
enum class Acquisition : std::uint8_t {
  upfront,    ///< all at construction; trimmed ones come back when they are needed
  on_demand,  ///< one at a time, when nothing fits any more
};

/// What becomes of an exception thrown by a memory-pressure callback.
enum class CallbackErrors : std::uint8_t {
  as_cause,   ///< the chain goes on; if nothing helps, it is the cause() of the OutOfMemoryError
  propagate,  ///< the chain stops and the request throws it as it is
};

inline constexpr std::uint32_t kMaxRegionsPerDomain = 64;

struct AllocatorOptions {
  Acquisition acquisition = Acquisition::upfront;
  /// Upfront: regions per domain, capacity / regions each; the first is for programs, the others
  /// for tensors; a single one serves both. On demand: the most regions per domain.
  std::uint32_t regions = 7;
  /// No region is larger than this.
  std::uint64_t max_region_bytes = 16 * kGiB;
  /// On demand: sizes tried in this order; a request that fits none of them is tried at its own
  /// size.
  std::vector<std::uint64_t> fallback_sizes = {12 * kGiB, 8 * kGiB, 4 * kGiB};
  RegionOrder region_order = RegionOrder::most_free;
  /// Longest time a request sleeps, in all. Zero: requests may reclaim, but never sleep.
  Duration max_wait = std::chrono::seconds(1);
  CallbackErrors callback_errors = CallbackErrors::as_cause;
  std::shared_ptr<Clock> clock = steadyClock();

  /// Throws std::invalid_argument that names the option, what it is and what is allowed.
  void validate() const;
};

/// How one request may behave. Plain data; the default is that of the allocator.
struct RequestOptions {
  /// Overrides AllocatorOptions::max_wait; between zero and kLongestWait.
  std::optional<Duration> max_wait = std::nullopt;
  /// False: never sleeps and runs no callback. For a thread that others may be waiting for, such as
  /// one inside a garbage collection. It passes the gate or the queue, is searched for once, and
  /// fails at once if nothing fits.
  bool may_wait = true;
  /// The reason given when may_wait is false and nothing fits.
  FailureReason no_wait_reason = FailureReason::must_not_wait;
  /// Called now and then, without a lock, while the request sleeps; may throw to end it.
  void (*poll)(void* context) = nullptr;
  void* poll_context = nullptr;

  /// Throws std::invalid_argument: max_wait is out of range.
  void validate() const;
};

}  // namespace flex
