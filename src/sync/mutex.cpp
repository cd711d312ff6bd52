// SPDX-License-Identifier: Apache-2.0
#include <flex/sync/mutex.hpp>

namespace flex::sync {

void Mutex::catchUp() {
  while (work_.pending() && tryLock()) workAndRelease();
}

void Mutex::workAndRelease() {
  if (work_.pending()) work_.run();  // a holder in between may have done it
  std::unique_ptr<Retired> const retired = std::move(work_.retired_);
  noteMutexReleased();
  mutex_.unlock();
}

}  // namespace flex::sync
