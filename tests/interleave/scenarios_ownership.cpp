// SPDX-License-Identifier: Apache-2.0
// The mutex belongs to a thread, and others come: flex/sync/biased_mutex.hpp.
#include <flex/sync/mutex.hpp>

#include "scenario_parts.hpp"

namespace flex::interleave {
namespace {

/// An allocator whose mutex a thread owns after two unlocks in a row.
template <class S>
void buildOwnable(World<S>& world, WorldOptions options) {
  options.faults = {.time_outs = false, .spurious = false, .ownership = true};
  world.build(options);
}

// ---------------------------------------------------------------------------- the mutex alone

/// What the mutex guards, in a form that shows two who are inside.
class Guarded {
 public:
  explicit Guarded(AnyWorld& world) : world_(world) {}

  void useBlocking() FLEXALLOC_NO_THREAD_SAFETY_ANALYSIS {
    mutex_.lock();
    useAndUnlock();
  }
  /// Leaves a piece of work, as a free does.
  void leave() FLEXALLOC_NO_THREAD_SAFETY_ANALYSIS {
    work_.leave();
    if (mutex_.tryLock()) useAndUnlock();
  }
  [[nodiscard]] bool pending() const noexcept { return work_.pending(); }

 private:
  class Work final : public sync::DeferredWork {
   public:
    void leave() noexcept { head_.fetch_add(1); }
    void run() noexcept override { (void)head_.exchange(0); }
  };

  void useAndUnlock() FLEXALLOC_NO_THREAD_SAFETY_ANALYSIS {
    world_.require(!std::exchange(in_use_, true), "two inside");
    inside_.store(true);  // a step at which another one may come
    in_use_ = false;
    mutex_.unlock();
  }

  AnyWorld& world_;
  Work work_;
  sync::Mutex mutex_{work_};
  Flag inside_{false};
  bool in_use_ = false;
};

using AnyStrategy = HoldMutexDuringCallback;  // the allocator of these is not used

Guarded& buildGuarded(World<AnyStrategy>& world) {
  buildOwnable(world, {});
  auto& guarded = world.own<Guarded>(world);
  world.atEnd([&world, &guarded] { world.require(!guarded.pending(), "stranded work"); });
  return guarded;
}

/// Closed until somebody opens it.
class Gate {
 public:
  void open() {
    sync::RawUniqueLock const lock(mutex_);
    open_ = true;
    condition_.notifyAll();
  }
  void pass() {
    sync::RawUniqueLock lock(mutex_);
    while (!open_) condition_.wait(lock);
  }

