// SPDX-License-Identifier: Apache-2.0
#include <flex/strategies/hold_mutex_during_callback.hpp>

namespace flex {

// Nobody passes the gate, not even with memory that the first one cannot use.
HoldMutexDuringCallback::HoldMutexDuringCallback(StrategyContext const& context,
                                                 Options const& /*options*/) noexcept
    : gate_(context, 0) {}

//   state of a request   | event ahead ends    | memory handed over | max_wait ends
//   ---------------------+---------------------+--------------------+--------------
//   behind the gate      | first: owns event   | leaves, served     | leaves, timed out
//   owns the event       | -                   | chain may end      | - (it does not sleep)
Verdict HoldMutexDuringCallback::resolve(Lock& lock, PressureRequest& request) {
  WaitingRoom::Place place(gate_, request);
  while (!request.served() && !place.first()) {
    switch (place.wait(lock)) {
      case WaitEnd::woken:
        break;
      case WaitEnd::timed_out:
        return request.served() ? Verdict::served : Verdict::timed_out;
      case WaitEnd::stopped:
        return request.served() ? Verdict::served : Verdict::stopped;
    }
  }
  if (request.served()) return Verdict::served;

  // The gate is shut behind us: until we leave, memory only comes back.
  do {
    if (request.tryServe()) return Verdict::served;
  } while (request.grow(lock));

  // A whole reclaim that began after we came has freed what was garbage then: one more would be one
  // of a burst of N.
  if (last_complete_ > request.arrived()) return Verdict::exhausted;

  Generation const generation = request.beginReclaim();
  while (request.runNextCallback(lock, CallbackLock::held)) {
    gate_.serve();
    while (!request.served() && request.grow(lock)) gate_.serve();  // it may have emptied a region
    // Those who came before this reclaim count on all of it, so it goes on until they are served.
    if (gate_.servedAllBefore(generation)) return Verdict::served;
  }
  if (request.reclaimComplete()) last_complete_ = generation;
  return request.served() ? Verdict::served : Verdict::exhausted;
}

}  // namespace flex
