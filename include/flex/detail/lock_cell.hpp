// SPDX-License-Identifier: Apache-2.0
#pragma once
// An allocator's mutex and the frees that wait for it, in memory that is never given back.

#include <memory>

#include <flex/detail/block_list.hpp>
#include <flex/detail/region.hpp>
#include <flex/sync/mutex.hpp>

namespace flex::detail {

class Engine;

/// A thread that frees a block touches the mutex once more after letting go of it (Mutex::unlock
/// looks for deferred work again). By then another thread may have destroyed the allocator. So the
/// mutex lives in a cell that is recycled but never destroyed: the late look finds an empty list,
/// or the work of the cell's next tenant, which it may do as well as anybody. This spares every
/// free the two atomic operations of a reference count.
class LockCell final : public sync::DeferredWork {
 public:
  LockCell() = default;
  /// A cell without a tenant, locked to nobody. Throws std::bad_alloc.
  [[nodiscard]] static LockCell& take();
  /// Gives the cell to the next one who takes. Requires: it has no tenant.
  void giveBack() noexcept;

  /// The tenant is complete: its blocks may be deferred from now on, and forks may look at it.
  void moveIn(Engine& tenant) noexcept;
  /// The tenant goes, and is destroyed as DeferredWork::retire has it. Requires: the mutex is held,
  /// and no block of the tenant is used or deferred.
  void moveOut(std::unique_ptr<sync::Retired> tenant) noexcept;

  /// Leaves a block to whoever holds the mutex. Lock-free; needs no memory: the link is in the
  /// block's own node. Requires: the block is used, by the caller alone.
  void defer(BlockHandle block) noexcept;

  void run() noexcept override;

  /// Around fork(), from the registry's handlers.
  void lockForFork() noexcept;
  void unlockAfterFork(bool in_child) noexcept;
  /// The cell that was made before this one; never changes.
  [[nodiscard]] LockCell* older() const noexcept { return older_; }

  sync::Mutex mutex{*this};

 private:
  LockCell* older_ = nullptr;
  Engine* tenant_ FLEXALLOC_GUARDED_BY(mutex) = nullptr;
  bool held_before_fork_ = false;
};

/// An engine's hold on its cell.
class LockCellLease {
 public:
  /// Throws std::bad_alloc.
  LockCellLease() : cell(LockCell::take()) {}
  LockCellLease(LockCellLease const&) = delete;
  LockCellLease& operator=(LockCellLease const&) = delete;
  ~LockCellLease() { cell.giveBack(); }

  LockCell& cell;
};

}  // namespace flex::detail