 private:
  sync::RawMutex mutex_;
  sync::RawCondition condition_;
  bool open_ = false;
};

/// The third time, the thread comes in by ownership.
void leaveOften(Guarded& guarded, int times = 3) {
  for (int i = 0; i < times; ++i) guarded.leave();
}

void ownerAndTrier(World<AnyStrategy>& world) {
  Guarded& guarded = buildGuarded(world);
  world.thread([&guarded] { leaveOften(guarded, 4); });
  world.thread([&guarded] { guarded.leave(); });
}

void ownerAndLocker(World<AnyStrategy>& world) {
  Guarded& guarded = buildGuarded(world);
  world.thread([&guarded] { leaveOften(guarded); });
  world.thread([&guarded] {
    guarded.useBlocking();
    guarded.leave();
  });
}

void ownerLocks(World<AnyStrategy>& world) {
  Guarded& guarded = buildGuarded(world);
  world.thread([&guarded] {
    leaveOften(guarded);
    guarded.useBlocking();
    guarded.leave();
  });
  world.thread([&guarded] { guarded.leave(); });
}

void ownerAndTwoTriers(World<AnyStrategy>& world) {
  Guarded& guarded = buildGuarded(world);
  auto& owned = world.own<Gate>();
  world.thread([&guarded, &owned] {
    leaveOften(guarded, 2);
    owned.open();
    guarded.leave();
  });
  for (int i = 0; i < 2; ++i) {
    world.thread([&guarded, &owned] {
      owned.pass();
      guarded.leave();
    });
  }
}

void ownersInTurn(World<AnyStrategy>& world) {
  Guarded& guarded = buildGuarded(world);
  for (int i = 0; i < 2; ++i) world.thread([&guarded] { leaveOften(guarded, 5); });
}

template <auto Setup>
bool addMutexScenario(std::string_view name, std::string_view about, Scenario::Size size) {
  allScenarios().push_back({name, about, size, &makeWorld<Setup, AnyStrategy>});
  return true;
}

[[maybe_unused]] bool const registered[] = {
    addMutexScenario<ownerAndTrier>("mutex/ownerAndTrier",
                                    "one owns the mutex, another one tries it and leaves work",
                                    Scenario::Size::exhaustive),
    addMutexScenario<ownerAndLocker>("mutex/ownerAndLocker",
                                     "one owns the mutex, another one waits for it",
                                     Scenario::Size::exhaustive),
    addMutexScenario<ownerLocks>("mutex/ownerLocks", "the owner itself waits for the mutex",
                                 Scenario::Size::exhaustive),
    addMutexScenario<ownerAndTwoTriers>("mutex/ownerAndTwoTriers",
                                        "two come at once while one owns the mutex",
                                        Scenario::Size::exhaustive),
    addMutexScenario<ownersInTurn>("mutex/ownersInTurn", "each of two becomes the owner",
                                   Scenario::Size::large),
};

// ---------------------------------------------------------------------------- with the allocator

/// An allocator of four blocks, and a thread that owns its mutex when it frees the third.
template <class S>
void buildWithFreeingOwner(World<S>& world) {
  buildOwnable(world, {.blocks = 4});
  auto& held = world.template own<Cache>();
  for (int i = 0; i < 3; ++i) held.buffers.push_back(world.tryGet(1));
  world.thread([&held] { held.clear(); });
}

template <class S>
void ownerFrees(World<S>& world) {
  buildWithFreeingOwner(world);
  auto& second = world.template own<Buffer>(world.tryGet(1));
  world.thread([&second] { second.reset(); });
}
FLEXALLOC_SCENARIO(ownerFrees, "the owner of the mutex and another thread free; none is stranded",
                   exhaustive);

template <class S>
void ownerMeetsPressure(World<S>& world) {
  buildOwnable(world, {.blocks = 2});
  auto& held = world.template own<std::vector<Buffer>>();
  held.push_back(world.tryGet(1));
  world.thread([&world, &held] {
    for (int i = 0; i < 2; ++i) world.free(world.tryAtOnce(1));
    held.pop_back();
  });
  world.thread([&world] {
    Outcome outcome = world.request(2);
    if (!World<S>::kHolds) world.require(outcome.served(), "false out-of-memory");
    world.keep(std::move(outcome.buffer));
  });
}
FLEXALLOC_SCENARIO(ownerMeetsPressure, "another thread sleeps for what the owner frees",
                   exhaustive);

template <class S>
void ownerAndReclaim(World<S>& world) {
  buildOwnable(world, {.blocks = 2});
  auto& cache = world.template own<Cache>();
  cache.buffers.push_back(world.tryGet(1));
  world.callback(clearing(cache));
  world.thread([&world] {
    for (int i = 0; i < 3; ++i) world.free(world.tryAtOnce(1));
  });
  world.thread([&world] { world.free(world.request(2).buffer); });
}
FLEXALLOC_SCENARIO(ownerAndReclaim, "a reclaim takes the mutex from its owner and gives it back",
                   exhaustive);

template <class S>
void ownerAndDestruction(World<S>& world) {
  buildWithFreeingOwner(world);
  world.thread([&world] { world.destroyAllocator(); });
}
FLEXALLOC_SCENARIO(ownerAndDestruction, "the allocator goes while the owner of its mutex frees",
                   exhaustive);

}  // namespace
}  // namespace flex::interleave
