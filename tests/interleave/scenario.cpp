// SPDX-License-Identifier: Apache-2.0
#include "scenario.hpp"

#include <algorithm>

#include <boost/thread/exceptions.hpp>
#include <fmt/format.h>

#include <flex/detail/engine.hpp>
#include <flex/flex_allocator.ipp>

#include "host_memory.hpp"

namespace flex {

template class FlexAllocator<interleave::MutexAlone>;

}  // namespace flex

namespace flex::interleave {
namespace {

// The checks look at what the allocator keeps to itself: naming a private member as a template
// argument of an explicit instantiation is allowed.
template <class Tag, auto Member>
struct Reveal {
  friend auto reveal(Tag /*tag*/) { return Member; }
};

struct EngineOfHold {};
auto reveal(EngineOfHold);
template struct Reveal<EngineOfHold, &FlexAllocator<HoldMutexDuringCallback>::engine_>;
struct EngineOfRelease {};
auto reveal(EngineOfRelease);
template struct Reveal<EngineOfRelease, &FlexAllocator<ReleaseAndCondvar>::engine_>;
struct EngineOfMutexAlone {};
auto reveal(EngineOfMutexAlone);
template struct Reveal<EngineOfMutexAlone, &FlexAllocator<MutexAlone>::engine_>;
struct CellOfEngine {};
auto reveal(CellOfEngine);
template struct Reveal<CellOfEngine, &detail::Engine::lease_>;
struct PoolOfEngine {};
auto reveal(PoolOfEngine);
template struct Reveal<PoolOfEngine, &detail::Engine::pool_>;

detail::Engine& engineOf(FlexAllocator<HoldMutexDuringCallback>& allocator) {
  return *reinterpret_cast<detail::Engine*>(allocator.*reveal(EngineOfHold{}));
}
detail::Engine& engineOf(FlexAllocator<ReleaseAndCondvar>& allocator) {
  return *reinterpret_cast<detail::Engine*>(allocator.*reveal(EngineOfRelease{}));
}
detail::Engine& engineOf(FlexAllocator<MutexAlone>& allocator) {
  return *reinterpret_cast<detail::Engine*>(allocator.*reveal(EngineOfMutexAlone{}));
}

}  // namespace

std::vector<Scenario>& allScenarios() {
  static std::vector<Scenario> scenarios;
  return scenarios;
}

// Static objects, and a lock cell for each allocator that a scenario may have at a time.
void warmUp() {
  std::array<World<HoldMutexDuringCallback>, 4> worlds;
  for (auto& world : worlds) world.build({});
}

// ---------------------------------------------------------------------------- device

std::optional<DeviceRegion> CountingDevice::tryAllocate(std::uint64_t nbytes, DomainId domain) {
  if (std::exchange(asked_, true)) {
    Scheduler::instance().fail("misuse", "two threads ask the device at a time");
  }
  auto region = offsets_.tryAllocate(nbytes, domain);
  asked_ = false;
  if (region) in_use_ += region->nbytes;
  return region;
}

void CountingDevice::release(DeviceRegion const& region) noexcept {
  in_use_ -= region.nbytes;
  offsets_.release(region);
}

// ---------------------------------------------------------------------------- buffers

Buffer::Buffer(AnyWorld& world, CompositeAddress&& address)
    : world_(&world), address_(std::move(address)) {
  world_->appears(address_);
}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  if (this != &other) {
    reset();
    world_ = other.world_;
    address_ = std::move(other.address_);
  }
  return *this;
}

void Buffer::reset() noexcept {
  if (!address_) return;
  world_->disappears(address_);
  address_.reset();
}

void AnyWorld::appears(CompositeAddress const& address) {
  HostMemory::Untracked const untracked;
  for (Chunk const& chunk : address.chunks()) {
    auto const after = alive_.upper_bound(chunk.address);
    bool clash = after != alive_.end() && after->first < chunk.address + chunk.nbytes;
    if (after != alive_.begin()) {
      auto const before = std::prev(after);
      clash = clash || before->first + before->second > chunk.address;
    }
    require(!clash, "double hand-off", "two buffers that are alive overlap");
    alive_[chunk.address] = chunk.nbytes;
  }
}

