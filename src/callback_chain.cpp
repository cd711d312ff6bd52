// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <new>

#include <flex/detail/callback_chain.hpp>
#include <flex/sync/lock_rules.hpp>

namespace flex::detail {

CallbackChain::Run::Run(CallbackChain& chain, Entry& entry) : chain_(chain), entry_(entry) {
  sync::RawUniqueLock const lock(chain_.mutex_);
  if (!entry_.registered) return;
  chain_.runs_.push_back({&entry_, sync::thisThread()});
  may_run_ = true;
}

CallbackChain::Run::~Run() {
  if (!may_run_) return;
  sync::RawUniqueLock const lock(chain_.mutex_);
  chain_.runs_.erase(std::ranges::find_if(chain_.runs_, [this](RunRecord const& run) {
    return run.entry == &entry_ && run.thread == sync::thisThread();
  }));
  chain_.run_ended_.notifyAll();
}

CallbackChain::EntryPointer CallbackChain::add(MemoryPressureCallback callback, int priority) {
  auto entry = std::make_shared<Entry>(std::move(callback), priority);
  sync::RawUniqueLock const lock(mutex_);
  auto entries = std::make_shared<std::vector<EntryPointer>>(*entries_);
  auto const behind = std::ranges::upper_bound(
      *entries, priority, {}, [](EntryPointer const& other) { return other->priority; });
  entries->insert(behind, entry);
  entries_ = std::move(entries);
  return entry;
}

// A new list replaces the old one, which running reclaims go on reading. If there is no memory for
// a new one, the entries stay listed, but as unregistered they never run.
template <class Matches>
void CallbackChain::removeIf(Matches matches) noexcept {
  Snapshot removed;  // the last owner of the callbacks, perhaps: dies after the lock
  sync::RawUniqueLock lock(mutex_);
  removed = entries_;
  for (EntryPointer const& entry : *removed) {
    if (matches(*entry)) entry->registered = false;
  }
  try {
    auto kept = std::make_shared<std::vector<EntryPointer>>();
    std::ranges::copy_if(*removed, std::back_inserter(*kept),
                         [](EntryPointer const& entry) { return entry->registered; });
    entries_ = std::move(kept);
  } catch (std::bad_alloc const&) {
  }
  waitForRuns(matches, lock);
}

/// Returns at once where this thread is itself inside a matching callback. Runs of entries that
/// were unlisted before count too: whoever unlisted them may still be waiting.
template <class Matches>
void CallbackChain::waitForRuns(Matches matches, sync::RawUniqueLock& lock) noexcept {
  sync::InterruptionDisabled const uninterrupted;
  for (;;) {
    bool elsewhere = false;
    for (RunRecord const& run : runs_) {
      if (!matches(*run.entry)) continue;
      if (run.thread == sync::thisThread()) return;
      elsewhere = true;
    }
    if (!elsewhere) return;
    sync::noteWaitBegins("unregistering a callback that is running");
    run_ended_.wait(lock);
    sync::noteWaitEnds();
  }
}

void CallbackChain::remove(EntryPointer const& entry) noexcept {
  removeIf([&](Entry const& other) { return &other == entry.get(); });
}

void CallbackChain::removePriority(int priority) noexcept {
  removeIf([&](Entry const& other) { return other.priority == priority; });
}

void CallbackChain::removeAll() noexcept {
  removeIf([](Entry const&) { return true; });
}

CallbackChain::Snapshot CallbackChain::snapshot() const {
  sync::RawUniqueLock const lock(mutex_);
  return entries_;
}

void CallbackChain::resetAfterFork() noexcept {
  new (&run_ended_) sync::RawCondition;  // whoever waits there does not exist here
  std::erase_if(runs_, [](RunRecord const& run) { return run.thread != sync::thisThread(); });
}

}  // namespace flex::detail
