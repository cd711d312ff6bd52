// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <flex/sync/biased_mutex.hpp>

namespace flex::sync {

void BiasedMutex::makeOwner() noexcept {
  in_a_row_ = 0;
  if (!canBeOwned()) return;
  auto* const seat = std::ranges::find_if(seats_, [](Seat const& candidate) {
    return candidate.thread == thisThreadToken() || candidate.thread == kNoThread;
  });
  if (seat == seats_.end()) return;
  seat->thread = thisThreadToken();
  last_seat_ = seat;
  settled_ = false;
  owner_.store(seat, std::memory_order_release);
}

void BiasedMutex::settle() noexcept {
  revoke();
  for (unsigned looks = 0; !ownerIsOut(); ++looks) backOff(looks);
}

bool BiasedMutex::settleOrLeave() {
  for (;;) {
    revoke();
    if (ownerIsOut()) return true;
    Seat const& seat = *last_seat_;
    raw_.unlock();
    // Others may have found raw_ taken by this thread, and rely on it as on one that has the mutex.
    // If the owner is still inside, it sees on its way out what they wrote before this barrier.
    heavyBarrier();
    if (seat.inside.load(std::memory_order_acquire)) return false;
    if (!raw_.try_lock()) return false;
    if (settled_) return true;
  }
}

void BiasedMutex::revoke() noexcept {
  if (owner_.load(std::memory_order_relaxed) == nullptr) return;
  owner_.store(nullptr, std::memory_order_relaxed);
  if (last_seat_->thread != thisThreadToken()) heavyBarrier();
}

bool BiasedMutex::ownerIsOut() noexcept {
  if (last_seat_->inside.load(std::memory_order_acquire)) return false;
  held_from_ = nullptr;
  settled_ = true;
  bool const paid = in_a_row_ > 8 * patience_;
  patience_ =
      paid ? std::max(patience_ / 4, kShortestPatience) : std::min(patience_ * 4, kLongestPatience);
  in_a_row_ = 0;
  return true;
}

}  // namespace flex::sync
