// SPDX-License-Identifier: Apache-2.0
#pragma once
// The allocator for callers that may hold the GIL.

#include <memory>

#include <spyre/any_allocator.hpp>

namespace spyre_alloc {

/// An AnyAllocator whose members may be called attached to Python, detached, and on threads that
/// Python has never seen. What can be served at once is, without touching the interpreter; whoever
/// has to wait is detached meanwhile, if attached, and Ctrl-C ends a wait of the main thread.
///
/// Thread-safe, as what it wraps. Throws spyre::ForeignError besides, for a Python exception.
class DetachingAllocator final : public spyre::AnyAllocator {
 public:
  explicit DetachingAllocator(std::shared_ptr<spyre::AnyAllocator> allocator) noexcept
      : allocator_(std::move(allocator)) {}

  [[nodiscard]] std::string_view strategy() const noexcept override;
  [[nodiscard]] spyre::DataPtr allocate(std::uint64_t nbytes,
                                        flex::AllocationDirective const& directive,
                                        flex::RequestOptions const& options) override;
  [[nodiscard]] std::optional<spyre::DataPtr> tryAllocate(
      std::uint64_t nbytes, flex::AllocationDirective const& directive) override;
  [[nodiscard]] std::optional<spyre::DataPtr> tryAllocateAtOnce(
      std::uint64_t nbytes, flex::AllocationDirective const& directive) override;
  [[nodiscard]] flex::CallbackHandle registerMemoryPressureCallback(
      flex::MemoryPressureCallback callback, int priority) override;
  [[nodiscard]] spyre::MemoryInfo getMemoryInfo() const override;
  std::uint64_t emptyCache() override;
  [[nodiscard]] flex::Statistics statistics() const override;
  [[nodiscard]] std::optional<flex::Statistics> tryStatistics() const override;
  void resetPeakStatistics() override;
  void resetAccumulatedStatistics() override;
  void checkInvariants() const override;
  void stopWaiting(flex::FailureReason reason) override;
  [[nodiscard]] std::shared_ptr<flex::DeviceMemory> device() const override;

  /// What it wraps: for those who know that they are detached.
  [[nodiscard]] std::shared_ptr<spyre::AnyAllocator> const& bare() const noexcept {
    return allocator_;
  }

  /// Remembers which thread is the main one. Call at import, attached.
  static void initialise();

 private:
  std::shared_ptr<spyre::AnyAllocator> const allocator_;
};

}  // namespace spyre_alloc