void AnyWorld::disappears(CompositeAddress const& address) noexcept {
  for (Chunk const& chunk : address.chunks()) alive_.erase(chunk.address);
}

void AnyWorld::require(bool holds, std::string_view kind, std::string_view text) {
  if (holds) return;
  Scheduler::instance().fail(std::string(kind), std::string(text));
}

// ---------------------------------------------------------------------------- worlds

template <class Strategy>
void World<Strategy>::build(WorldOptions const& options) {
  options_ = options;
  Scheduler::instance().allow(options.faults);
  DeviceTopology topology;
  topology.domain_capacity.assign(options.domains, options.blocks * kBlock);
  device_ = std::make_shared<CountingDevice>(std::move(topology));
  AllocatorOptions allocator_options{.acquisition = options.acquisition,
                                     .regions = options.regions,
                                     .max_wait = options.max_wait,
                                     .callback_errors = options.callback_errors};
  allocator_options.fallback_sizes.clear();
  for (std::uint64_t const blocks : options.fallback_blocks) {
    allocator_options.fallback_sizes.push_back(blocks * kBlock);
  }
  if constexpr (std::same_as<Strategy, ReleaseAndCondvar>) {
    allocator_ = std::make_unique<Allocator>(
        device_, allocator_options,
        ReleaseAndCondvar::Options{.overtake_limit = options.overtake_limit,
                                   .look_again = options.look_again});
  } else {
    allocator_ = std::make_unique<Allocator>(device_, allocator_options);
  }
}

template <class Strategy>
void World<Strategy>::callback(MemoryPressureCallback callback, int priority) {
  handles_.push_back(allocator_->registerMemoryPressureCallback(
      [this, callback = std::move(callback)](Lock& lock, PressureEvent const& event) {
        auto& pending = pending_[static_cast<std::size_t>(Scheduler::instance().self())];
        /// However the callback ends.
        struct Inside {
          explicit Inside(std::optional<Pending>& request) : pending(request) {
            if (pending) pending->inside_callback = true;
          }
          ~Inside() {
            if (pending) pending->inside_callback = false;
          }
          std::optional<Pending>& pending;
        } const inside(pending);
        return callback(lock, event);
      },
      priority));
}

template <class Strategy>
void World<Strategy>::checkFailure(OutOfMemoryError const& error) {
  switch (error.reason()) {
    case FailureReason::exhausted:
    case FailureReason::fragmented:
    case FailureReason::callback_failed:
    case FailureReason::inside_callback:
    case FailureReason::inside_finalizer:
    case FailureReason::must_not_wait:
      require(error.largestFree() < roundUpToGranule(error.requested()), "false out-of-memory",
              error.what());
      return;
    case FailureReason::larger_than_any_region:
    case FailureReason::timed_out:
    case FailureReason::interpreter_finalizing:
    case FailureReason::closed:
      return;
  }
}

template <class Strategy>
template <class Call>
Outcome World<Strategy>::watch(std::uint64_t blocks, AllocationDirective const& directive,
                               Call call) {
  Outcome outcome;
  auto& pending = pending_[static_cast<std::size_t>(Scheduler::instance().self())];
  auto const before = std::exchange(pending, Pending{.blocks = blocks, .directive = &directive});
  try {
    outcome.buffer = Buffer(*this, call());
  } catch (OutOfMemoryError const& error) {
    checkFailure(error);
    outcome.failure = error.reason();
    outcome.reclaims = error.reclaims();
    outcome.has_cause = error.cause() != nullptr;
    Scheduler::instance().remark(error.what());
  } catch (boost::thread_interrupted const&) {
    outcome.interrupted = true;
  } catch (...) {
    pending = before;
    throw;
  }
  pending = before;
  return outcome;
}

template <class Strategy>
Outcome World<Strategy>::request(std::uint64_t blocks, RequestOptions const& options,
                                 AllocationDirective const& directive) {
  return watch(blocks, directive,
               [&] { return allocator_->allocate(blocks * kBlock, directive, options); });
}

