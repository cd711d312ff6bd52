// SPDX-License-Identifier: Apache-2.0
#pragma once
// What ties pool, lock, callbacks and waiting together, whatever the strategy.

#include <cstdint>
#include <memory>
#include <optional>

#include <boost/intrusive/list.hpp>

#include <flex/allocator_options.hpp>
#include <flex/composite_address.hpp>
#include <flex/detail/callback_chain.hpp>
#include <flex/detail/lock_cell.hpp>
#include <flex/detail/memory_pool.hpp>
#include <flex/device_memory.hpp>
#include <flex/pressure_request.hpp>
#include <flex/statistics.hpp>
#include <flex/sync/mutex.hpp>

namespace flex::detail {

class Request;

/// The state of one allocator. Outlives its FlexAllocator for as long as a block is used or a
/// request is inside: whoever makes it unused by an unlock destroys it right after that unlock.
///
/// FlexAllocator derives from it the engine that knows the strategy.
///
/// Thread-safe unless a member says otherwise.
class Engine : public sync::Retired {
 public:
  /// Throws std::invalid_argument (options, topology, a null device), DeviceError (the device
  /// refuses an upfront region), std::bad_alloc.
  Engine(std::shared_ptr<DeviceMemory> device, AllocatorOptions options);
  ~Engine() override;

  // --- requests

  /// For requests that were not served at once. Blocks (not attached to an interpreter) for the
  /// mutex, for the gate, for memory, as long as the options allow; see Request::run for errors.
  [[nodiscard]] CompositeAddress allocateSlowly(std::uint64_t nbytes,
                                                AllocationDirective const& directive,
                                                RequestOptions const& options);
  /// Blocks for the mutex only. Empty if nothing fits or the strategy admits nobody now.
  [[nodiscard]] CompositeAddress tryAllocate(Placement const& placement);
  /// Never blocks: empty also while another thread holds the mutex. Asks no device.
  [[nodiscard]] CompositeAddress tryAllocateAtOnce(Placement const& placement);

  /// Owns the blocks from now on.
  [[nodiscard]] static CompositeAddress own(BlockHandle block) noexcept {
    return CompositeAddress(block);
  }
  [[nodiscard]] static CompositeAddress own(BlockList&& blocks) noexcept {
    return CompositeAddress(std::move(blocks));
  }

  /// Takes the blocks of an allocation back. Never blocks. The engine may be gone when it returns.
  [[gnu::always_inline]] void giveBack(BlockList&& blocks) noexcept;
  [[gnu::always_inline]] void giveBack(CompositeAddress&& address) noexcept {
    giveBack(std::move(address.blocks_));
  }
  [[nodiscard]] bool owns(CompositeAddress const& address) const noexcept {
    return address.blocks_[0].region->owner == this;
  }

  // --- for whoever holds the mutex

  [[nodiscard]] sync::Mutex& mutex() noexcept FLEXALLOC_RETURN_CAPABILITY(cell_.mutex) {
    return cell_.mutex;
  }
  [[nodiscard]] Region& region(std::uint32_t id) noexcept FLEXALLOC_REQUIRES(mutex()) {
    return pool_.region(id);
  }
  void releaseDeferred(BlockHandle block) noexcept FLEXALLOC_REQUIRES(mutex());
  /// Tells the strategy of frees, and retires the engine if that was its last block.
  void afterRelease() noexcept FLEXALLOC_REQUIRES(mutex()) {
    onFree();
    if (closed_ || pool_.timesEmptied() != times_emptied_) [[unlikely]]
      afterLastRelease();
  }

  // --- the allocator's other calls

  [[nodiscard]] Placement makePlacement(std::uint64_t nbytes,
                                        AllocationDirective const& directive) const {
    return detail::makePlacement(nbytes, directive, device_->topology());
  }
  [[nodiscard]] Statistics statistics();
  [[nodiscard]] std::optional<Statistics> tryStatistics();
  void resetPeakStatistics();
  void resetAccumulatedStatistics();
  [[nodiscard]] std::uint64_t trim();
  void checkInvariants();
  void noteMisuse() noexcept;
  [[nodiscard]] std::shared_ptr<CallbackChain> const& chain() const noexcept { return chain_; }
  [[nodiscard]] std::shared_ptr<DeviceMemory> const& device() const noexcept { return device_; }

  /// From now on nobody waits and no callback starts: who waits fails with `reason`, and so does
  /// who would have to.
  void stopWaiting(FailureReason reason);

  /// Ends the life of the FlexAllocator. Returns when no callback is running on another thread.
  /// Requires: the engine is not used by its owner afterwards.
  void close();

  /// In a forked child, with the mutex held: forgets all threads but the calling one.
  void resetAfterFork() noexcept;

 protected:
  /// The last thing that the constructor of the derived class does.
  void open() noexcept { cell_.moveIn(*this); }

