// SPDX-License-Identifier: Apache-2.0
#pragma once
// An allocator's mutex and the frees that wait for it, in memory that is never given back.

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
  /// A cell for `tenant`, locked to nobody. Throws std::bad_alloc.
  [[nodiscard]] static LockCell& take(Engine& tenant);
  /// Gives the cell to the next tenant. Requires: no block of the tenant is used or deferred.
  void giveBack() noexcept;

  /// Leaves a block to whoever holds the mutex. Lock-free; needs no memory: the link is in the
  /// block's own node. Requires: the block is used, by the caller alone.
  void defer(BlockHandle block) noexcept;

  void run() noexcept override;

  /// Around fork(), from the registry's handlers.
  void lockForFork() noexcept;
  void unlockAfterFork(bool in_child) noexcept;

  sync::Mutex mutex{*this};

 private:
  Engine* tenant_ = nullptr;
  bool held_before_fork_ = false;
};

/// A tenant's hold on its cell.
class LockCellLease {
 public:
  /// Throws std::bad_alloc.
  explicit LockCellLease(Engine& tenant) : cell(LockCell::take(tenant)) {}
  LockCellLease(LockCellLease const&) = delete;
  LockCellLease& operator=(LockCellLease const&) = delete;
  ~LockCellLease() { cell.giveBack(); }

  LockCell& cell;
};

}  // namespace flex::detail
