// SPDX-License-Identifier: Apache-2.0
// The clauses of the contract that concern callbacks, growth, domains and the end of an allocator.
#include <stdexcept>

#include "scenario_parts.hpp"

namespace flex::interleave {
namespace {

// ---------------------------------------------------------------------------- callbacks

template <class S>
void reentry(World<S>& world) {
  world.build({.blocks = 2});
  auto& cache = world.template own<Cache>();
  cache.buffers.push_back(world.tryGet(1));
  cache.buffers.push_back(world.tryGet(1));
  world.callback([&world, &cache](Lock& lock) {
    Outcome const none = world.request(1);
    world.require(none.served() || none.failure == FailureReason::inside_callback, "re-entry",
                  "fails for another reason");
    lock.unlock();
    cache.clear();
    world.free(world.request(1).buffer);
    lock.lock();
  });
  for (int i = 0; i < 2; ++i) {
    world.thread([&world] { world.keep(world.get(1)); });
  }
}
FLEXALLOC_SCENARIO(reentry, "a callback allocates: served, or refused at once", exhaustive);

template <class S>
void throwing(World<S>& world) {
  world.build(
      {.blocks = 1, .max_wait = std::chrono::milliseconds(50), .faults = {.time_outs = false}});
  auto& cache = world.template own<Cache>();
  auto& thrown = world.template own<int>(0);
  auto& served = world.template own<int>(0);
  cache.buffers.push_back(world.tryGet(1));
  world.callback([&cache, &thrown](Lock& lock) {
    lock.unlock();
    if (thrown++ == 0) throw std::runtime_error("the first run fails");
    cache.clear();
    lock.lock();
  });
  for (int i = 0; i < 2; ++i) {
    world.thread([&world, &served] {
      Outcome outcome = world.request(1);
      if (outcome.served()) ++served;
      world.keep(std::move(outcome.buffer));
    });
  }
  world.whenAllSleep([&world, &thrown, &served] {
    world.require(served == 1 || thrown > 1, "lost wake-up", "nobody takes over from who threw");
  });
  world.atEnd([&world, &served] {
    world.require(served == 1, "false out-of-memory", "nobody takes over from who threw");
  });
}
FLEXALLOC_SCENARIO(throwing, "a callback throws; the next request reclaims again", exhaustive);

template <class S>
void throwingThrough(World<S>& world) {
  world.build({.blocks = 1, .callback_errors = CallbackErrors::propagate});
  auto& cache = world.template own<Cache>();
  auto& thrown = world.template own<int>(0);
  auto& served = world.template own<int>(0);
  cache.buffers.push_back(world.tryGet(1));
  world.callback([&cache, &thrown](Lock& lock) {
    lock.unlock();
    if (thrown++ == 0) throw std::runtime_error("the first run fails");
    cache.clear();
    lock.lock();
  });
  for (int i = 0; i < 2; ++i) {
    world.thread([&world, &served] {
      try {
        Outcome outcome = world.request(1);
        if (outcome.served()) ++served;
        world.keep(std::move(outcome.buffer));
      } catch (std::runtime_error const&) {
      }
    });
  }
  world.atEnd([&world, &served] {
    world.require(served == 1, "false out-of-memory", "nobody takes over from who threw");
  });
}
FLEXALLOC_SCENARIO(throwingThrough, "the exception itself reaches the caller", exhaustive);

template <class S>
void interruptReclaimer(World<S>& world) {
  world.build({.blocks = 1});
  auto& cache = world.template own<Cache>();
  cache.buffers.push_back(world.tryGet(1));
  world.callback([&cache](Lock& lock) {
    lock.unlock();
    sync::interruptionPoint();
    cache.clear();
    lock.lock();
  });
  world.thread([&world] { world.free(world.request(1).buffer); });
  world.thread([&world] {
    Outcome outcome = world.request(1);
    if (!World<S>::kHolds) world.require(outcome.served(), "false out-of-memory");
    world.free(std::move(outcome.buffer));
  });
  world.thread([] { Scheduler::instance().interrupt(0); });
}
FLEXALLOC_SCENARIO(interruptReclaimer, "the reclaiming request is interrupted; another takes over",
                   exhaustive);

template <class S>
void unregisterInFlight(World<S>& world) {
  world.build(
      {.blocks = 1, .max_wait = std::chrono::milliseconds(50), .faults = {.spurious = false}});
  world.keep(world.tryGet(1));
  auto& gone = world.template own<Flag>(false);
  auto& handle = world.template own<CallbackHandle>(
      world.allocator().registerMemoryPressureCallback([&world, &gone](Lock& lock) {
        world.require(!gone.load(), "unregistered callback runs", "at its begin");
        lock.unlock();
        world.require(!gone.load(), "unregistered callback runs", "while it works");
        lock.lock();
      }));
  for (int i = 0; i < 2; ++i) {
    world.thread([&world] { (void)world.request(1); });
  }
  world.thread([&handle, &gone] {
    handle.reset();
    gone.store(true);
  });
}
FLEXALLOC_SCENARIO(unregisterInFlight, "unregistering waits for runs on other threads", exhaustive);

template <class S>
void unregisterFromInside(World<S>& world) {
  world.build({.blocks = 2});
  auto& cache = world.template own<Cache>();
  cache.buffers.push_back(world.tryGet(2));
  auto& first = world.template own<CallbackHandle>();
  auto& second = world.template own<CallbackHandle>();
  first = world.allocator().registerMemoryPressureCallback(
      [&](Lock& lock) {
        lock.unlock();
        first.reset();
        second.reset();
        lock.lock();
      },
      0);
  second = world.allocator().registerMemoryPressureCallback(
      [&world](Lock&) { world.require(false, "unregistered callback runs"); }, 1);
  world.callback(clearing(cache), 2);
  for (int i = 0; i < 2; ++i) {
    world.thread([&world] { world.keep(world.get(1)); });
  }
}
FLEXALLOC_SCENARIO(unregisterFromInside, "a callback unregisters itself and the next one",
                   exhaustive);

template <class S>
void chainStopsWhenServed(World<S>& world) {
  world.build({.blocks = 2});
  auto& cache = world.template own<Cache>();
  cache.buffers.push_back(world.tryGet(2));
  world.callback(clearing(cache), 0);
  world.callback([&world](Lock&) { world.require(false, "too many callbacks", "all were served"); },
                 1);
  for (int i = 0; i < 2; ++i) {
    world.thread([&world] { world.keep(world.get(1)); });
  }
}
FLEXALLOC_SCENARIO(chainStopsWhenServed, "the pool is searched after each callback", exhaustive);

template <class S>
void registerDuringReclaim(World<S>& world) {
  world.build({.blocks = 1});
  auto& cache = world.template own<Cache>();
  cache.buffers.push_back(world.tryGet(1));
  auto& late = world.template own<CallbackHandle>();
  world.callback(clearing(cache));
  world.thread([&world] { world.keep(world.get(1)); });
  world.thread([&world, &late, &cache] {
    late = world.allocator().registerMemoryPressureCallback(clearing(cache), -1);
  });
}
FLEXALLOC_SCENARIO(registerDuringReclaim, "a callback is registered during a reclaim", exhaustive);

// ---------------------------------------------------------------------------- who must not wait

template <class S>
void mustNotWait(World<S>& world) {
  world.build({.blocks = 2});
  auto& cache = world.template own<Cache>();
  cache.buffers.push_back(world.tryGet(1));
  cache.buffers.push_back(world.tryGet(1));
  world.callback(clearing(cache));
  world.thread([&world] { world.keep(world.get(1)); });
  world.thread([&world] {
    Outcome outcome = world.request(1, {.may_wait = false});
    world.require(outcome.served() || outcome.failure == FailureReason::must_not_wait, "misuse");
    world.free(std::move(outcome.buffer));
  });
}
FLEXALLOC_SCENARIO(mustNotWait, "a request that must not wait passes the gate and never sleeps",
                   exhaustive);

// ---------------------------------------------------------------------------- growth

template <class S>
void growthRace(World<S>& world) {
  world.build({.blocks = 2, .regions = 2, .acquisition = Acquisition::on_demand});
  for (int i = 0; i < 2; ++i) {
    world.thread([&world] { world.keep(world.get(1)); });
  }
}
FLEXALLOC_SCENARIO(growthRace,
                   "two requests make the pool grow; the device is asked by one at a time",
                   exhaustive);

template <class S>
void growthAgainstPressure(World<S>& world) {
  world.build({.blocks = 2, .regions = 3, .acquisition = Acquisition::on_demand});
  auto& cache = world.template own<Cache>();
  cache.buffers.push_back(world.tryGet(1));
  cache.buffers.push_back(world.tryGet(1));
  world.callback(clearing(cache));
  world.thread([&world] { world.keep(world.get(1)); });
  world.thread([&world] { world.free(world.request(1, {.may_wait = false}).buffer); });
}
FLEXALLOC_SCENARIO(growthAgainstPressure, "the device refuses, so the callbacks run", exhaustive);

/// A full pool that may not grow but does not know: one block comes back while the device is asked.
template <class S>
void freeAgainstRefusal(World<S>& world, RequestOptions const& options) {
  world.build(
      {.blocks = 2, .regions = 2, .acquisition = Acquisition::on_demand, .fallback_blocks = {2}});
  world.keep(world.tryGet(1));
  auto& held = world.template own<Buffer>(world.tryGet(1));
  world.thread([&world, options] { world.keep(world.request(1, options).buffer); });
  world.thread([&held] { held.reset(); });
}

template <class S>
void freedWhileTheDeviceRefuses(World<S>& world) {
  freeAgainstRefusal(world, {});
}
FLEXALLOC_SCENARIO(freedWhileTheDeviceRefuses,
                   "memory comes back while the device is asked in vain", exhaustive);

template <class S>
void mustNotWaitWhileTheDeviceRefuses(World<S>& world) {
  freeAgainstRefusal(world, {.may_wait = false});
}
FLEXALLOC_SCENARIO(mustNotWaitWhileTheDeviceRefuses, "the same for a request that must not wait",
                   exhaustive);

template <class S>
void freedBehindTheGate(World<S>& world) {
  world.build({.blocks = 2,
               .regions = 2,
               .acquisition = Acquisition::on_demand,
               .fallback_blocks = {2},
               .max_wait = std::chrono::milliseconds(50),
               .faults = {.spurious = false}});
  world.keep(world.tryGet(1));
  auto& held = world.template own<Buffer>(world.tryGet(1));
  world.callback([](Lock& lock) {
    lock.unlock();
    lock.lock();
  });
  for (int i = 0; i < 2; ++i) {
    world.thread([&world] { world.free(world.request(1).buffer); });
  }
  world.thread([&held] { held.reset(); });
}
FLEXALLOC_SCENARIO(freedBehindTheGate, "the same for the second of two requests", exhaustive);

template <class S>
void trimming(World<S>& world) {
  world.build({.blocks = 2, .regions = 2, .acquisition = Acquisition::on_demand});
  world.free(world.tryGet(1));
  world.thread([&world] { (void)world.allocator().trim(); });
  for (int i = 0; i < 2; ++i) {
    world.thread([&world] { world.keep(world.get(1)); });
  }
}
FLEXALLOC_SCENARIO(trimming, "regions are given back while others want them", exhaustive);

template <class S>
void growthStandsInTheWay(World<S>& world) {
  world.build({.blocks = 2, .regions = 2, .acquisition = Acquisition::on_demand});
  auto& held = world.template own<Buffer>(world.tryGet(1));  // in a region of one block
  world.thread([&world] {
    Outcome outcome = world.request(2);
    if (!World<S>::kHolds) world.require(outcome.served(), "false out-of-memory");
    world.free(std::move(outcome.buffer));
  });
  world.thread([&held] { held.reset(); });
}
FLEXALLOC_SCENARIO(growthStandsInTheWay,
                   "an empty region is too small and is exchanged for a larger one", exhaustive);

// ---------------------------------------------------------------------------- domains

template <class S>
void twoDomains(World<S>& world) {
  world.build({.blocks = 1, .domains = 2});
  auto& caches = world.template own<std::array<Cache, 2>>();
  for (DomainId domain = 0; domain < 2; ++domain) {
    caches[domain].buffers.emplace_back(world, world.allocator().allocateInDomain(kBlock, domain));
  }
  world.callback([&caches](Lock& lock, PressureEvent const& event) {
    lock.unlock();
    if (event.domain) caches[*event.domain].clear();
    lock.lock();
    return ReclaimResult{};
  });
  for (DomainId domain = 0; domain < 2; ++domain) {
    world.thread([&world, domain] {
      AllocationDirective const directive{.domain_ids = {domain}};
      Outcome outcome = world.request(1, {.max_wait = std::chrono::milliseconds(50)}, directive);
      world.keep(std::move(outcome.buffer));
    });
  }
}
FLEXALLOC_SCENARIO(twoDomains, "pressure in two domains at a time", exhaustive);

template <class S>
void twoDomainsFreed(World<S>& world) {
  world.build({.blocks = 1, .domains = 2});
  for (DomainId domain = 0; domain < 2; ++domain) {
    auto& held =
        world.template own<Buffer>(world, world.allocator().allocateInDomain(kBlock, domain));
    if (domain == 0) world.thread([&held] { held.reset(); });
  }
  auto& directive = world.template own<AllocationDirective>();
  directive.domain_ids = {0};
  auto& other = world.template own<AllocationDirective>();
  other.domain_ids = {1};
  world.thread([&world, &directive] {
    Outcome outcome = world.request(1, {}, directive);
    if (!World<S>::kHolds) world.require(outcome.served(), "false out-of-memory");
    world.keep(std::move(outcome.buffer));
  });
  world.thread([&world, &other] {
    Outcome const outcome = world.request(1, {.max_wait = std::chrono::milliseconds(50)}, other);
    world.require(!outcome.served(), "double hand-off");
  });
}
FLEXALLOC_SCENARIO(twoDomainsFreed, "who waits for one domain does not block who waits for another",
                   exhaustive);

template <class S>
void interleaved(World<S>& world) {
  world.build({.blocks = 1, .domains = 2});
  for (DomainId domain = 0; domain < 2; ++domain) {
    auto& held =
        world.template own<Buffer>(world, world.allocator().allocateInDomain(kBlock, domain));
    world.thread([&held] { held.reset(); });
  }
  auto& directive = world.template own<AllocationDirective>();
  directive.policy = PlacementPolicy::interleave;
  world.mayLeaveAsleep();  // one free domain is not enough
  world.thread([&world, &directive] {
    Outcome outcome = world.request(2, {}, directive);
    if (!World<S>::kHolds) world.require(outcome.served(), "false out-of-memory");
    world.keep(std::move(outcome.buffer));
  });
}
FLEXALLOC_SCENARIO(interleaved, "chunks in two domains come together or not at all", exhaustive);

// ---------------------------------------------------------------------------- order

template <class S>
void firstComeFirstServed(World<S>& world) {
  world.build({.blocks = 1, .faults = {.spurious = false}});
  auto& held = world.template own<Buffer>(world.tryGet(1));
  world.thread([&world] {
    Outcome outcome = world.request(1);
    if (!World<S>::kHolds) world.require(outcome.served(), "false out-of-memory");
    world.keep(std::move(outcome.buffer));
  });
  world.thread([&world] {
    bool const second = world.waits(0);
    Outcome outcome = world.request(1, {.max_wait = std::chrono::milliseconds(50)});
    if (!World<S>::kHolds && second) {
      world.require(!outcome.served(), "overtaking",
                    "the second one in the queue was served first");
    }
    world.free(std::move(outcome.buffer));
  });
  world.thread([&held] { held.reset(); });
}
FLEXALLOC_SCENARIO(firstComeFirstServed, "freed memory is handed over in the order of arrival",
                   exhaustive);

template <class S>
void boundedOvertaking(World<S>& world) {
  world.build({.blocks = 2, .overtake_limit = 1});
  world.mayLeaveAsleep();
  auto& held = world.template own<Buffer>(world.tryGet(1));
  world.thread([&world] {
    Outcome outcome = world.request(2);
    if (!World<S>::kHolds) world.require(outcome.served(), "false out-of-memory");
    world.free(std::move(outcome.buffer));
  });
  world.thread([&world, &held] {
    for (int i = 0; i < 3; ++i) world.free(world.tryGet(1));
    held.reset();
  });
  world.atEnd([&world] {
    world.require(world.statistics().pressure.overtakes <= 1, "overtaking", "past its bound");
  });
}
FLEXALLOC_SCENARIO(boundedOvertaking, "the first one is overtaken only so often", exhaustive);

// ---------------------------------------------------------------------------- the end

template <class S>
void destroyDuringReclaim(World<S>& world) {
  world.build({.blocks = 1});
  auto& held = world.template own<Buffer>(world.tryGet(1));
  auto& inside = world.template own<Flag>(false);
  auto& gone = world.template own<Flag>(false);
  world.callback([&world, &inside, &gone](Lock& lock) {
    lock.unlock();
    inside.store(true);
    world.require(!gone.load(), "unregistered callback runs", "after the allocator has gone");
    lock.lock();
  });
  // A request is inside when the allocator goes: it fails, or it was served before.
  world.thread([&world] { (void)world.request(1); });
  world.thread([&world, &inside, &gone] {
    if (!inside.load()) return;
    world.destroyAllocator();
    gone.store(true);
  });
  world.thread([&held] { held.reset(); });
}
FLEXALLOC_SCENARIO(destroyDuringReclaim,
                   "the allocator goes while a request reclaims and a block is freed", exhaustive);

template <class S>
void lookingOn(World<S>& world) {
  world.build({.blocks = 2});
  auto& first = world.template own<Buffer>(world.tryGet(1));
  auto& second = world.template own<Buffer>(world.tryGet(1));
  world.thread([&first] { first.reset(); });
  world.thread([&second] { second.reset(); });
  world.thread([&world] {
    world.allocator().checkInvariants();
    Statistics const now = world.statistics();
    world.require(now.allocated_bytes.current + static_cast<std::int64_t>(now.free) ==
                      static_cast<std::int64_t>(now.total),
                  "invariant violation", "the counters do not add up");
    (void)world.allocator().tryStatistics();
  });
}
FLEXALLOC_SCENARIO(lookingOn, "one consistent picture while others free", exhaustive);

template <class S>
void blocksOfAnother(World<S>& world) {
  world.build({.blocks = 1});
  // The callback drops memory of another allocator, which is under pressure itself.
  auto& device = world.template own<std::shared_ptr<CountingDevice>>(
      std::make_shared<CountingDevice>(singleDomain(kBlock)));
  auto& other = world.template own<FlexAllocator<S>>(
      device, AllocatorOptions{.regions = 1, .max_wait = std::chrono::hours(1)});
  auto& foreign = world.template own<CompositeAddress>(other.allocate(kBlock));
  auto& cache = world.template own<Cache>();
  cache.buffers.push_back(world.tryGet(1));
  world.callback([&foreign, &cache](Lock& lock) {
    foreign.reset();
    lock.unlock();
    cache.clear();
    lock.lock();
  });
  world.thread([&world] { world.keep(world.get(1)); });
  world.thread([&other] {
    auto const address = other.tryAllocate(kBlock);
    (void)address;
  });
}
FLEXALLOC_SCENARIO(blocksOfAnother, "a callback frees memory of a second allocator", exhaustive);

template <class S>
void crowd(World<S>& world) {
  world.build({.blocks = 4});
  auto& cache = world.template own<Cache>();
  for (int i = 0; i < 4; ++i) cache.buffers.push_back(world.tryGet(1));
  world.callback(clearing(cache));
  for (int i = 0; i < 4; ++i) {
    world.thread([&world, i] {  // at most one block each, so the live data always fits
      if (i == 3) {
        world.free(world.tryGet(1));
        return;
      }
      world.free(world.get(1));
      world.free(world.get(1));
    });
  }
}
FLEXALLOC_SCENARIO(crowd, "four threads allocate and free under pressure", large);

template <class S>
void mixture(World<S>& world) {
  world.build({.blocks = 4, .overtake_limit = 2});
  world.mayLeaveAsleep();
  auto& cache = world.template own<Cache>();
  cache.buffers.push_back(world.tryGet(2));
  auto& held = world.template own<Buffer>(world.tryGet(2));
  world.callback(clearing(cache));
  world.thread([&world] {
    world.free(world.request(3, {.max_wait = std::chrono::milliseconds(50)}).buffer);
  });
  world.thread([&world] { world.free(world.request(1).buffer); });
  world.thread([&world, &held] {
    held.reset();
    world.free(world.request(1, {.may_wait = false}).buffer);
  });
  world.thread([&world] {
    world.free(world.request(2, {.max_wait = std::chrono::milliseconds(50)}).buffer);
    Scheduler::instance().interrupt(1);
  });
}
FLEXALLOC_SCENARIO(mixture, "sizes, bounds, interruption and frees together", large);

}  // namespace
}  // namespace flex::interleave
