// SPDX-License-Identifier: Apache-2.0
#pragma once
// The lock rules of docs/concurrency.md as assertions. Two locks matter: the allocator's mutex M
// and the interpreter (its GIL, or being attached to it). The core knows no interpreter; a binding
// tells it through InterpreterProbe. With FLEXALLOC_CHECK_LOCK_RULES=0 every check is empty.

#ifndef FLEXALLOC_CHECK_LOCK_RULES
#define FLEXALLOC_CHECK_LOCK_RULES 0
#endif

namespace flex::sync {

enum class LockRule {
  wait_attached,   ///< R1: waiting for M (or asleep) while attached to the interpreter
  attach_holding,  ///< R2: attaching to the interpreter while holding M
  foreign_code,    ///< R3: foreign code entered while holding M
  state_unlocked,  ///< state that M guards is used by a thread that does not hold M
};

/// What the core may ask about an interpreter. Functions are called from any thread and must
/// neither block nor throw. `wait_begins`/`wait_ends` bracket a wait for M by an attached thread,
/// so that a lock-order detector can be told about it; both may be null.
struct InterpreterProbe {
  bool (*attached)() noexcept = nullptr;
  void (*wait_begins)() noexcept = nullptr;
  void (*wait_ends)() noexcept = nullptr;
  /// Called just before a thread may wait to be attached; may be null.
  void (*attaches)() noexcept = nullptr;
};

/// Called with the broken rule and the place. The default prints both and aborts.
using LockRuleHandler = void (*)(LockRule rule, char const* where) noexcept;

void setInterpreterProbe(InterpreterProbe const& probe) noexcept;
/// Returns the handler that was in force; null restores the default.
LockRuleHandler setLockRuleHandler(LockRuleHandler handler) noexcept;

#if FLEXALLOC_CHECK_LOCK_RULES
void noteMutexAcquired() noexcept;
void noteMutexReleased() noexcept;
void noteMutexNeeded() noexcept;
void noteWaitBegins(char const* where) noexcept;
void noteWaitEnds() noexcept;
void assertMayAttach(char const* where) noexcept;
void assertNoMutexHeld(char const* where) noexcept;
#else
inline void noteMutexAcquired() noexcept {}
inline void noteMutexReleased() noexcept {}
inline void noteMutexNeeded() noexcept {}
inline void noteWaitBegins(char const* /*where*/) noexcept {}
inline void noteWaitEnds() noexcept {}
inline void assertMayAttach(char const* /*where*/) noexcept {}
inline void assertNoMutexHeld(char const* /*where*/) noexcept {}
#endif

}  // namespace flex::sync
