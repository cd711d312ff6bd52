// SPDX-License-Identifier: Apache-2.0
// Four claims about locks and interpreters that are often made and do not hold. Each scenario
// breaks a rule as the claim allows, and shows what comes of it. docs/interleaving.md explains
// them.
#include "interpreter_model.hpp"
#include "scenario_parts.hpp"

namespace flex::interleave {
namespace {

using Kind = Interpreter::Kind;
using Hold = HoldMutexDuringCallback;

/// A callback that attaches as it is entered: with the mutex held.
auto attachingUnderTheMutex(Interpreter& interpreter) {
  return [&interpreter](Lock&, PressureEvent const&) {
    Attached const attached(interpreter);
    (void)interpreter.collect();
    return ReclaimResult{};
  };
}

// "A Python thread may take the mutex with the GIL held."
void claim1(World<Hold>& world) {
  world.withoutLockRules();
  world.build({.blocks = 1});
  auto& interpreter = world.own<Interpreter>(Kind::gil);
  world.keep(world.tryGet(1));
  world.callback(attachingUnderTheMutex(interpreter));  // one that forgets the other rule
  world.thread([&world] { (void)world.request(1); });
  world.thread([&world, &interpreter] {
    Attached const attached(interpreter);
    (void)world.request(1);  // waits for the mutex, attached
  });
}

// "Holding the mutex serialises pressure events by itself."
void claim2(World<MutexAlone>& world) {
  world.build({.blocks = 2});
  auto& cache = world.own<Cache>();
  cache.buffers.push_back(world.tryGet(1));
  cache.buffers.push_back(world.tryGet(1));
  world.callback(clearing(cache));
  world.thread([&world] { world.free(world.get(2)); });
  world.thread([&world] { world.free(world.tryGet(1)); });  // two of two blocks, one for a moment
}

// The other half: a plain mutex that really is held over a collection.
void claim2Held(World<Hold>& world) {
  world.build({.blocks = 1});
  struct Plain {
    sync::RawMutex mutex{"a plain mutex"};
    bool used = true;
  };
  auto& plain = world.own<Plain>();
  auto& interpreter = world.own<Interpreter>(Kind::gil);
  interpreter.addGarbage([&plain] {  // the collected buffer's deleter
    sync::RawUniqueLock const lock(plain.mutex);
    plain.used = false;
  });
  world.thread([&plain, &interpreter] {
    Attached const attached(interpreter);
    sync::RawUniqueLock const lock(plain.mutex);  // allocate(), out of memory
    if (plain.used) (void)interpreter.collect();
  });
}

// "PyGC_Collect() frees what can be freed."
void claim3(World<Hold>& world) {
  world.build({.blocks = 1});
  auto& interpreter = world.own<Interpreter>(Kind::gil);
  world.callback([&interpreter](Lock& lock, PressureEvent const&) {
    lock.unlock();
    Attached const attached(interpreter);
    interpreter.pyGcCollect();
    return ReclaimResult{};
  });
  auto& mine = world.own<Buffer>(world.tryGet(1));
  world.thread([&interpreter] {
    Attached const attached(interpreter);
    interpreter.addGarbage([] {});
    (void)interpreter.collect();
  });
  world.thread([&world, &interpreter, &mine] {
    Attached const attached(interpreter);
    interpreter.addGarbage([&mine] { mine.reset(); });
    world.keep(allocateFromPython(interpreter, world, 1).buffer);
    world.require(!interpreter.hasGarbage(), "false out-of-memory",
                  "the request failed, and the garbage that holds its memory was not collected");
  });
}

// "Free-threaded builds cannot deadlock this way: attaching is a no-op."
void claim4(World<Hold>& world) {
  world.withoutLockRules();
  world.build({.blocks = 1});
  auto& interpreter = world.own<Interpreter>(Kind::free_threaded);
  world.keep(world.tryGet(1));
  world.callback(attachingUnderTheMutex(interpreter));
  world.thread([&world] { (void)world.request(1); });  // the mutex's owner: wants to attach
  world.thread([&world, &interpreter] {
    Attached const attached(interpreter);
    (void)world.request(1);  // attached, waits for the mutex
  });
  world.thread([&interpreter] {
    Attached const attached(interpreter);
    (void)interpreter.collect();  // stops the world: waits for whoever is attached
  });
}

template <auto Setup, class S>
bool addClaim(std::string_view name, std::string_view about, std::string_view shows) {
  allScenarios().push_back({name, about, Scenario::Size::exhaustive, &makeWorld<Setup, S>, shows});
  return true;
}

[[maybe_unused]] bool const registered[] = {
    addClaim<claim1, Hold>("claim/1", "taking the mutex with the GIL held is safe", "deadlock"),
    addClaim<claim2, MutexAlone>("claim/2", "the mutex serialises pressure events",
                                 "false out-of-memory"),
    addClaim<claim2Held, Hold>("claim/2-held", "the mutex may be held over a collection",
                               "self-deadlock"),
    addClaim<claim3, Hold>("claim/3", "PyGC_Collect() frees what can be freed",
                           "false out-of-memory"),
    addClaim<claim4, Hold>("claim/4", "free-threaded builds cannot deadlock", "deadlock"),
};

}  // namespace
}  // namespace flex::interleave
