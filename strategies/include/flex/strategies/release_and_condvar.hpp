// SPDX-License-Identifier: Apache-2.0
#pragma once
// One request reclaims with the mutex free, the others sleep and are handed what comes back.

#include <cstdint>
#include <string_view>

#include <flex/pressure_strategy.hpp>
#include <flex/waiting_room.hpp>

namespace flex {

/// The allocator lets go of the mutex before it calls back. One request reclaims; the others sleep
/// on their condition variables, in order of arrival. Freed memory is handed to them in that order
/// by whoever frees or reclaims; who comes later does not overtake, except with what the first one
/// cannot use, and then only so often. Requests also get what other threads free in the ordinary
/// way, until max_wait ends. If the reclaiming request fails or is interrupted, another takes over.
/// What became garbage since is looked for again now and then, for as long as someone sleeps.
///
/// Allocations that fit go on during a reclaim; made for many allocating threads.
///
/// Thread-safety: all members require the allocator's mutex.
class ReleaseAndCondvar {
 public:
  static constexpr std::string_view kName = "release-condvar";
  struct Options {
    /// How many requests may be served past the first waiting one before all others queue behind
    /// it. See docs/performance.md for how it was chosen.
    std::uint64_t overtake_limit = 1024;
    /// The first waiting request runs the chain again this long after the last reclaim ended, since
    /// what was in use then may be garbage now; but only once, or whenever others were served
    /// meanwhile, or else after 100 times as long. Reclaims that last longer than a ninth of it
    /// stretch it, so that looking again costs a tenth of the time at most. More than zero;
    /// kLongestWait: never.
    Duration look_again = std::chrono::milliseconds(100);
  };

  /// Throws std::invalid_argument: look_again is out of range.
  ReleaseAndCondvar(StrategyContext const& context, Options const& options);

  [[nodiscard]] bool admit() const noexcept {
    return queue_.mayBeOvertaken() || !queue_.someoneWaits();
  }
  void onServedAtOnce() noexcept {
    if (queue_.someoneWaits()) queue_.noteOvertake();
  }
  [[nodiscard]] Verdict resolve(Lock& lock, PressureRequest& request);
  void onFree() noexcept {
    if (!queue_.empty()) queue_.serve();
  }
  void wakeAll() noexcept { queue_.wakeAll(); }
  void resetAfterFork(bool reclaiming) noexcept;

 private:
  class Reclaiming;

  void reclaim(Lock& lock, PressureRequest& request, bool again);
  [[nodiscard]] bool timeToLookAgain() const noexcept;
  /// Whether anybody was served since the last reclaim began.
  [[nodiscard]] bool servedSince() const noexcept { return queue_.servings() != servings_before_; }

  WaitingRoom queue_;
  bool reclaiming_ = false;
  Generation last_complete_ = 0;  ///< of the reclaims that ran the whole chain

  Clock& clock_;
  Duration const look_again_;
  Duration period_;                    ///< look_again, or more if reclaims last long
  TimePoint last_end_;                 ///< of the last reclaim
  std::uint64_t servings_before_ = 0;  ///< WaitingRoom::servings() when it began
  std::uint32_t in_a_row_ = 0;         ///< reclaims that found the same requests asleep
};

static_assert(PressureStrategy<ReleaseAndCondvar>);

}  // namespace flex
