// SPDX-License-Identifier: Apache-2.0
#include "detaching_allocator.hpp"

#include <optional>
#include <utility>

#include <boost/python.hpp>

#include "errors.hpp"
#include "gc_watcher.hpp"
#include "gil.hpp"

namespace spyre_alloc {
namespace {

unsigned long main_thread = 0;

/// Calls `f`, which may wait, on an allocator that stays alive until it is done.
template <class F>
auto detached(std::shared_ptr<spyre::AnyAllocator> const& allocator, F&& f) {
  auto const alive = allocator;  // the last reference of others may go while we are detached
  std::optional<Detached> scope;
  if (attached()) scope.emplace();
  return std::forward<F>(f)(*alive);
}

/// Lets Ctrl-C end a wait.
void checkSignals(void* /*context*/) {
  Attached const attached;
  if (attached.ok() && PyErr_CheckSignals() != 0) throw PythonAbort::capture();
}

}  // namespace

void DetachingAllocator::initialise() {
  namespace bp = boost::python;
  main_thread =
      bp::extract<unsigned long>(bp::import("threading").attr("main_thread")().attr("ident"));
}

std::string_view DetachingAllocator::strategy() const noexcept { return allocator_->strategy(); }

spyre::DataPtr DetachingAllocator::allocate(std::uint64_t nbytes,
                                            flex::AllocationDirective const& directive,
                                            flex::RequestOptions const& given) {
  // With the GIL kept: giving it up and taking it back costs milliseconds next to a busy thread.
  if (auto data = allocator_->tryAllocateAtOnce(nbytes, directive)) return std::move(*data);
  flex::RequestOptions options = given;
  if (GcWatcher::instance().collectingHere()) {
    // Others may be waiting for the very collection that this thread is inside of.
    options.may_wait = false;
    options.no_wait_reason = flex::FailureReason::inside_finalizer;
  }
  if (options.poll == nullptr && PyThread_get_thread_ident() == main_thread) {
    options.poll = &checkSignals;
  }
  return detached(allocator_,
                  [&](auto& allocator) { return allocator.allocate(nbytes, directive, options); });
}

std::optional<spyre::DataPtr> DetachingAllocator::tryAllocate(
    std::uint64_t nbytes, flex::AllocationDirective const& directive) {
  if (auto data = allocator_->tryAllocateAtOnce(nbytes, directive)) return data;
  return detached(allocator_,
                  [&](auto& allocator) { return allocator.tryAllocate(nbytes, directive); });
}

std::optional<spyre::DataPtr> DetachingAllocator::tryAllocateAtOnce(
    std::uint64_t nbytes, flex::AllocationDirective const& directive) {
  return allocator_->tryAllocateAtOnce(nbytes, directive);
}

flex::CallbackHandle DetachingAllocator::registerMemoryPressureCallback(
    flex::MemoryPressureCallback callback, int priority) {
  return allocator_->registerMemoryPressureCallback(std::move(callback), priority);
}

spyre::MemoryInfo DetachingAllocator::getMemoryInfo() const {
  return detached(allocator_, [](auto& allocator) { return allocator.getMemoryInfo(); });
}

std::uint64_t DetachingAllocator::emptyCache() {
  return detached(allocator_, [](auto& allocator) { return allocator.emptyCache(); });
}

flex::Statistics DetachingAllocator::statistics() const {
  if (auto statistics = allocator_->tryStatistics()) return *statistics;
  return detached(allocator_, [](auto& allocator) { return allocator.statistics(); });
}

std::optional<flex::Statistics> DetachingAllocator::tryStatistics() const {
  return allocator_->tryStatistics();
}

void DetachingAllocator::resetPeakStatistics() {
  detached(allocator_, [](auto& allocator) { allocator.resetPeakStatistics(); });
}

void DetachingAllocator::resetAccumulatedStatistics() {
  detached(allocator_, [](auto& allocator) { allocator.resetAccumulatedStatistics(); });
}

void DetachingAllocator::checkInvariants() const {
  detached(allocator_, [](auto& allocator) { allocator.checkInvariants(); });
}

void DetachingAllocator::stopWaiting(flex::FailureReason reason) {
  detached(allocator_, [&](auto& allocator) { allocator.stopWaiting(reason); });
}

std::shared_ptr<flex::DeviceMemory> DetachingAllocator::device() const {
  return allocator_->device();
}

}  // namespace spyre_alloc
