// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <stdexcept>

#include <flex/strategies/release_and_condvar.hpp>

namespace flex {
namespace {

Duration requireInRange(Duration look_again) {
  if (look_again > Duration::zero() && look_again <= kLongestWait) return look_again;
  throw std::invalid_argument("look_again must be more than 0 and at most 24 h");
}

}  // namespace

/// Marks a reclaim in progress. However it ends, whoever still needs one is woken to take over.
class ReleaseAndCondvar::Reclaiming {
 public:
  Reclaiming(ReleaseAndCondvar& strategy, PressureRequest const& request, bool again) noexcept
      : strategy_(strategy), request_(request), began_(strategy.clock_.now()) {
    strategy_.reclaiming_ = true;
    if (strategy_.servedSince()) strategy_.in_a_row_ = again ? 1 : 0;
    ++strategy_.in_a_row_;
    strategy_.servings_before_ = strategy_.queue_.servings();
  }
  Reclaiming(Reclaiming const&) = delete;
  Reclaiming& operator=(Reclaiming const&) = delete;
  ~Reclaiming() {
    strategy_.reclaiming_ = false;
    strategy_.last_end_ = strategy_.clock_.now();
    Duration const nine_times = 9 * std::min(strategy_.last_end_ - began_, kLongestWait);
    strategy_.period_ = std::clamp(nine_times, strategy_.look_again_, kLongestWait);
    strategy_.queue_.wakeAllBut(request_);
  }

 private:
  ReleaseAndCondvar& strategy_;
  PressureRequest const& request_;
  TimePoint const began_;
};

ReleaseAndCondvar::ReleaseAndCondvar(StrategyContext const& context, Options const& options)
    : queue_(context, options.overtake_limit),
      clock_(context.clock),
      look_again_(requireInRange(options.look_again)),
      period_(look_again_) {}

//   state of a request   | memory handed over | another's reclaim ends       | max_wait ends
//   ---------------------+--------------------+------------------------------+------------------
//   asleep, not covered  | leaves, served     | covered: asleep, covered     | leaves, timed out
//                        |                    | not covered: may reclaim     |
//   asleep, covered      | leaves, served     | -                            | leaves, exhausted
//   reclaims             | chain may end      | -                            | - (does not sleep)
//
// The first one asleep reclaims again when it is time to.
Verdict ReleaseAndCondvar::resolve(Lock& lock, PressureRequest& request) {
  WaitingRoom::Place place(queue_, request);
  bool reclaimed_itself = false;
  for (;;) {
    // What fits the first one was handed to it already, unless it has only just become the first.
    if (request.served() || (place.first() && request.tryServe())) return Verdict::served;
    if (place.first() && request.grow(lock)) {
      queue_.serve();
      continue;
    }
    bool const covered = reclaimed_itself || last_complete_ > request.arrived();
    bool const again = covered && place.first() && timeToLookAgain();
    // A request that fits waits for its turn only: that is no exhaustion.
    if ((!covered || again) && !reclaiming_ && !request.fits()) {
      reclaimed_itself = true;
      reclaim(lock, request, again);
      continue;
    }
    switch (place.wait(lock, place.first() && !reclaiming_ ? period_ : kLongestWait)) {
      case WaitEnd::woken:
        break;
      case WaitEnd::timed_out:
        if (request.served()) return Verdict::served;
        return covered ? Verdict::exhausted : Verdict::timed_out;
      case WaitEnd::stopped:
        return request.served() ? Verdict::served : Verdict::stopped;
    }
  }
}

void ReleaseAndCondvar::reclaim(Lock& lock, PressureRequest& request, bool again) {
  Reclaiming const reclaiming(*this, request, again);
  Generation const generation = request.beginReclaim();
  while (request.runNextCallback(lock, CallbackLock::released)) {
    queue_.serve();
    while (!request.served() && request.grow(lock)) queue_.serve();  // it may have emptied a region
    // Those who came before this reclaim count on all of it, so it goes on until they are served.
    if (queue_.servedAllBefore(generation)) return;
  }
  if (request.reclaimComplete()) last_complete_ = generation;
}

bool ReleaseAndCondvar::timeToLookAgain() const noexcept {
  bool const soon = in_a_row_ < 2 || servedSince();
  return clock_.now() - last_end_ >= (soon ? period_ : 100 * period_);
}

void ReleaseAndCondvar::resetAfterFork(bool reclaiming) noexcept {
  queue_.resetAfterFork();
  reclaiming_ = reclaiming;
}

}  // namespace flex
