// SPDX-License-Identifier: Apache-2.0
#pragma once
// A strategy of one's own: pressure events one at a time, and no long queue behind them.

#include <cstdint>
#include <string_view>

#include <flex/pressure_strategy.hpp>
#include <flex/waiting_room.hpp>

/// Events are serialised behind a gate, as under flex::HoldMutexDuringCallback; but only
/// `longest_queue` requests may stand there: who comes to a full gate fails at once, as timed out.
/// For a server that would rather refuse a request now than answer all of them late.
///
/// Thread-safety: all members require the allocator's mutex.
class FailFast {
 public:
  static constexpr std::string_view kName = "fail-fast";
  struct Options {
    std::uint32_t longest_queue = 64;  ///< requests; 0: nobody waits
  };

  FailFast(flex::StrategyContext const& context, Options const& options) noexcept
      : gate_(context, 0), longest_queue_(options.longest_queue) {}

  [[nodiscard]] bool admit() const noexcept { return gate_.empty(); }
  void onServedAtOnce() noexcept {}

  [[nodiscard]] flex::Verdict resolve(flex::Lock& lock, flex::PressureRequest& request) {
    if (inside_ > longest_queue_) return flex::Verdict::timed_out;
    Inside const inside(inside_);
    flex::WaitingRoom::Place place(gate_, request);
    while (!request.served() && !place.first()) {
      flex::WaitEnd const end = place.wait(lock);
      if (request.served()) break;  // though its time may have ended
      if (end == flex::WaitEnd::timed_out) return flex::Verdict::timed_out;
      if (end == flex::WaitEnd::stopped) return flex::Verdict::stopped;
    }
    // The gate is shut behind us: until we leave, memory only comes back.
    while (!request.served() && !request.tryServe()) {
      if (!request.grow(lock)) return reclaim(lock, request);
    }
    return flex::Verdict::served;
  }

  void onFree() noexcept {}
  void wakeAll() noexcept { gate_.wakeAll(); }
  void resetAfterFork(bool reclaiming) noexcept {
    gate_.resetAfterFork();
    inside_ = reclaiming ? 1 : 0;
  }

 private:
  struct Inside {  // RAII: however a request ends, the count is right
    explicit Inside(std::uint32_t& counter) noexcept : count(counter) { ++count; }
    Inside(Inside const&) = delete;
    Inside& operator=(Inside const&) = delete;
    ~Inside() { --count; }
    std::uint32_t& count;
  };

  flex::Verdict reclaim(flex::Lock& lock, flex::PressureRequest& request) {
    if (last_complete_ > request.arrived()) return flex::Verdict::exhausted;  // covered
    flex::Generation const generation = request.beginReclaim();
    while (request.runNextCallback(lock, flex::CallbackLock::held)) {
      gate_.serve();
      while (!request.served() && request.grow(lock)) gate_.serve();
      if (gate_.servedAllBefore(generation)) return flex::Verdict::served;
    }
    if (request.reclaimComplete()) last_complete_ = generation;
    return request.served() ? flex::Verdict::served : flex::Verdict::exhausted;
  }

  flex::WaitingRoom gate_;  ///< the first one here owns the event
  std::uint32_t const longest_queue_;
  std::uint32_t inside_ = 0;
  flex::Generation last_complete_ = 0;
};

static_assert(flex::PressureStrategy<FailFast>);
