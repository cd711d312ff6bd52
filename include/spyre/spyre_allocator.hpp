// SPDX-License-Identifier: Apache-2.0
#pragma once
// The bridge between a framework and the allocator.

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include <flex/flex_allocator.hpp>
#include <spyre/data_ptr.hpp>

namespace spyre {

/// Told of every allocation and release, with no lock held, on the thread that caused it. It must
/// not throw. (A framework's memory profiler, say.)
class MemoryReporter {
 public:
  MemoryReporter() = default;
  MemoryReporter(MemoryReporter const&) = delete;
  MemoryReporter& operator=(MemoryReporter const&) = delete;
  virtual ~MemoryReporter() = default;

  /// `change` in bytes, rounded up to the granule: positive for an allocation, negative for a
  /// release.
  virtual void report(void* data, std::int64_t change) noexcept = 0;
};

/// The deleter of every DataPtr that a SpyreAllocator returns: records the release and gives the
/// block back. Never blocks and needs no interpreter, so it may run with the GIL, without it, on a
/// thread that never saw Python, and after the allocator is gone.
void ReportAndDelete(void* context) noexcept;

/// Bytes that ReportAndDelete has given back on this thread so far, of all allocators.
[[nodiscard]] std::uint64_t bytesReleasedByThisThread() noexcept;

/// What a DataPtr of a SpyreAllocator owns; null for any other.
[[nodiscard]] flex::CompositeAddress const* addressOf(DataPtr const& data) noexcept;

namespace detail {
[[nodiscard]] DataPtr makeDataPtr(flex::CompositeAddress&& address,
                                  std::shared_ptr<MemoryReporter> const& reporter);
}

struct MemoryInfo {
  std::uint64_t free = 0;   ///< bytes not allocated
  std::uint64_t total = 0;  ///< bytes the allocator can hold
};

/// What a framework asks of an allocator, on a FlexAllocator of its own.
///
/// Thread-safe: any member may be called from any thread at any time. A thread attached to a Python
/// interpreter must detach before it calls a member that may block.
template <flex::PressureStrategy Strategy = flex::HoldMutexDuringCallback>
class SpyreAllocator {
 public:
  using StrategyOptions = typename Strategy::Options;

  /// Throws as FlexAllocator does.
  explicit SpyreAllocator(std::shared_ptr<flex::DeviceMemory> device,
                          flex::AllocatorOptions options = {},
                          StrategyOptions strategy_options = {},
                          std::shared_ptr<MemoryReporter> reporter = nullptr)
      : reporter_(std::move(reporter)),
        allocator_(std::move(device), std::move(options), strategy_options) {}

  /// Zero bytes give an empty DataPtr. Otherwise as FlexAllocator::allocate.
  [[nodiscard]] DataPtr allocate(std::uint64_t nbytes,
                                 flex::AllocationDirective const& directive = {},
                                 flex::RequestOptions const& options = {}) {
    if (nbytes == 0) return {};
    return detail::makeDataPtr(allocator_.allocate(nbytes, directive, options), reporter_);
  }

  /// As FlexAllocator::tryAllocate; zero bytes give an empty DataPtr.
  [[nodiscard]] std::optional<DataPtr> tryAllocate(
      std::uint64_t nbytes, flex::AllocationDirective const& directive = {}) {
    if (nbytes == 0) return DataPtr{};
    return wrap(allocator_.tryAllocate(nbytes, directive));
  }

  /// As FlexAllocator::tryAllocateAtOnce: never blocks, so it may be called with the GIL held.
  [[nodiscard]] std::optional<DataPtr> tryAllocateAtOnce(
      std::uint64_t nbytes, flex::AllocationDirective const& directive = {}) {
    if (nbytes == 0) return DataPtr{};
    return wrap(allocator_.tryAllocateAtOnce(nbytes, directive));
  }

  /// Blocks for the mutex.
  [[nodiscard]] MemoryInfo getMemoryInfo() const {
    flex::Statistics const now = allocator_.statistics();
    return {now.capacity - static_cast<std::uint64_t>(now.allocated_bytes.current), now.capacity};
  }

  /// Gives wholly free regions back to the device. Returns their bytes. Blocks.
  std::uint64_t emptyCache() { return allocator_.trim(); }

  [[nodiscard]] flex::CallbackHandle registerMemoryPressureCallback(
      flex::MemoryPressureCallback callback, int priority = 0) {
    return allocator_.registerMemoryPressureCallback(std::move(callback), priority);
  }

  /// Counters: current, peak, allocated, freed. Blocks for the mutex.
  [[nodiscard]] flex::Statistics statistics() const { return allocator_.statistics(); }
  void resetPeakStatistics() { allocator_.resetPeakStatistics(); }
  void resetAccumulatedStatistics() { allocator_.resetAccumulatedStatistics(); }

  [[nodiscard]] flex::FlexAllocator<Strategy>& flexAllocator() noexcept { return allocator_; }
  [[nodiscard]] flex::FlexAllocator<Strategy> const& flexAllocator() const noexcept {
    return allocator_;
  }

 private:
  [[nodiscard]] std::optional<DataPtr> wrap(std::optional<flex::CompositeAddress> address) {
    if (!address) return std::nullopt;
    return detail::makeDataPtr(std::move(*address), reporter_);
  }

  std::shared_ptr<MemoryReporter> const reporter_;
  flex::FlexAllocator<Strategy> allocator_;
};

}  // namespace spyre
