// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <cstdio>
#include <cstdlib>

#include <flex/sync/lock_rules.hpp>

namespace flex::sync {
namespace {

void abortOnBrokenRule(LockRule rule, char const* where) noexcept {
  static constexpr char const* kTexts[] = {
      "R1: waits for an allocator lock while attached to the interpreter",
      "R2: attaches to the interpreter while holding the allocator mutex",
      "R3: foreign code is entered while holding the allocator mutex",
      "state is used without the allocator mutex that guards it",
  };
  std::fprintf(stderr, "flexalloc: lock rule broken at %s: %s\n", where,
               kTexts[static_cast<int>(rule)]);
  std::abort();
}

// Plain function pointers, each published on its own: a probe is installed once, when a binding is
// imported, and its functions stay valid for the life of the process.
std::atomic<bool (*)() noexcept> attached_probe{nullptr};
std::atomic<void (*)() noexcept> wait_begins_probe{nullptr};
std::atomic<void (*)() noexcept> wait_ends_probe{nullptr};
std::atomic<void (*)() noexcept> attaches_probe{nullptr};
std::atomic<LockRuleHandler> rule_handler{&abortOnBrokenRule};

}  // namespace

void setInterpreterProbe(InterpreterProbe const& probe) noexcept {
  attached_probe = probe.attached;
  wait_begins_probe = probe.wait_begins;
  wait_ends_probe = probe.wait_ends;
  attaches_probe = probe.attaches;
}

LockRuleHandler setLockRuleHandler(LockRuleHandler handler) noexcept {
  return rule_handler.exchange(handler != nullptr ? handler : &abortOnBrokenRule);
}

#if FLEXALLOC_CHECK_LOCK_RULES
namespace {

thread_local int held_mutexes = 0;

bool attached() noexcept {
  auto* const probe = attached_probe.load();
  return probe != nullptr && probe();
}

}  // namespace

void noteMutexAcquired() noexcept { ++held_mutexes; }
void noteMutexReleased() noexcept { --held_mutexes; }

void noteMutexNeeded() noexcept {
  if (held_mutexes == 0) rule_handler.load()(LockRule::state_unlocked, "allocator state");
}

void noteWaitBegins(char const* where) noexcept {
  if (!attached()) return;
  if (auto* const begins = wait_begins_probe.load()) begins();
  rule_handler.load()(LockRule::wait_attached, where);
}

void noteWaitEnds() noexcept {
  if (!attached()) return;
  if (auto* const ends = wait_ends_probe.load()) ends();
}

void assertMayAttach(char const* where) noexcept {
  if (auto* const attaches = attaches_probe.load()) attaches();
  if (held_mutexes != 0) rule_handler.load()(LockRule::attach_holding, where);
}

void assertNoMutexHeld(char const* where) noexcept {
  if (held_mutexes != 0) rule_handler.load()(LockRule::foreign_code, where);
}
#endif

}  // namespace flex::sync
