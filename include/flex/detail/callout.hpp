// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which callbacks this thread is inside of.

#include <cstdint>
#include <optional>

#include <flex/sync/mutex.hpp>

namespace flex::detail {

class Engine;

/// On the stack around every callback that an allocator runs, linked per thread.
class Callout {
 public:
  Callout(Engine const& engine, Lock& lock) noexcept;
  Callout(Callout const&) = delete;
  Callout& operator=(Callout const&) = delete;
  ~Callout();

  /// The innermost callback of `engine` that this thread is inside of; null if none.
  [[nodiscard]] static Callout* find(Engine const& engine) noexcept;

  /// How many callbacks of `engine` this thread is inside of.
  [[nodiscard]] static std::uint32_t count(Engine const& engine) noexcept;

  /// Whether this thread is inside a callback that holds `mutex`.
  [[nodiscard]] static bool holds(sync::Mutex const& mutex) noexcept;

  [[nodiscard]] Lock& lock() const noexcept { return lock_; }

 private:
  Engine const& engine_;
  Lock& lock_;
  Callout* const outer_;
};

/// The mutex for a call that comes from outside: taken, or borrowed from the callback that this
/// thread is inside of and that has not let go of it.
class EntryLock {
 public:
  EntryLock(Engine const& engine, sync::Mutex& mutex)
      FLEXALLOC_NO_THREAD_SAFETY_ANALYSIS  // owned either way, which no attribute can say
      : callout_(Callout::find(engine)) {
    if (!borrowed()) own_.emplace(mutex);
  }

  [[nodiscard]] bool insideCallback() const noexcept { return callout_ != nullptr; }
  [[nodiscard]] bool borrowed() const noexcept {
    return callout_ != nullptr && callout_->lock().owned();
  }
  [[nodiscard]] Lock& lock() noexcept { return own_ ? *own_ : callout_->lock(); }

 private:
  Callout* callout_;
  std::optional<Lock> own_;
};

}  // namespace flex::detail
