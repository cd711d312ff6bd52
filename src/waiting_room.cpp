// SPDX-License-Identifier: Apache-2.0

#include <flex/waiting_room.hpp>

namespace flex {

bool WaitingRoom::someoneWaits() const noexcept {
  for (Place const& place : places_) {
    if (!place.request_.served()) return true;
  }
  return false;
}

void WaitingRoom::serve() noexcept {
  bool someone_waits_ahead = false;
  for (Place& place : places_) {
    if (place.request_.served()) continue;
    if (someone_waits_ahead && !mayBeOvertaken()) return;
    if (!place.request_.tryServe()) {
      someone_waits_ahead = true;
      continue;
    }
    if (someone_waits_ahead) noteOvertake();
    // With the mutex held: the sleeper cannot leave, and destroy the parker, before we let go.
    place.parker_.signal();
  }
}

bool WaitingRoom::servedAllBefore(Generation generation) const noexcept {
  for (Place const& place : places_) {
    if (!place.request_.served() && place.request_.arrived() < generation) return false;
  }
  return true;
}

void WaitingRoom::wakeAll() noexcept {
  for (Place& place : places_) place.parker_.signal();
}

void WaitingRoom::wakeAllBut(PressureRequest const& awake) noexcept {
  for (Place& place : places_) {
    if (&place.request_ != &awake) place.parker_.signal();
  }
}

void WaitingRoom::leave(Place& place) noexcept {
  bool const was_first = place.first();
  if (place.request_.served()) ++servings_;
  places_.erase(places_.iterator_to(place));
  if (!was_first) return;
  overtakes_ = 0;
  // What the first one could not use may be what the next one needs: before a newcomer takes it.
  serve();
  // The next one is first now: it must look whether that changes anything for it.
  if (!places_.empty()) places_.front().parker_.signal();
}

void WaitingRoom::resetAfterFork() noexcept {
  // The others' stacks are still there to be written to, though no thread runs on them.
  places_.remove_if([](Place const& place) { return !place.request_.onItsThread(); });
  overtakes_ = 0;
}

}  // namespace flex
