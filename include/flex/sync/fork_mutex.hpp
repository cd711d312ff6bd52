// SPDX-License-Identifier: Apache-2.0
#pragma once
// A mutex that a forked child finds free.

#include <boost/intrusive/list.hpp>

#include <flex/sync/primitives.hpp>

namespace flex::sync {

/// A fork takes every ForkMutex there is and lets go of it in parent and child, so the child finds
/// what it guards between two operations, and nobody in it who holds it and does not exist.
///
/// Requires: whoever holds it takes no allocator's mutex, attaches to no interpreter, and soon lets
/// go of it.
///
/// Thread-safe.
class ForkMutex : public boost::intrusive::list_base_hook<> {
 public:
  /// Throws std::bad_alloc.
  ForkMutex();
  ForkMutex(ForkMutex const&) = delete;
  ForkMutex& operator=(ForkMutex const&) = delete;
  ~ForkMutex();

  /// For a RawUniqueLock.
  [[nodiscard]] RawMutex& raw() noexcept { return raw_; }

  /// A fork takes later what was installed earlier: call it before installing handlers that take
  /// locks under which a ForkMutex may be taken. Throws std::bad_alloc.
  static void installForkHandlers();

 private:
  RawMutex raw_;
};

}  // namespace flex::sync
