// SPDX-License-Identifier: Apache-2.0
// Two threads and the allocator without an interpreter: what design clauses promise one by one.
#include "scenario_parts.hpp"

namespace flex::interleave {
namespace {

// ---------------------------------------------------------------------------- bursts

template <class S>
void burst2(World<S>& world) {
  world.someoneIsAlwaysAwake();
  world.build({.blocks = 2});
  auto& cache = world.template own<Cache>();
  cache.buffers.push_back(world.tryGet(1));
  cache.buffers.push_back(world.tryGet(1));
  world.callback(clearing(cache));
  for (int i = 0; i < 2; ++i) {
    world.thread([&world] { world.keep(world.get(1)); });
  }
  world.atEnd(
      [&world] { world.require(world.statistics().pressure.reclaims <= 2, "too many reclaims"); });
}
FLEXALLOC_SCENARIO(burst2, "two requests meet exhaustion together", exhaustive);

template <class S>
void burst3(World<S>& world) {
  world.someoneIsAlwaysAwake();
  world.build({.blocks = 3});
  auto& cache = world.template own<Cache>();
  for (int i = 0; i < 3; ++i) cache.buffers.push_back(world.tryGet(1));
  world.callback(clearing(cache));
  for (int i = 0; i < 3; ++i) {
    world.thread([&world] { world.keep(world.get(1)); });
  }
  world.atEnd(
      [&world] { world.require(world.statistics().pressure.reclaims <= 2, "too many reclaims"); });
}
FLEXALLOC_SCENARIO(burst3, "three requests meet exhaustion together", large);

template <class S>
void burstInVain(World<S>& world) {
  world.build({.blocks = 1, .max_wait = std::chrono::milliseconds(50)});
  auto& all_wait = world.template own<bool>(false);
  world.callback([&world, &all_wait](Lock& lock, PressureEvent const& event) {
    lock.unlock();
    lock.lock();
    if (event.generation == 1) {
      int waiting = 0;
      for (int i = 0; i < 3; ++i) waiting += world.waits(i) ? 1 : 0;
      all_wait = waiting == 2;
    }
    return ReclaimResult{};
  });
  world.keep(world.tryGet(1));
  for (int i = 0; i < 3; ++i) {
    world.thread([&world] {
      Outcome const outcome = world.request(1);
      world.require(!outcome.served(), "double hand-off", "served from nothing");
    });
  }
  world.atEnd([&world, &all_wait] {
    // All were there before the first reclaim had ended, so the second one covers them all.
    world.require(!all_wait || world.statistics().pressure.reclaims <= 2, "too many reclaims");
  });
}
FLEXALLOC_SCENARIO(burstInVain, "a burst that nothing helps runs at most two reclaims", large);

// ---------------------------------------------------------------------------- others meanwhile

template <class S>
void newcomerDuringReclaim(World<S>& world) {
  world.build({.blocks = 2});
  auto& cache = world.template own<Cache>();
  cache.buffers.push_back(world.tryGet(1));
  cache.buffers.push_back(world.tryGet(1));
  world.callback(clearing(cache));
  world.thread([&world] { world.keep(world.get(2)); });
  // Takes what it finds and gives it back at once: the first one needs both blocks.
  world.thread([&world] { world.free(world.tryGet(1)); });
  world.thread([&world] { world.free(world.tryAtOnce(1)); });
}
FLEXALLOC_SCENARIO(newcomerDuringReclaim, "who comes during a reclaim does not take what it brings",
                   exhaustive);

template <class S>
void freeDuringReclaim(World<S>& world) {
  world.build({.blocks = 2});
  auto& held = world.template own<std::vector<Buffer>>();
  held.push_back(world.tryGet(1));
  held.push_back(world.tryGet(1));
  world.callback([](Lock& lock) {
    lock.unlock();
    lock.lock();
  });
  world.thread([&world] {
    Outcome outcome = world.request(1);
    // It may have asked before the other one freed; but if it waits for frees, it gets it.
    if (!World<S>::kHolds) world.require(outcome.served(), "false out-of-memory");
    world.keep(std::move(outcome.buffer));
  });
  world.thread([&held] { held.pop_back(); });
}
FLEXALLOC_SCENARIO(freeDuringReclaim, "another thread frees while one reclaims in vain",
                   exhaustive);

template <class S>
void garbageAfterTheReclaim(World<S>& world) {
  world.build({.blocks = 1,
               .max_wait = std::chrono::seconds(15),
               .look_again = std::chrono::milliseconds(100)});
  auto& held = world.template own<Buffer>(world.tryGet(1));
  auto& is_garbage = world.template own<Flag>(false);
  world.callback([&held, &is_garbage](Lock& lock) {
    lock.unlock();
    if (is_garbage.exchange(false)) held.reset();
    lock.lock();
  });
  world.thread([&world] {
    Outcome outcome = world.request(1);
    if (!World<S>::kHolds) world.require(outcome.served(), "false out-of-memory");
    world.keep(std::move(outcome.buffer));
  });
  world.thread([&is_garbage] { is_garbage.store(true); });
}
FLEXALLOC_SCENARIO(garbageAfterTheReclaim, "what was in use becomes garbage; nobody else asks",
                   exhaustive);

template <class S>
void freeByReclaimer(World<S>& world) {
  world.build({.blocks = 2});
  auto& cache = world.template own<Cache>();
  cache.buffers.push_back(world.tryGet(1));
  cache.buffers.push_back(world.tryGet(1));
  // Frees while it still holds the mutex, as far as the strategy leaves it that.
  world.callback([&cache](Lock&) { cache.clear(); });
  for (int i = 0; i < 2; ++i) {
    world.thread([&world] { world.keep(world.get(1)); });
  }
}
FLEXALLOC_SCENARIO(freeByReclaimer, "a callback frees with the mutex held", exhaustive);

// ---------------------------------------------------------------------------- deferred frees

template <class S>
void deferredFrees(World<S>& world) {
  world.build({.blocks = 3});
  for (int i = 0; i < 3; ++i) {
    auto& buffer = world.template own<Buffer>(world.tryGet(1));
    world.thread([&buffer] { buffer.reset(); });
  }
}
FLEXALLOC_SCENARIO(deferredFrees, "frees race with the unlock of others; none is stranded",
                   exhaustive);

template <class S>
void deferredFreeBeforeSearch(World<S>& world) {
  world.build({.blocks = 1});
  auto& held = world.template own<Buffer>(world.tryGet(1));
  auto& freed = world.template own<Flag>(false);
  world.callback([&world, &freed](Lock&) {
    // With the mutex held, so the free was left to us.
    if (World<S>::kHolds && freed.load()) world.free(world.get(1));
  });
  world.thread([&world] { world.keep(world.request(1).buffer); });
  world.thread([&held, &freed] {
    held.reset();
    freed.store(true);
  });
}
FLEXALLOC_SCENARIO(deferredFreeBeforeSearch, "a search sees what was freed before it", exhaustive);

template <class S>
void deferredFreeFeedsWaiter(World<S>& world) {
  world.build({.blocks = 2});
  auto& first = world.template own<Buffer>(world.tryGet(1));
  auto& second = world.template own<Buffer>(world.tryGet(1));
  world.thread([&world] {
    Outcome outcome = world.request(2);
    if (!World<S>::kHolds) world.require(outcome.served(), "false out-of-memory");
    world.keep(std::move(outcome.buffer));
  });
  world.thread([&first] { first.reset(); });
  world.thread([&second] { second.reset(); });
}
FLEXALLOC_SCENARIO(deferredFreeFeedsWaiter, "a deferred free reaches the request that waits for it",
                   exhaustive);

// ---------------------------------------------------------------------------- the end of waiting

template <class S>
void timeOutAtTheLastMoment(World<S>& world) {
  world.build({.blocks = 1, .max_wait = std::chrono::milliseconds(50)});
  auto& held = world.template own<Buffer>(world.tryGet(1));
  world.thread([&world] {
    Outcome outcome = world.request(1);
    world.keep(std::move(outcome.buffer));
  });
  world.thread([&held] { held.reset(); });
}
FLEXALLOC_SCENARIO(timeOutAtTheLastMoment,
                   "memory comes as max_wait ends; it is used or it is free", exhaustive);

template <class S>
void interruptWhileAsleep(World<S>& world) {
  world.build({.blocks = 1});
  auto& held = world.template own<Buffer>(world.tryGet(1));
  world.thread([&world] {
    Outcome outcome = world.request(1);
    world.keep(std::move(outcome.buffer));
  });
  world.thread([&world] {
    Outcome outcome = world.request(1, {.max_wait = std::chrono::milliseconds(50)});
    world.free(std::move(outcome.buffer));
  });
  world.thread([&held] {
    Scheduler::instance().interrupt(0);
    held.reset();
  });
}
FLEXALLOC_SCENARIO(interruptWhileAsleep,
                   "an interrupted request leaves no place and no memory behind", exhaustive);

// ---------------------------------------------------------------------------- destruction

template <class S>
void destroyWithFreesInFlight(World<S>& world) {
  world.build({.blocks = 2});
  auto& first = world.template own<Buffer>(world.tryGet(1));
  auto& second = world.template own<Buffer>(world.tryGet(1));
  world.thread([&first] { first.reset(); });
  world.thread([&second] { second.reset(); });
  world.thread([&world] { world.destroyAllocator(); });
}
FLEXALLOC_SCENARIO(destroyWithFreesInFlight, "the allocator goes while its last blocks are freed",
                   exhaustive);

template <class S>
void destroyWithWaiter(World<S>& world) {
  world.build({.blocks = 1});
  auto& held = world.template own<Buffer>(world.tryGet(1));
  world.thread([&world] {
    Outcome outcome = world.request(1);
    world.require(outcome.served() || outcome.failure.has_value(), "misuse");
  });
  world.thread([&world, &held] {
    held.reset();
    world.allocator().stopWaiting(FailureReason::closed);
  });
}
FLEXALLOC_SCENARIO(destroyWithWaiter, "waiting ends for all", exhaustive);

}  // namespace
}  // namespace flex::interleave
