// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <new>

#include <flex/detail/callback_chain.hpp>
#include <flex/sync/lock_rules.hpp>

namespace flex::detail {

CallbackChain::Run::Run(CallbackChain& chain, Entry& entry) : chain_(chain), entry_(entry) {
  sync::RawUniqueLock const lock(chain_.mutex_);
  if (!entry_.registered) return;
  entry_.runners.push_back(sync::thisThread());
  may_run_ = true;
}

CallbackChain::Run::~Run() {
  if (!may_run_) return;
  sync::RawUniqueLock const lock(chain_.mutex_);
  entry_.runners.erase(std::ranges::find(entry_.runners, sync::thisThread()));
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
  for (EntryPointer const& entry : *removed) {
    if (matches(*entry)) waitUntilUnused(*entry, lock);
  }
}

void CallbackChain::waitUntilUnused(Entry const& entry, sync::RawUniqueLock& lock) noexcept {
  sync::InterruptionDisabled const uninterrupted;
  auto const inside_itself = [&] {
    return std::ranges::find(entry.runners, sync::thisThread()) != entry.runners.end();
  };
  while (!entry.runners.empty() && !inside_itself()) {
    sync::noteWaitBegins("unregistering a callback that is running");
    run_ended_.wait(lock);
    sync::noteWaitEnds();
  }
}

void CallbackChain::remove(EntryPointer const& entry) noexcept {
  removeIf([&](Entry const& other) { return &other == entry.get(); });
  // It may have been unlisted before, by a thread that is still waiting for its runs to end.
  sync::RawUniqueLock lock(mutex_);
  waitUntilUnused(*entry, lock);
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
  for (EntryPointer const& entry : *entries_) {
    std::erase_if(entry->runners, [](auto const& id) { return id != sync::thisThread(); });
  }
}

}  // namespace flex::detail