template <class Strategy>
Buffer World<Strategy>::get(std::uint64_t blocks, RequestOptions const& options) {
  Outcome outcome = request(blocks, options);
  require(outcome.served(), "false out-of-memory",
          outcome.failure ? fmt::format("a request that must succeed fails: {}",
                                        static_cast<int>(*outcome.failure))
                          : "interrupted");
  return std::move(outcome.buffer);
}

template <class Strategy>
Buffer World<Strategy>::tryGet(std::uint64_t blocks) {
  auto address = allocator_->tryAllocate(blocks * kBlock);
  return address ? Buffer(*this, std::move(*address)) : Buffer{};
}

template <class Strategy>
Buffer World<Strategy>::tryAtOnce(std::uint64_t blocks) {
  auto address = allocator_->tryAllocateAtOnce(blocks * kBlock);
  return address ? Buffer(*this, std::move(*address)) : Buffer{};
}

template <class Strategy>
void World<Strategy>::checkSleepers() {
  require(!always_awake_, "lost wake-up", "all sleep, and somebody should not");
  if (allocator_ != nullptr) {
    detail::Engine& engine = engineOf(*allocator_);
    require(!(engine.*reveal(CellOfEngine{})).cell.pending(), "stranded free",
            "all sleep, and a deferred free was left to nobody");
    if (!allocator_->tryStatistics()) {
      require(false, "asleep with the mutex", "all sleep, and the allocator's mutex is held");
      return;
    }
    allocator_->checkInvariants();
    bool const in_callback = std::ranges::any_of(
        pending_,
        [](std::optional<Pending> const& pending) { return pending && pending->inside_callback; });
    std::uint64_t known = 0;
    for (auto const& [address, nbytes] : alive_) known += nbytes;
    Statistics now;
    (engine.*reveal(PoolOfEngine{})).describe(now);
    require(in_callback || now.allocated_bytes.current == static_cast<std::int64_t>(known),
            "lost wake-up", "all sleep, also a request that has been handed its memory");
    // What an event brings is its owner's first; behind the gate nobody has a claim before it ends.
    bool const gate_shut = kHolds && in_callback;
    for (std::size_t i = 0; i < kMaxThreads && !may_leave_asleep_ && !gate_shut; ++i) {
      if (!pending_[i] || pending_[i]->inside_callback) continue;
      auto const placement =
          engine.makePlacement(pending_[i]->blocks * kBlock, *pending_[i]->directive);
      auto const space = (engine.*reveal(PoolOfEngine{})).freeSpace(placement);
      require(space.largest < pending_[i]->blocks * kBlock, "lost wake-up",
              fmt::format("all sleep, also {}, whose {} blocks are free",
                          static_cast<char>('A' + i), pending_[i]->blocks));
    }
  }
  for (auto const& check : sleep_checks_) check();
}

template <class Strategy>
void World<Strategy>::finish() {
  for (auto const& check : end_checks_) check();
  end_checks_.clear();
  kept_.clear();
  handles_.clear();
  owned_.clear();
  require(alive_.empty(), "misuse", "the scenario keeps a buffer");
  if (allocator_ != nullptr) {
    detail::Engine& engine = engineOf(*allocator_);
    require(!(engine.*reveal(CellOfEngine{})).cell.pending(), "stranded free",
            "all have ended, and a deferred free was left to nobody");
    try {
      allocator_->checkInvariants();
    } catch (InvariantViolation const& violation) {
      require(false, "invariant violation", violation.what());
    }
    Statistics const now = allocator_->statistics();
    require(now.allocations.current == 0 && now.allocated_bytes.current == 0, "leak",
            fmt::format("{} blocks stay allocated", now.allocations.current));
    require(now.free == now.total, "leak", "not all is free at the end");
    require(now.misuses == 0, "misuse", "a free was refused");
  }
  allocator_.reset();
  require(device_ == nullptr || device_->inUse() == 0, "leak", "the device misses a region");
}

template class World<HoldMutexDuringCallback>;
template class World<ReleaseAndCondvar>;
template class World<MutexAlone>;

}  // namespace flex::interleave
