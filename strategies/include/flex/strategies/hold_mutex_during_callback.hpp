// SPDX-License-Identifier: Apache-2.0
#pragma once
// Pressure events one at a time, with the allocator closed to everyone else meanwhile.

#include <string_view>

#include <flex/pressure_strategy.hpp>
#include <flex/waiting_room.hpp>

namespace flex {

/// The default. From a request's failed search until it has retried, all other allocations wait at
/// a gate, holding neither the mutex nor the GIL, while frees go on. So events are serialised and
/// nobody takes what an event brought back. Callbacks are entered with the mutex held and unlock it
/// around whatever blocks.
///
/// A request waits for the events before its own, never for other threads' frees beyond that.
/// Simple and predictable; made for few allocating threads.
///
/// Thread-safety: all members require the allocator's mutex.
class HoldMutexDuringCallback {
 public:
  static constexpr std::string_view kName = "hold-mutex";
  struct Options {};

  HoldMutexDuringCallback(StrategyContext const& context, Options const& options) noexcept;

  [[nodiscard]] bool admit() const noexcept { return gate_.empty(); }
  void onServedAtOnce() noexcept {}
  [[nodiscard]] Verdict resolve(Lock& lock, PressureRequest& request);
  void onFree() noexcept {}
  void wakeAll() noexcept { gate_.wakeAll(); }
  void resetAfterFork(bool /*reclaiming*/) noexcept { gate_.resetAfterFork(); }

 private:
  WaitingRoom gate_;  ///< the first one here owns the event
  Generation last_complete_ = 0;
};

static_assert(PressureStrategy<HoldMutexDuringCallback>);

}  // namespace flex
