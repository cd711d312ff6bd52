// SPDX-License-Identifier: Apache-2.0
#include <flex/sync/parker.hpp>

namespace flex::sync {

// Both notify with the mutex held: the sleeper destroys the parker once it has seen the permit, and
// cannot see it before this thread has let go.
void Parker::signal() noexcept {
  RawUniqueLock const lock(mutex_);
  permit_ = true;
  condition_.notifyAll();
}

void Parker::nudge() noexcept {
  RawUniqueLock const lock(mutex_);
  nudged_ = true;
  condition_.notifyAll();
}

bool Parker::park(Duration at_most) {
  RawUniqueLock lock(mutex_);
  if (!permit_ && !nudged_) condition_.waitFor(lock, at_most);
  nudged_ = false;
  bool const permit = permit_;
  permit_ = false;
  return permit;
}

}  // namespace flex::sync
