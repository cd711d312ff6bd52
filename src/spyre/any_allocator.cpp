// SPDX-License-Identifier: Apache-2.0
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include <spyre/any_allocator.hpp>

namespace spyre {
namespace {

template <flex::PressureStrategy Strategy>
class AllocatorWith final : public AnyAllocator {
 public:
  AllocatorWith(std::shared_ptr<flex::DeviceMemory> device, flex::AllocatorOptions options,
                typename Strategy::Options strategy_options,
                std::shared_ptr<MemoryReporter> reporter)
      : allocator_(std::move(device), std::move(options), strategy_options, std::move(reporter)) {}

  [[nodiscard]] std::string_view strategy() const noexcept override { return Strategy::kName; }
  [[nodiscard]] DataPtr allocate(std::uint64_t nbytes, flex::AllocationDirective const& directive,
                                 flex::RequestOptions const& options) override {
    return allocator_.allocate(nbytes, directive, options);
  }
  [[nodiscard]] std::optional<DataPtr> tryAllocate(
      std::uint64_t nbytes, flex::AllocationDirective const& directive) override {
    return allocator_.tryAllocate(nbytes, directive);
  }
  [[nodiscard]] std::optional<DataPtr> tryAllocateAtOnce(
      std::uint64_t nbytes, flex::AllocationDirective const& directive) override {
    return allocator_.tryAllocateAtOnce(nbytes, directive);
  }
  [[nodiscard]] flex::CallbackHandle registerMemoryPressureCallback(
      flex::MemoryPressureCallback callback, int priority) override {
    return allocator_.registerMemoryPressureCallback(std::move(callback), priority);
  }
  [[nodiscard]] MemoryInfo getMemoryInfo() const override { return allocator_.getMemoryInfo(); }
  std::uint64_t emptyCache() override { return allocator_.emptyCache(); }
  [[nodiscard]] flex::Statistics statistics() const override { return allocator_.statistics(); }
  [[nodiscard]] std::optional<flex::Statistics> tryStatistics() const override {
    return allocator_.flexAllocator().tryStatistics();
  }
  void resetPeakStatistics() override { allocator_.resetPeakStatistics(); }
  void resetAccumulatedStatistics() override { allocator_.resetAccumulatedStatistics(); }
  void checkInvariants() const override { allocator_.flexAllocator().checkInvariants(); }
  void stopWaiting(flex::FailureReason reason) override {
    allocator_.flexAllocator().stopWaiting(reason);
  }
  [[nodiscard]] std::shared_ptr<flex::DeviceMemory> device() const override {
    return allocator_.flexAllocator().device();
  }

 private:
  SpyreAllocator<Strategy> allocator_;
};

}  // namespace

std::vector<std::string_view> strategyNames() {
  return {flex::HoldMutexDuringCallback::kName, flex::ReleaseAndCondvar::kName};
}

std::shared_ptr<AnyAllocator> makeAllocator(std::string_view strategy,
                                            std::shared_ptr<flex::DeviceMemory> device,
                                            AnyAllocatorOptions options) {
  if (strategy == flex::HoldMutexDuringCallback::kName) {
    return std::make_shared<AllocatorWith<flex::HoldMutexDuringCallback>>(
        std::move(device), std::move(options.allocator), flex::HoldMutexDuringCallback::Options{},
        std::move(options.reporter));
  }
  if (strategy == flex::ReleaseAndCondvar::kName) {
    return std::make_shared<AllocatorWith<flex::ReleaseAndCondvar>>(
        std::move(device), std::move(options.allocator), options.release_condvar,
        std::move(options.reporter));
  }
  throw std::invalid_argument(fmt::format("strategy is '{}'; allowed are '{}'", strategy,
                                          fmt::join(strategyNames(), "', '")));
}

}  // namespace spyre
