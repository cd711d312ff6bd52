// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include <pthread.h>

#include <flex/detail/callout.hpp>
#include <flex/detail/engine.hpp>
#include <flex/detail/lock_cell.hpp>
#include <flex/sync/fork_mutex.hpp>

namespace flex::detail {
namespace {

struct Registry {
  sync::RawMutex mutex;
  LockCell* newest = nullptr;  ///< of all cells, linked through older()
  std::size_t count = 0;
  std::vector<LockCell*> vacant;
};

// Never destroyed: allocators and their last frees may outlive every static object.
Registry& registry() {
  static Registry& instance = *new Registry;
  return instance;
}

// Around a fork all mutexes are held, so that the child finds every allocator between two
// operations. In the child only the forking thread exists: requests and reclaims of the others are
// forgotten.

void prepareFork() noexcept {
  registry().mutex.lock();
  for (LockCell* cell = registry().newest; cell != nullptr; cell = cell->older()) {
    cell->lockForFork();
  }
}

// Letting go of a cell does what was deferred meanwhile, which may end an engine, which gives its
// cell back to the registry: so the registry is free by then.
void afterFork(bool in_child) noexcept {
  LockCell* const newest = registry().newest;
  registry().mutex.unlock();
  for (LockCell* cell = newest; cell != nullptr; cell = cell->older()) {
    cell->unlockAfterFork(in_child);
  }
}

void afterForkInParent() noexcept { afterFork(false); }
void afterForkInChild() noexcept { afterFork(true); }

// A deferred block's link, in its own node: link_next is the next node, link_previous its region.
std::uint64_t encode(std::uint32_t region, NodeIndex node) noexcept {
  return std::uint64_t{region} << 32U | node;
}

}  // namespace

LockCell& LockCell::take() {
  Registry& all = registry();
  sync::ForkMutex::installForkHandlers();
  static int const handlers = ::pthread_atfork(&prepareFork, &afterForkInParent, &afterForkInChild);
  if (handlers != 0) throw std::bad_alloc();
  sync::RawUniqueLock const lock(all.mutex);
  if (all.vacant.empty()) {
    all.vacant.reserve(all.count + 1);  // so that giveBack() never needs memory
    auto* const made = new LockCell;
    made->older_ = std::exchange(all.newest, made);
    ++all.count;
    all.vacant.push_back(made);
  }
  LockCell& cell = *all.vacant.back();
  all.vacant.pop_back();
  return cell;
}

void LockCell::giveBack() noexcept {
  Registry& all = registry();
  sync::RawUniqueLock const lock(all.mutex);
  all.vacant.push_back(this);
}

// Only a fork may hold the mutex now, so also an attached thread may wait for it.
void LockCell::moveIn(Engine& tenant) noexcept FLEXALLOC_NO_THREAD_SAFETY_ANALYSIS {
  mutex.lockForFork();
  mutex.forgetUse();
  tenant_ = &tenant;
  mutex.unlock();
}

void LockCell::moveOut(std::unique_ptr<sync::Retired> tenant) noexcept
    FLEXALLOC_NO_THREAD_SAFETY_ANALYSIS {
  tenant_ = nullptr;
  retire(std::move(tenant));
}

// The forking thread may be inside a callback that holds the mutex.
void LockCell::lockForFork() noexcept FLEXALLOC_NO_THREAD_SAFETY_ANALYSIS {
  held_before_fork_ = Callout::holds(mutex);
  if (!held_before_fork_) mutex.lockForFork();
  if (tenant_ != nullptr) tenant_->chain()->lockForFork();
}

void LockCell::unlockAfterFork(bool in_child) noexcept FLEXALLOC_NO_THREAD_SAFETY_ANALYSIS {
  if (tenant_ != nullptr) {
    tenant_->chain()->unlockAfterFork();
    if (in_child) tenant_->resetAfterFork();
  }
  if (!held_before_fork_) mutex.unlock();
}

void LockCell::defer(BlockHandle block) noexcept {
  BlockNode& node = block.region->index.node(block.node);
  std::uint64_t const link = encode(block.region->id, block.node);
  std::uint64_t head = head_.load(std::memory_order_relaxed);
  do {
    node.link_next = static_cast<NodeIndex>(head);
    node.link_previous = static_cast<std::uint32_t>(head >> 32U);
  } while (!head_.compare_exchange_weak(head, link, std::memory_order_seq_cst,
                                        std::memory_order_relaxed));
}

// The analysis does not know that the tenant's mutex is this one.
void LockCell::run() noexcept FLEXALLOC_NO_THREAD_SAFETY_ANALYSIS {
  std::uint64_t link = head_.exchange(0, std::memory_order_acquire);
  if (link == kRetiring) return;
  while (link != 0) {
    auto const node = static_cast<NodeIndex>(link);
    Region& region = tenant_->region(static_cast<std::uint32_t>(link >> 32U));
    BlockNode const& block = region.index.node(node);
    link = encode(block.link_previous, block.link_next);
    tenant_->releaseDeferred({&region, node});
  }
  tenant_->afterRelease();
}

}  // namespace flex::detail
