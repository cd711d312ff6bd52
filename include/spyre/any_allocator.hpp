// SPDX-License-Identifier: Apache-2.0
#pragma once
// A SpyreAllocator whose strategy is chosen at run time, for bindings that offer both.

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include <flex/allocator_options.hpp>
#include <flex/callback_handle.hpp>
#include <flex/directive.hpp>
#include <flex/pressure.hpp>
#include <flex/statistics.hpp>
#include <spyre/data_ptr.hpp>
#include <spyre/spyre_allocator.hpp>

namespace spyre {

/// The members of SpyreAllocator, behind one virtual call each; their comments hold here too.
///
/// Thread-safe: any member may be called from any thread at any time. A thread attached to a Python
/// interpreter must detach before it calls a member that may block.
class AnyAllocator {
 public:
  AnyAllocator() = default;
  AnyAllocator(AnyAllocator const&) = delete;
  AnyAllocator& operator=(AnyAllocator const&) = delete;
  virtual ~AnyAllocator() = default;

  [[nodiscard]] virtual std::string_view strategy() const noexcept = 0;
  [[nodiscard]] virtual DataPtr allocate(std::uint64_t nbytes,
                                         flex::AllocationDirective const& directive = {},
                                         flex::RequestOptions const& options = {}) = 0;
  [[nodiscard]] virtual std::optional<DataPtr> tryAllocate(
      std::uint64_t nbytes, flex::AllocationDirective const& directive = {}) = 0;
  [[nodiscard]] virtual std::optional<DataPtr> tryAllocateAtOnce(
      std::uint64_t nbytes, flex::AllocationDirective const& directive = {}) = 0;
  [[nodiscard]] virtual flex::CallbackHandle registerMemoryPressureCallback(
      flex::MemoryPressureCallback callback, int priority = 0) = 0;
  [[nodiscard]] virtual MemoryInfo getMemoryInfo() const = 0;
  virtual std::uint64_t emptyCache() = 0;
  [[nodiscard]] virtual flex::Statistics statistics() const = 0;
  /// Never blocks: empty if another thread is inside the allocator at this moment.
  [[nodiscard]] virtual std::optional<flex::Statistics> tryStatistics() const = 0;
  virtual void resetPeakStatistics() = 0;
  virtual void resetAccumulatedStatistics() = 0;
  virtual void checkInvariants() const = 0;
  virtual void stopWaiting(flex::FailureReason reason) = 0;
  [[nodiscard]] virtual std::shared_ptr<flex::DeviceMemory> device() const = 0;
};

/// What makeAllocator() needs beside the strategy's name.
struct AnyAllocatorOptions {
  flex::AllocatorOptions allocator = {};
  flex::ReleaseAndCondvar::Options release_condvar = {};
  std::shared_ptr<MemoryReporter> reporter = nullptr;
};

/// The names that makeAllocator() knows, the default first.
[[nodiscard]] std::vector<std::string_view> strategyNames();

/// Throws std::invalid_argument (an unknown strategy: the text lists the known ones) and whatever
/// SpyreAllocator's constructor throws.
[[nodiscard]] std::shared_ptr<AnyAllocator> makeAllocator(
    std::string_view strategy, std::shared_ptr<flex::DeviceMemory> device,
    AnyAllocatorOptions options = {});

}  // namespace spyre
