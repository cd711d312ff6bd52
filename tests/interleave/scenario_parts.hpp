// SPDX-License-Identifier: Apache-2.0
#pragma once
// What several scenarios use.

#include "scenario.hpp"

namespace flex::interleave {

/// Memory that only a callback gives back.
struct Cache {
  std::vector<Buffer> buffers;
  void clear() {
    while (!buffers.empty()) {
      Buffer const gone = std::move(buffers.back());
      buffers.pop_back();
    }
  }
};

/// A callback as the documented design wants it: lets go of the mutex around its work.
inline auto clearing(Cache& cache) {
  return [&cache](Lock& lock) {
    lock.unlock();
    cache.clear();
    lock.lock();
  };
}

/// A flag between threads of a scenario.
using Flag = sync::Atomic<bool>;

}  // namespace flex::interleave
