// SPDX-License-Identifier: Apache-2.0
#pragma once
// Definitions of FlexAllocator. Include this to instantiate it with a strategy of your own.

#include <flex/detail/callout.hpp>
#include <flex/flex_allocator.hpp>

namespace flex {

template <PressureStrategy Strategy>
class FlexAllocator<Strategy>::StrategyEngine final : public detail::Engine {
 public:
  StrategyEngine(std::shared_ptr<DeviceMemory> device, AllocatorOptions options,
                 StrategyOptions const& strategy_options)
      : Engine(std::move(device), std::move(options)),
        strategy_(strategyContext(), strategy_options) {
    open();
  }

  /// The fast path: one lock, one search. No block: take the slow one.
  [[nodiscard]] detail::BlockHandle placeAtOnce(std::uint64_t nbytes) noexcept {
    if (!mutex().tryLock()) return {};
    return placeAndUnlock(nbytes);
  }

  /// The same, but waits for the mutex. Requires: not attached to an interpreter.
  [[nodiscard]] detail::BlockHandle placeNow(std::uint64_t nbytes) {
    if (!mutex().tryLock()) [[unlikely]] {
      if (detail::Callout::find(*this) != nullptr) return {};  // this thread may hold the mutex
      mutex().lock();
    }
    return placeAndUnlock(nbytes);
  }

  /// Apart, so that the fast path needs no room for what a request consists of.
  [[nodiscard, gnu::cold, gnu::noinline]] CompositeAddress allocateAnywhereSlowly(
      std::uint64_t nbytes) {
    return allocateSlowly(nbytes, {}, {});
  }

 private:
  bool admit() noexcept override { return strategy_.admit(); }
  void onServedAtOnce() noexcept override { strategy_.onServedAtOnce(); }
  Verdict resolve(Lock& lock, PressureRequest& request) override {
    return strategy_.resolve(lock, request);
  }
  void onFree() noexcept override { strategy_.onFree(); }
  void wakeAll() noexcept override { strategy_.wakeAll(); }
  void resetStrategyAfterFork(bool reclaiming) noexcept override {
    strategy_.resetAfterFork(reclaiming);
  }

  [[nodiscard]] detail::BlockHandle placeAndUnlock(std::uint64_t nbytes) noexcept
      FLEXALLOC_RELEASE(mutex()) {
    mutex().runDeferred();
    detail::BlockHandle block;
    if (nbytes - 1 < detail::MemoryPool::kLargestPlain && strategy_.admit()) {
      block = placePlain(nbytes);
      if (block) strategy_.onServedAtOnce();
    }
    mutex().unlock();
    return block;
  }