  // What FlexAllocator knows and this class does not. Called with the mutex held.
  virtual bool admit() noexcept = 0;
  virtual void onServedAtOnce() noexcept = 0;
  virtual Verdict resolve(Lock& lock, PressureRequest& request) = 0;
  virtual void onFree() noexcept = 0;
  virtual void wakeAll() noexcept = 0;
  virtual void resetStrategyAfterFork(bool reclaiming) noexcept = 0;

  /// One block of tensor memory, if it fits now. Requires: as MemoryPool::tryPlacePlain.
  [[nodiscard, gnu::always_inline]] BlockHandle placePlain(std::uint64_t nbytes) noexcept
      FLEXALLOC_REQUIRES(mutex()) {
    return pool_.tryPlacePlain(nbytes);
  }

  [[nodiscard]] StrategyContext strategyContext() noexcept FLEXALLOC_NO_THREAD_SAFETY_ANALYSIS {
    return {cell_.mutex, pressure_, *options_.clock};
  }

 private:
  friend class Request;

  /// A thread that waits until another one has finished asking the device for a region.
  struct GrowthWait : boost::intrusive::list_base_hook<> {
    sync::Parker parker;
  };
  using GrowthWaits =
      boost::intrusive::list<GrowthWait, boost::intrusive::constant_time_size<false>>;

  /// A call to the device in flight: regions are on their way in or out, so who finds none waits
  /// for the end of it. Requires: the mutex is held at both ends.
  class DeviceCall {
   public:
    explicit DeviceCall(Engine& engine) noexcept;
    DeviceCall(DeviceCall const&) = delete;
    DeviceCall& operator=(DeviceCall const&) = delete;
    ~DeviceCall();

   private:
    Engine& engine_;
  };

  void acquireUpfront();
  /// Throws std::bad_alloc; the device has its region back then. Blocks in the device then.
  void addRegion(DeviceRegion const& region, MemoryTypes types) FLEXALLOC_REQUIRES(mutex());
  void giveBackMany(BlockList const& blocks) noexcept;
  [[gnu::cold, gnu::noinline]] static void giveBackLater(LockCell& cell,
                                                         BlockHandle block) noexcept;
  /// What only the last free of a region, or of a closed allocator, entails.
  void afterLastRelease() noexcept FLEXALLOC_REQUIRES(mutex());
  void retireIfUnused() noexcept FLEXALLOC_REQUIRES(mutex());
  void wakeEveryone() noexcept FLEXALLOC_REQUIRES(mutex());
  [[nodiscard]] Statistics describe() noexcept FLEXALLOC_REQUIRES(mutex());
  void releaseToDevice(std::vector<std::unique_ptr<Region>> regions) noexcept;

  std::shared_ptr<DeviceMemory> const device_;
  AllocatorOptions const options_;
  LockCellLease const lease_;
  LockCell& cell_;
  std::shared_ptr<CallbackChain> const chain_ = std::make_shared<CallbackChain>();
  MemoryPool pool_ FLEXALLOC_GUARDED_BY(cell_.mutex);
  PressureStatistics pressure_ FLEXALLOC_GUARDED_BY(cell_.mutex);
  std::uint64_t misuses_ FLEXALLOC_GUARDED_BY(cell_.mutex) = 0;
  Generation generation_ FLEXALLOC_GUARDED_BY(cell_.mutex) = 0;
  std::uint32_t requests_inside_ FLEXALLOC_GUARDED_BY(cell_.mutex) = 0;
  std::uint64_t releases_ FLEXALLOC_GUARDED_BY(cell_.mutex) = 0;  ///< times regions were given back
  std::uint64_t times_emptied_ FLEXALLOC_GUARDED_BY(cell_.mutex) = 0;  ///< that were told of
  std::uint32_t device_calls_ FLEXALLOC_GUARDED_BY(cell_.mutex) = 0;   ///< in flight
  GrowthWaits growth_waits_ FLEXALLOC_GUARDED_BY(cell_.mutex);
  bool closed_ FLEXALLOC_GUARDED_BY(cell_.mutex) = false;
  bool retired_ FLEXALLOC_GUARDED_BY(cell_.mutex) = false;
  /// Set once nobody may wait any more.
  std::optional<FailureReason> stop_reason_ FLEXALLOC_GUARDED_BY(cell_.mutex);
};

// The engine may be gone once a thread that does not hold the mutex has handed over its last block;
// the cell is never.
inline void Engine::giveBack(BlockList&& blocks) noexcept {
  if (blocks.isMany()) [[unlikely]]
    return giveBackMany(BlockList(std::move(blocks)));
  BlockHandle const block = blocks[0];
  blocks.clear();
  // The miss on the block's node overlaps with the lock's atomic operation.
  block.region->index.prefetch(block.node);
  LockCell& cell = cell_;
  if (!cell.mutex.tryLock()) [[unlikely]]
    return giveBackLater(cell, block);
  cell_.mutex.assertHeld();
  pool_.release(block);
  afterRelease();
  cell.mutex.unlock();
}

}  // namespace flex::detail
