// SPDX-License-Identifier: Apache-2.0
#include <new>
#include <stdexcept>

#include <fmt/format.h>

#include <flex/detail/callout.hpp>
#include <flex/detail/engine.hpp>
#include <flex/detail/request.hpp>

namespace flex::detail {
namespace {

std::shared_ptr<DeviceMemory> requireDevice(std::shared_ptr<DeviceMemory> device) {
  if (device == nullptr) throw std::invalid_argument("device is null");
  device->topology().validate();
  return device;
}

AllocatorOptions requireValid(AllocatorOptions options) {
  options.validate();
  return options;
}

}  // namespace

Engine::Engine(std::shared_ptr<DeviceMemory> device, AllocatorOptions options)
    : device_(requireDevice(std::move(device))),
      options_(requireValid(std::move(options))),
      cell_(lease_.cell),
      pool_(options_, device_->topology(), device_->maxRegionBytes(), this) {
  acquireUpfront();
}

// Alone by now: closed, no block used, no request inside.
Engine::~Engine() {
#ifndef NDEBUG
  pool_.checkInvariants();
#endif
  releaseToDevice(pool_.takeAllRegions());
}

void Engine::acquireUpfront() FLEXALLOC_NO_THREAD_SAFETY_ANALYSIS {  // nobody else knows us yet
  try {
    for (GrowthPlan const& plan : pool_.upfrontPlans()) {
      std::optional<DeviceRegion> const region = device_->tryAllocate(plan.nbytes, plan.domain);
      if (!region) {
        throw DeviceError(fmt::format("the device refused a region of {} in domain {}",
                                      formatBytes(plan.nbytes), plan.domain));
      }
      addRegion(*region, plan.types);
    }
  } catch (...) {
    releaseToDevice(pool_.takeAllRegions());
    throw;
  }
}

void Engine::addRegion(DeviceRegion const& region, MemoryTypes types) {
  try {
    pool_.addRegion(region, types);
  } catch (...) {
    device_->release(region);
    throw;
  }
}

// ---------------------------------------------------------------------------- requests

CompositeAddress Engine::allocateSlowly(std::uint64_t nbytes, AllocationDirective const& directive,
                                        RequestOptions const& options) {
  Placement const placement = makePlacement(nbytes, directive);
  options.validate();
  Request request(*this, placement, options);
  return request.run();
}

CompositeAddress Engine::tryAllocate(Placement const& placement) {
  static constexpr RequestOptions kNoWait{.may_wait = false};
  Request request(*this, placement, kNoWait);
  return request.tryRun();
}

CompositeAddress Engine::tryAllocateAtOnce(Placement const& placement) {
  BlockList blocks;
  blocks.reserve(placement.chunks);
  Lock const lock(cell_.mutex, kTryToLock);
  if (!lock.owned()) return {};
  cell_.mutex.assertHeld();
  cell_.mutex.runDeferred();
  if (!admit() || !pool_.tryPlace(placement, blocks)) return {};
  onServedAtOnce();
  return own(std::move(blocks));
}

void Engine::giveBackLater(LockCell& cell, BlockHandle block) noexcept {
  cell.defer(block);
  if (cell.mutex.tryLock()) cell.mutex.unlock();  // which does the work; else whoever holds it will
}

void Engine::giveBackMany(BlockList const& blocks) noexcept {
  LockCell& cell = cell_;
  if (cell.mutex.tryLock()) {
    cell_.mutex.assertHeld();
    for (std::uint32_t i = 0; i < blocks.size(); ++i) pool_.release(blocks[i]);
    afterRelease();
    cell.mutex.unlock();
    return;
  }
  // The first one last: with it the allocation stops counting as alive, and the engine may go.
  for (std::uint32_t i = blocks.size(); i-- > 0;) cell.defer(blocks[i]);
  if (cell.mutex.tryLock()) cell.mutex.unlock();
}

void Engine::releaseDeferred(BlockHandle block) noexcept {
  ++pressure_.deferred_frees;
  pool_.release(block);
}

void Engine::afterLastRelease() noexcept {
  if (pool_.timesEmptied() != times_emptied_) {
    times_emptied_ = pool_.timesEmptied();
    wakeAll();  // a sleeping request may exchange the region for a larger one
  }
  if (closed_) retireIfUnused();
}

void Engine::retireIfUnused() noexcept {
  if (retired_ || pool_.liveAddresses() != 0 || requests_inside_ != 0) return;
  retired_ = true;
  cell_.moveOut(std::unique_ptr<sync::Retired>(this));
}

// ---------------------------------------------------------------------------- other calls

Statistics Engine::describe() noexcept {
  cell_.mutex.runDeferred();
  Statistics statistics;
  pool_.describe(statistics);
  statistics.misuses = misuses_;
  statistics.pressure = pressure_;
  return statistics;
}

Statistics Engine::statistics() {
  EntryLock const entry(*this, cell_.mutex);
  cell_.mutex.assertHeld();
  return describe();
}

std::optional<Statistics> Engine::tryStatistics() {
  Lock const lock(cell_.mutex, kTryToLock);
  if (!lock.owned()) return std::nullopt;
  cell_.mutex.assertHeld();
  return describe();
}

void Engine::resetPeakStatistics() {
  EntryLock const entry(*this, cell_.mutex);
  cell_.mutex.assertHeld();
  cell_.mutex.runDeferred();
  pool_.resetPeak();
}

void Engine::resetAccumulatedStatistics() {
  EntryLock const entry(*this, cell_.mutex);
  cell_.mutex.assertHeld();
  cell_.mutex.runDeferred();
  pool_.resetAccumulated();
  pressure_ = {};
}

Engine::DeviceCall::DeviceCall(Engine& engine) noexcept FLEXALLOC_NO_THREAD_SAFETY_ANALYSIS
    : engine_(engine) {
  ++engine_.device_calls_;
}

Engine::DeviceCall::~DeviceCall() FLEXALLOC_NO_THREAD_SAFETY_ANALYSIS {
  if (engine_.device_calls_ > 0) --engine_.device_calls_;  // a fork may have forgotten it
  for (GrowthWait& wait : engine_.growth_waits_) wait.parker.signal();
}

std::uint64_t Engine::trim() {
  EntryLock entry(*this, cell_.mutex);
  cell_.mutex.assertHeld();
  cell_.mutex.runDeferred();
  std::vector<std::unique_ptr<Region>> empty = pool_.takeEmptyRegions();
  if (empty.empty()) return 0;
  std::uint64_t nbytes = 0;
  for (auto const& region : empty) nbytes += region->where.nbytes;
  {
    DeviceCall const call(*this);
    Gap const gap(entry.lock());  // the device may block
    sync::assertNoMutexHeld("DeviceMemory::release");
    releaseToDevice(std::move(empty));
  }
  cell_.mutex.assertHeld();
  ++releases_;
  wakeAll();  // a sleeping request may be able to grow the pool now
  return nbytes;
}

void Engine::checkInvariants() {
  EntryLock const entry(*this, cell_.mutex);
  cell_.mutex.assertHeld();
  cell_.mutex.runDeferred();
  pool_.checkInvariants();
}

void Engine::noteMisuse() noexcept {
  EntryLock const entry(*this, cell_.mutex);
  cell_.mutex.assertHeld();
  ++misuses_;
}

void Engine::releaseToDevice(std::vector<std::unique_ptr<Region>> regions) noexcept {
  for (auto const& region : regions) {
    if (region != nullptr) device_->release(region->where);
  }
}

void Engine::stopWaiting(FailureReason reason) {
  EntryLock const entry(*this, cell_.mutex);
  cell_.mutex.assertHeld();
  if (!stop_reason_) stop_reason_ = reason;
  wakeEveryone();
}

void Engine::wakeEveryone() noexcept {
  wakeAll();
  for (GrowthWait& wait : growth_waits_) wait.parker.signal();
}

void Engine::close() {
  std::shared_ptr<CallbackChain> const chain = chain_;
  {
    EntryLock const entry(*this, cell_.mutex);
    cell_.mutex.assertHeld();
    cell_.mutex.runDeferred();
    closed_ = true;
    stop_reason_ = FailureReason::closed;
    wakeEveryone();
    retireIfUnused();
  }
  // The engine may be gone. Callbacks must not outlive what their owner captured in them.
  chain->removeAll();
}

void Engine::resetAfterFork() noexcept FLEXALLOC_NO_THREAD_SAFETY_ANALYSIS {  // the only thread
  new (&growth_waits_) GrowthWaits;  // their threads do not exist here
  device_calls_ = 0;
  requests_inside_ = Callout::count(*this);
  chain_->resetAfterFork();
  resetStrategyAfterFork(requests_inside_ != 0);
}

}  // namespace flex::detail
