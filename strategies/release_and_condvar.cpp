// SPDX-License-Identifier: Apache-2.0

#include <flex/strategies/release_and_condvar.hpp>

namespace flex {

/// Marks a reclaim in progress. However it ends, whoever still needs one is woken to take over.
class ReleaseAndCondvar::Reclaiming {
 public:
  explicit Reclaiming(ReleaseAndCondvar& strategy) noexcept : strategy_(strategy) {
    strategy_.reclaiming_ = true;
  }
  Reclaiming(Reclaiming const&) = delete;
  Reclaiming& operator=(Reclaiming const&) = delete;
  ~Reclaiming() {
    strategy_.reclaiming_ = false;
    strategy_.queue_.wakeAll();
  }

 private:
  ReleaseAndCondvar& strategy_;
};

ReleaseAndCondvar::ReleaseAndCondvar(StrategyContext const& context,
                                     Options const& options) noexcept
    : queue_(context, options.overtake_limit) {}

//   state of a request   | memory handed over | reclaim of another ends      | max_wait ends
//   ---------------------+--------------------+------------------------------+------------------
//   asleep, not covered  | leaves, served     | covered: asleep, covered     | leaves, timed out
//                        |                    | not covered: may reclaim     |
//   asleep, covered      | leaves, served     | -                            | leaves, exhausted
//   reclaims             | chain may end      | -                            | - (it does not
//   sleep)
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
    // A request that fits waits for its turn only: that is no exhaustion.
    if (!covered && !reclaiming_ && !request.fits()) {
      reclaimed_itself = true;
      reclaim(lock, request);
      continue;
    }
    switch (place.wait(lock)) {
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

void ReleaseAndCondvar::reclaim(Lock& lock, PressureRequest& request) {
  Reclaiming const reclaiming(*this);
  Generation const generation = request.beginReclaim();
  while (request.runNextCallback(lock, CallbackLock::released)) {
    queue_.serve();
    while (!request.served() && request.grow(lock)) queue_.serve();  // it may have emptied a region
    // Those who came before this reclaim count on all of it, so it goes on until they are served.
    if (queue_.servedAllBefore(generation)) return;
  }
  if (request.reclaimComplete()) last_complete_ = generation;
}

void ReleaseAndCondvar::resetAfterFork(bool reclaiming) noexcept {
  queue_.resetAfterFork();
  reclaiming_ = reclaiming;
}

}  // namespace flex
