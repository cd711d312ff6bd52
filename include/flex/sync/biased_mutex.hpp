// SPDX-License-Identifier: Apache-2.0
#pragma once
// A mutex that costs no atomic operation for as long as one thread uses it.

#include <array>
#include <cstdint>

#include <flex/sync/primitives.hpp>

namespace flex::sync {

/// A RawMutex that a thread which took it many times in a row owns from then on: that thread's
/// tryLock() and unlock() are plain loads and stores, until another thread comes and revokes the
/// ownership. ("Quickly reacquirable locks", Dice, Moir and Scherer, 2003.)
///
/// Owner and revoker each write one word and then read the other's. The owner, who does so all the
/// time, only keeps the compiler from reordering this; the revoker, who does it rarely, has the
/// kernel run a barrier on every processor that runs a thread of this process. An ownership that
/// did not pay for its end makes the next one come later, so threads that share a mutex soon have
/// an ordinary one.
///
/// What is held by ownership is held for as long as a fast path takes, since lock() ends it first.
/// So lock() may look again and again until the owner is out.
///
/// Whoever is told by tryLock() that the mutex is taken may rely on somebody who has yet to pass
/// the end of an unlock(), or of a tryLock() that fails, and who sees there what was written
/// before.
///
/// Thread-safe.
class BiasedMutex {
 public:
  BiasedMutex() = default;
  BiasedMutex(BiasedMutex const&) = delete;
  BiasedMutex& operator=(BiasedMutex const&) = delete;
  ~BiasedMutex() = default;

  /// Blocks until the mutex is free.
  void lock() {
    raw_.lock();
    if (!settled_) [[unlikely]]
      settle();
  }

  /// Never blocks. False: somebody has it, or is about to.
  [[nodiscard]] bool tryLock() {
    Seat* const seat = owner_.load(std::memory_order_acquire);
    if (seat != nullptr && seat->thread == thisThreadToken()) {
      if (seat->inside.load(std::memory_order_relaxed)) return false;  // held by this very thread
      seat->inside.store(true, std::memory_order_relaxed);
      lightBarrier();
      if (owner_.load(std::memory_order_relaxed) == seat) [[likely]] {
        held_from_ = seat;
        return true;
      }
      seat->inside.store(false, std::memory_order_release);  // revoked at this very moment
    }
    if (!raw_.try_lock()) return false;
    if (settled_) [[likely]]
      return true;
    return settleOrLeave();
  }

  /// Afterwards the caller sees what was written by whoever failed to get the mutex meanwhile.
  void unlock() {
    if (Seat* const seat = held_from_) {
      ++in_a_row_;
      seat->inside.store(false, std::memory_order_release);
      lightBarrier();
      return;
    }
    countForOwnership();
    raw_.unlock();
    fenceAfterUnlock();
  }

  /// Forgets how the mutex was used so far. Requires: it is held, since lock().
  void forgetUse() noexcept {
    last_ = kNoThread;
    patience_ = kShortestPatience;
  }

 private:
  /// Where an owner says whether it is inside. A seat is its thread's for good: a thread that has
  /// lost the ownership may write there once more before it notices.
  struct Seat {
    ThreadToken thread = kNoThread;
    LateFlag inside{false};
  };
  static constexpr std::size_t kSeats = 8;  ///< threads beyond that never own
  static constexpr std::uint64_t kLongestPatience = std::uint64_t{1} << 20U;

  /// Requires: raw_ is held.
  void countForOwnership() noexcept {
    if (last_ != thisThreadToken()) {
      last_ = thisThreadToken();
      in_a_row_ = 0;
    } else if (++in_a_row_ >= patience_) [[unlikely]] {
      makeOwner();
    }
  }

  /// Gives this thread the ownership, if that is possible. Requires: raw_ is held.
  [[gnu::cold]] void makeOwner() noexcept;
  /// Waits until the owner is out. Requires: raw_ is held.
  [[gnu::cold]] void settle() noexcept;
  /// Lets go of raw_ if the owner is inside; whether this thread has the mutex now.
  [[nodiscard, gnu::cold]] bool settleOrLeave();
  /// Ends the ownership. Requires: raw_ is held.
  void revoke() noexcept;
  /// Whether the owner, whose ownership has ended, is out. Requires: raw_ is held.
  [[nodiscard]] bool ownerIsOut() noexcept;

  Atomic<Seat*> owner_{nullptr};  ///< who may come in by ownership; written with raw_ held
  // Guarded by the mutex:
  Seat* held_from_ = nullptr;     ///< by ownership
  ThreadToken last_ = kNoThread;  ///< who unlocked last
  std::uint64_t in_a_row_ = 0;    ///< unlocks by last_: before it became the owner, or since
  std::uint64_t patience_ = kShortestPatience;  ///< unlocks in a row that make an owner
  // Guarded by raw_:
  bool settled_ = true;        ///< nobody can come in by ownership, or is in
  Seat* last_seat_ = nullptr;  ///< of the owner
  RawMutex raw_;
  std::array<Seat, kSeats> seats_;
};

}  // namespace flex::sync
