// SPDX-License-Identifier: Apache-2.0
#pragma once
// One sleeping thread, woken by a permit that cannot be lost.

#include <flex/sync/primitives.hpp>

namespace flex::sync {

/// A place for one thread to sleep. A permit given before the sleep ends the sleep at once, so
/// "let go of the mutex, then sleep" has no gap in which a wake-up is lost.
///
/// signal() and nudge() may be called from any thread; park() from the one that sleeps here.
class Parker {
 public:
  /// Gives the permit and wakes the sleeper. Never blocks for longer than another signal takes.
  void signal() noexcept;

  /// Makes a running park() return early without a permit (a clock moved, say).
  void nudge() noexcept;

  /// Sleeps until the permit is there, a nudge, or `at_most` has passed; takes the permit.
  /// Returns whether it took one. Throws boost::thread_interrupted; a permit is then kept.
  bool park(Duration at_most);

 private:
  RawMutex mutex_;
  RawCondition condition_;
  bool permit_ = false;
  bool nudged_ = false;
};

}  // namespace flex::sync
