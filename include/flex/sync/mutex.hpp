// SPDX-License-Identifier: Apache-2.0
#pragma once
// The allocator's mutex and the lock that callbacks receive.

#include <cstdint>
#include <memory>
#include <utility>

#include <flex/sync/biased_mutex.hpp>
#include <flex/sync/lock_rules.hpp>
#include <flex/sync/primitives.hpp>
#include <flex/sync/thread_annotations.hpp>

namespace flex::sync {

/// An object whose last use ends with an unlock; see DeferredWork::retire.
class Retired {
 public:
  Retired() = default;
  Retired(Retired const&) = delete;
  Retired& operator=(Retired const&) = delete;
  virtual ~Retired() = default;
};

/// Work that threads which could not get the mutex leave behind for whoever holds it.
class DeferredWork {
 public:
  DeferredWork() = default;
  DeferredWork(DeferredWork const&) = delete;
  DeferredWork& operator=(DeferredWork const&) = delete;
  virtual ~DeferredWork() = default;

  [[nodiscard]] bool pending() const noexcept { return head_.load(std::memory_order_acquire) != 0; }

  /// Does all pending work. Called with the mutex held.
  virtual void run() noexcept = 0;

  /// Has `object` destroyed, with the mutex free, by whoever looks for work next: this thread, at
  /// the latest in the unlock() that follows. Requires: the mutex is held, and nobody can reach the
  /// object any more.
  void retire(std::unique_ptr<Retired> object) noexcept {
    retired_ = std::move(object);
    head_.store(kRetiring, std::memory_order_relaxed);  // nothing else can be pending any more
  }

 protected:
  /// A head that means: no list, but something to destroy.
  static constexpr std::uint64_t kRetiring = std::uint64_t{1} << 63U;

  /// Head of a list in the implementer's own encoding, or kRetiring; 0 is the empty list.
  Atomic<std::uint64_t> head_{0};

 private:
  friend class Mutex;
  std::unique_ptr<Retired> retired_;
};

/// Mutex that leaves no deferred work undone.
///
/// A thread that leaves work behind does: publish the work, then tryLock(). If that fails, somebody
/// holds the mutex and has yet to pass the last line of unlock(), which looks for work after the
/// release, and takes the mutex again to do it. So work is never stranded, and nobody who leaves
/// work ever waits.
///
/// Thread-safe: any member may be called from any thread at any time.
class FLEXALLOC_CAPABILITY("mutex") Mutex {
 public:
  explicit Mutex(DeferredWork& work) noexcept : work_(work) {}
  Mutex(Mutex const&) = delete;
  Mutex& operator=(Mutex const&) = delete;
  ~Mutex() = default;

  /// Blocks until the mutex is free. Requires: not attached to an interpreter (rule R1).
  void lock() FLEXALLOC_ACQUIRE() {
    noteWaitBegins("allocator mutex");
    mutex_.lock();
    noteWaitEnds();
    noteMutexAcquired();
  }

  [[nodiscard]] bool tryLock() FLEXALLOC_TRY_ACQUIRE(true) {
    if (!mutex_.tryLock()) return false;
    noteMutexAcquired();
    return true;
  }

  [[gnu::always_inline]] void unlock() FLEXALLOC_RELEASE() {
    noteMutexReleased();
    mutex_.unlock();
    if (work_.pending()) [[unlikely]]
      catchUp();
  }

  /// For the moment of a fork only, when also an attached thread may wait: whoever holds the mutex
  /// lets go of it without needing the interpreter.
  void lockForFork() FLEXALLOC_ACQUIRE() {
    mutex_.lock();
    noteMutexAcquired();
  }

  /// Another allocator uses the mutex from now on. Requires: it is held, since lock().
  void forgetUse() noexcept FLEXALLOC_REQUIRES(this) { mutex_.forgetUse(); }

  /// Says (and in checking builds checks, as far as this thread goes) that the mutex is held.
  void assertHeld() const noexcept FLEXALLOC_ASSERT_CAPABILITY(this) { noteMutexNeeded(); }

  /// Does what other threads left behind.
  void runDeferred() noexcept FLEXALLOC_REQUIRES(this) {
    if (work_.pending()) [[unlikely]]
      work_.run();
  }

 private:
  /// Does what was left while the mutex was held, unless another holder does. Out of line, so that
  /// unlock() is short.
  [[gnu::cold, gnu::noinline]] void catchUp();
  void workAndRelease() FLEXALLOC_RELEASE();

  BiasedMutex mutex_;
  DeferredWork& work_;
};

}  // namespace flex::sync

namespace flex {

struct TryToLock {};
inline constexpr TryToLock kTryToLock{};

/// Ownership of the allocator's mutex, as handed to a memory-pressure callback.
///
/// lock() and unlock() do nothing when there is nothing to do, so that one callback
/// (`lock.unlock(); work(); lock.lock();`) serves a strategy that enters it with the mutex held and
/// one that does not.
///
/// Confined: use from the thread that owns it.
class FLEXALLOC_SCOPED_CAPABILITY Lock {
 public:
  explicit Lock(sync::Mutex& mutex) FLEXALLOC_ACQUIRE(mutex) : mutex_(mutex), owned_(true) {
    mutex.lock();
  }

  /// Does not block; ask owned().
  Lock(sync::Mutex& mutex, TryToLock /*tag*/) FLEXALLOC_TRY_ACQUIRE(true, mutex)
      : mutex_(mutex), owned_(mutex.tryLock()) {}

  Lock(Lock const&) = delete;
  Lock& operator=(Lock const&) = delete;
  ~Lock() FLEXALLOC_RELEASE() { unlock(); }

  // No attributes: the analysis does not follow a lock that is passed by reference, as callbacks
  // get it.

  /// Blocks until the mutex is held. Requires: not attached to an interpreter.
  void lock() FLEXALLOC_NO_THREAD_SAFETY_ANALYSIS {
    if (owned_) return;
    mutex_.lock();
    owned_ = true;
  }

  void unlock() FLEXALLOC_NO_THREAD_SAFETY_ANALYSIS {
    if (!owned_) return;
    owned_ = false;
    mutex_.unlock();
  }

  [[nodiscard]] bool owned() const noexcept { return owned_; }
  [[nodiscard]] bool owns_lock() const noexcept { return owned_; }  ///< as std::unique_lock has it
  [[nodiscard]] bool owns(sync::Mutex const& mutex) const noexcept {
    return owned_ && &mutex_ == &mutex;
  }

 private:
  sync::Mutex& mutex_;
  bool owned_;
};

/// A gap in a held lock: lets go now, and has it again when the gap ends, however it ends.
/// What was believed before the gap must be looked at again after it (rule R4).
class Gap {
 public:
  explicit Gap(Lock& lock) FLEXALLOC_NO_THREAD_SAFETY_ANALYSIS : lock_(lock) { lock_.unlock(); }
  Gap(Gap const&) = delete;
  Gap& operator=(Gap const&) = delete;
  ~Gap() FLEXALLOC_NO_THREAD_SAFETY_ANALYSIS { lock_.lock(); }

 private:
  Lock& lock_;
};

}  // namespace flex
