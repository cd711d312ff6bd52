// SPDX-License-Identifier: Apache-2.0
#pragma once
// The allocator.

#include <cstdint>
#include <memory>
#include <optional>

#include <flex/allocator_options.hpp>
#include <flex/callback_handle.hpp>
#include <flex/composite_address.hpp>
#include <flex/detail/engine.hpp>
#include <flex/device_memory.hpp>
#include <flex/directive.hpp>
#include <flex/error.hpp>
#include <flex/pressure.hpp>
#include <flex/pressure_strategy.hpp>
#include <flex/statistics.hpp>
#include <flex/strategies/hold_mutex_during_callback.hpp>

namespace flex {

/// What became of a deallocate().
enum class DeallocateResult : std::uint8_t {
  freed,    ///< the memory is back
  empty,    ///< there was nothing to free: freed or moved away before
  foreign,  ///< it belongs to another allocator; nothing was changed
};

/// Carves blocks out of large regions of device memory. All bookkeeping is on the host; the memory
/// itself is never touched. When no region can serve a request, `Strategy` decides who runs the
/// registered memory-pressure callbacks, who waits, who gets what comes back, and when the request
/// fails.
///
/// Requires: no thread is inside a member when the destructor starts, except one that waits for
/// memory in allocate(); it fails with FailureReason::closed. Addresses may outlive the allocator.
///
/// Thread-safe: any member may be called from any thread at any time. A thread attached to a Python
/// interpreter must detach before it calls a member that may block.
///
/// Example:
///   flex::FlexAllocator<> allocator(std::make_shared<flex::SimulatedDevice>(flex::kGiB));
///   auto pressure = allocator.registerMemoryPressureCallback([&](flex::Lock& lock) {
///     lock.unlock();
///     cache.clear();
///     lock.lock();
///   });
///   flex::CompositeAddress tensor = allocator.allocate(64 * flex::kMiB);
template <PressureStrategy Strategy = HoldMutexDuringCallback>
class FlexAllocator {
 public:
  using StrategyOptions = typename Strategy::Options;

  /// Takes the upfront regions from the device.
  /// Throws std::invalid_argument, DeviceError (the device refuses a region), std::bad_alloc.
  explicit FlexAllocator(std::shared_ptr<DeviceMemory> device, AllocatorOptions options = {},
                         StrategyOptions strategy_options = {});
  FlexAllocator(FlexAllocator const&) = delete;
  FlexAllocator& operator=(FlexAllocator const&) = delete;
  /// Requests that wait fail with FailureReason::closed. Blocks until no callback runs on another
  /// thread. Regions go back to the device when the last block is freed.
  ~FlexAllocator();

  /// `nbytes` bytes, rounded up to the granule, placed as `directive` says.
  /// Blocks: for memory, by the strategy, at most max_wait; ended by an interruption. Runs
  /// callbacks. Throws OutOfMemoryError; std::invalid_argument (zero bytes, a bad directive);
  /// boost::thread_interrupted; std::bad_alloc (host memory). Nothing has changed then.
  [[nodiscard]] CompositeAddress allocate(std::uint64_t nbytes,
                                          AllocationDirective const& directive,
                                          RequestOptions const& options = {});
  /// One chunk of tensor memory anywhere.
  [[nodiscard]] CompositeAddress allocate(std::uint64_t nbytes);

  /// The same in one domain.
  [[nodiscard]] CompositeAddress allocateInDomain(std::uint64_t nbytes, DomainId domain,
                                                  MemoryType memory_type = MemoryType::tensor,
                                                  RequestOptions const& options = {});

  /// Memory that is free, or that the device gives at once. Runs no callback and waits for nobody's
  /// memory. Empty if nothing fits, or while the strategy admits nobody.
  /// Throws std::invalid_argument. Blocks for the mutex only.
  [[nodiscard]] std::optional<CompositeAddress> tryAllocate(
      std::uint64_t nbytes, AllocationDirective const& directive = {});

  /// The fast path alone, for threads that must not block: also empty if another thread is inside
  /// the allocator at this moment. Never blocks; asks no device. Throws std::invalid_argument.
  [[nodiscard]] std::optional<CompositeAddress> tryAllocateAtOnce(
      std::uint64_t nbytes, AllocationDirective const& directive = {});

  /// Gives memory back. Never blocks: if the mutex is taken, the block is left to its holder.
  DeallocateResult deallocate(CompositeAddress&& address) noexcept;

  /// Callbacks run in order of rising `priority` (give cheap ones a low one), equal ones in order
  /// of registration. The returned handle unregisters when destroyed. A null callback instead
  /// unregisters every callback of that priority, and returns an empty handle.
  /// Blocks only to unregister, until no other thread is inside the callback.
  [[nodiscard]] CallbackHandle registerMemoryPressureCallback(MemoryPressureCallback callback,
                                                              int priority = 0);
  void registerMemoryPressureCallback(std::nullptr_t, int priority = 0);

  /// One consistent picture. Blocks for the mutex.
  [[nodiscard]] Statistics statistics() const;
  /// Never blocks: empty if another thread is inside the allocator at this moment.
  [[nodiscard]] std::optional<Statistics> tryStatistics() const;
  void resetPeakStatistics();
  /// Sets allocated and freed bytes, and all pressure counters, to zero.
  void resetAccumulatedStatistics();

  /// Gives wholly free regions back to the device; they are taken again when needed.
  /// Returns the bytes given back. Blocks for the mutex and in the device.
  std::uint64_t trim();

  /// Throws InvariantViolation. Cost: a walk over all blocks, with the mutex held.
  void checkInvariants() const;

  /// From now on nobody waits and no callback starts; requests that find no memory at once fail
  /// with `reason`. There is no way back. For a process that is ending.
  void stopWaiting(FailureReason reason);

  [[nodiscard]] std::shared_ptr<DeviceMemory> device() const;

 private:
  class StrategyEngine;

  StrategyEngine* engine_;  ///< destroys itself, see Engine
};

}  // namespace flex

#include <flex/strategies/release_and_condvar.hpp>

namespace flex {
extern template class FlexAllocator<HoldMutexDuringCallback>;
extern template class FlexAllocator<ReleaseAndCondvar>;
}  // namespace flex