  Strategy strategy_;
};

namespace detail {

/// Whether the fast path may serve the request: one chunk of tensor memory, anywhere.
[[nodiscard]] inline bool isPlain(AllocationDirective const& directive) noexcept {
  return directive.policy == PlacementPolicy::bind && directive.domain_ids.empty() &&
         !directive.near && directive.memory_type == MemoryType::tensor;
}

}  // namespace detail

template <PressureStrategy Strategy>
FlexAllocator<Strategy>::FlexAllocator(std::shared_ptr<DeviceMemory> device,
                                       AllocatorOptions options, StrategyOptions strategy_options)
    : engine_(new StrategyEngine(std::move(device), std::move(options), strategy_options)) {}

template <PressureStrategy Strategy>
FlexAllocator<Strategy>::~FlexAllocator() {
  engine_->close();
}

template <PressureStrategy Strategy>
CompositeAddress FlexAllocator<Strategy>::allocate(std::uint64_t nbytes) {
  if (detail::BlockHandle const block = engine_->placeNow(nbytes)) [[likely]]
    return engine_->own(block);
  return engine_->allocateAnywhereSlowly(nbytes);
}

template <PressureStrategy Strategy>
CompositeAddress FlexAllocator<Strategy>::allocate(std::uint64_t nbytes,
                                                   AllocationDirective const& directive,
                                                   RequestOptions const& options) {
  if (detail::isPlain(directive)) {
    if (detail::BlockHandle const block = engine_->placeNow(nbytes)) return engine_->own(block);
  }
  return engine_->allocateSlowly(nbytes, directive, options);
}

template <PressureStrategy Strategy>
CompositeAddress FlexAllocator<Strategy>::allocateInDomain(std::uint64_t nbytes, DomainId domain,
                                                           MemoryType memory_type,
                                                           RequestOptions const& options) {
  return allocate(nbytes, {.domain_ids = {domain}, .memory_type = memory_type}, options);
}

template <PressureStrategy Strategy>
std::optional<CompositeAddress> FlexAllocator<Strategy>::tryAllocate(
    std::uint64_t nbytes, AllocationDirective const& directive) {
  if (detail::isPlain(directive)) {
    if (detail::BlockHandle const block = engine_->placeNow(nbytes)) return engine_->own(block);
  }
  if (CompositeAddress address = engine_->tryAllocate(engine_->makePlacement(nbytes, directive))) {
    return address;
  }
  return std::nullopt;
}

template <PressureStrategy Strategy>
std::optional<CompositeAddress> FlexAllocator<Strategy>::tryAllocateAtOnce(
    std::uint64_t nbytes, AllocationDirective const& directive) {
  if (detail::isPlain(directive) && nbytes != 0) {
    if (detail::BlockHandle const block = engine_->placeAtOnce(nbytes)) return engine_->own(block);
    return std::nullopt;
  }
  if (CompositeAddress address =
          engine_->tryAllocateAtOnce(engine_->makePlacement(nbytes, directive))) {
    return address;
  }
  return std::nullopt;
}

template <PressureStrategy Strategy>
DeallocateResult FlexAllocator<Strategy>::deallocate(CompositeAddress&& address) noexcept {
  if (!address) return DeallocateResult::empty;
  if (!engine_->owns(address)) {
    engine_->noteMisuse();
    return DeallocateResult::foreign;
  }
  engine_->giveBack(std::move(address));
  return DeallocateResult::freed;
}

template <PressureStrategy Strategy>
CallbackHandle FlexAllocator<Strategy>::registerMemoryPressureCallback(
    MemoryPressureCallback callback, int priority) {
  if (!callback) {
    engine_->chain()->removePriority(priority);
    return {};
  }
  return {engine_->chain(), engine_->chain()->add(std::move(callback), priority)};
}

template <PressureStrategy Strategy>
void FlexAllocator<Strategy>::registerMemoryPressureCallback(std::nullptr_t, int priority) {
  engine_->chain()->removePriority(priority);
}

template <PressureStrategy Strategy>
Statistics FlexAllocator<Strategy>::statistics() const {
  return engine_->statistics();
}

template <PressureStrategy Strategy>
std::optional<Statistics> FlexAllocator<Strategy>::tryStatistics() const {
  return engine_->tryStatistics();
}

template <PressureStrategy Strategy>
void FlexAllocator<Strategy>::resetPeakStatistics() {
  engine_->resetPeakStatistics();
}

template <PressureStrategy Strategy>
void FlexAllocator<Strategy>::resetAccumulatedStatistics() {
  engine_->resetAccumulatedStatistics();
}

template <PressureStrategy Strategy>
std::uint64_t FlexAllocator<Strategy>::trim() {
  return engine_->trim();
}

template <PressureStrategy Strategy>
void FlexAllocator<Strategy>::checkInvariants() const {
  engine_->checkInvariants();
}

template <PressureStrategy Strategy>
void FlexAllocator<Strategy>::stopWaiting(FailureReason reason) {
  engine_->stopWaiting(reason);
}

template <PressureStrategy Strategy>
std::shared_ptr<DeviceMemory> FlexAllocator<Strategy>::device() const {
  return engine_->device();
}

}  // namespace flex
