// SPDX-License-Identifier: Apache-2.0
#pragma once
// The registered memory-pressure callbacks, in the order in which they run.

#include <cstdint>
#include <memory>
#include <vector>

#include <flex/pressure.hpp>
#include <flex/sync/primitives.hpp>

namespace flex::detail {

/// Shared by an allocator and the handles of its callbacks, so a handle may outlive the allocator.
/// Has a lock of its own under which nothing else happens; callbacks run and are destroyed outside.
///
/// Thread-safe: any member may be called from any thread at any time.
class CallbackChain {
 public:
  struct Entry {
    Entry(MemoryPressureCallback entry_callback, int entry_priority)
        : callback(std::move(entry_callback)), priority(entry_priority) {}

    MemoryPressureCallback const callback;
    int const priority;

   private:
    friend class CallbackChain;
    bool registered = true;  // guarded by the chain's mutex
  };
  using EntryPointer = std::shared_ptr<Entry>;
  using Snapshot = std::shared_ptr<std::vector<EntryPointer> const>;

  /// One run of one callback; ends with this object, also for those who wait to unregister it.
  class Run {
   public:
    Run(CallbackChain& chain, Entry& entry);
    Run(Run const&) = delete;
    Run& operator=(Run const&) = delete;
    ~Run();

    /// False: the callback was unregistered after the snapshot was taken; it must not run.
    [[nodiscard]] bool mayRun() const noexcept { return may_run_; }

   private:
    CallbackChain& chain_;
    Entry& entry_;
    bool may_run_ = false;
  };

  /// Throws std::bad_alloc; then nothing is registered.
  [[nodiscard]] EntryPointer add(MemoryPressureCallback callback, int priority);

  /// Unregisters one entry. Returns when no other thread is inside it. Blocks until then, unless
  /// the calling thread is itself inside it.
  void remove(EntryPointer const& entry) noexcept;
  /// The same for all entries of one priority.
  void removePriority(int priority) noexcept;
  void removeAll() noexcept;

  /// The callbacks in the order in which they run.
  [[nodiscard]] Snapshot snapshot() const;
  [[nodiscard]] bool empty() const { return snapshot()->empty(); }

  /// Around fork().
  void lockForFork() noexcept { mutex_.lock(); }
  void unlockAfterFork() noexcept { mutex_.unlock(); }
  /// In a forked child: only the calling thread's runs still exist.
  void resetAfterFork() noexcept;

 private:
  template <class Matches>
  void removeIf(Matches matches) noexcept;
  template <class Matches>
  void waitForRuns(Matches matches, sync::RawUniqueLock& lock) noexcept;

  struct RunRecord {
    Entry const* entry;
    sync::ThreadId thread;
  };

  mutable sync::RawMutex mutex_;
  sync::RawCondition run_ended_;
  std::vector<RunRecord> runs_;  // guarded by mutex_, also those of entries no longer listed
  Snapshot entries_ = std::make_shared<std::vector<EntryPointer>>();  // guarded by mutex_
};

}  // namespace flex::detail
