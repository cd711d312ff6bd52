// SPDX-License-Identifier: Apache-2.0
// The allocator under an interpreter, with a GIL (names as they are) and free-threaded ("...Free").
#include "interpreter_model.hpp"
#include "scenario_parts.hpp"

namespace flex::interleave {
namespace {

using Kind = Interpreter::Kind;

/// A world with an interpreter whose collector is the pressure callback.
template <class S>
Interpreter& interpreterFor(World<S>& world, Kind kind) {
  auto& interpreter = world.template own<Interpreter>(kind);
  world.callback([&interpreter](Lock& lock, PressureEvent const&) {
    return collectGarbage(interpreter, lock);
  });
  return interpreter;
}

/// A buffer that only a reference cycle keeps alive.
void loseInCycle(Interpreter& interpreter, Buffer&& buffer) {
  interpreter.addGarbage([lost = std::make_shared<Buffer>(std::move(buffer))]() { lost->reset(); });
}

template <class S>
void mustGet(World<S>& world, Interpreter& interpreter, std::uint64_t blocks) {
  Outcome outcome = allocateFromPython(interpreter, world, blocks);
  world.require(outcome.served(), "false out-of-memory", "the live data fits");
  world.keep(std::move(outcome.buffer));
}

#define FLEXALLOC_PYTHON_SCENARIO(function, text, size) \
  template <class S>                                    \
  void function(World<S>& world) {                      \
    function##With(world, Kind::gil);                   \
  }                                                     \
  template <class S>                                    \
  void function##Free(World<S>& world) {                \
    function##With(world, Kind::free_threaded);         \
  }                                                     \
  FLEXALLOC_SCENARIO(function, text, size);             \
  FLEXALLOC_SCENARIO(function##Free, text, size)

// Each thread drops a buffer into a cycle and asks for one: what is alive always fits.
template <class S>
void pythonChurn(World<S>& world, Kind kind, int threads) {
  world.build({.blocks = static_cast<std::uint64_t>(threads)});
  Interpreter& interpreter = interpreterFor(world, kind);
  for (int i = 0; i < threads; ++i) {
    auto& mine = world.template own<Buffer>(world.tryGet(1));
    world.thread([&world, &interpreter, &mine] {
      Attached const attached(interpreter);
      loseInCycle(interpreter, std::move(mine));
      mustGet(world, interpreter, 1);
    });
  }
}

template <class S>
void pythonBurstWith(World<S>& world, Kind kind) {
  pythonChurn(world, kind, 2);
}
FLEXALLOC_PYTHON_SCENARIO(pythonBurst, "two Python threads churn; what is alive fits", exhaustive);

template <class S>
void pythonCrowdWith(World<S>& world, Kind kind) {
  pythonChurn(world, kind, 4);
}
FLEXALLOC_PYTHON_SCENARIO(pythonCrowd, "four Python threads churn; what is alive fits", large);

template <class S>
void collectorBusyWith(World<S>& world, Kind kind) {
  world.build({.blocks = 1});
  Interpreter& interpreter = interpreterFor(world, kind);
  auto& mine = world.template own<Buffer>(world.tryGet(1));
  world.thread([&interpreter] {
    Attached const attached(interpreter);
    interpreter.addGarbage([] {});
    (void)interpreter.collect();  // an automatic collection
  });
  world.thread([&world, &interpreter, &mine] {
    Attached const attached(interpreter);
    loseInCycle(interpreter, std::move(mine));
    mustGet(world, interpreter, 1);
  });
}
FLEXALLOC_PYTHON_SCENARIO(collectorBusy, "another thread's collection, begun too early, is no help",
                          exhaustive);

template <class S>
void lateGarbageWith(World<S>& world, Kind kind) {
  world.build({.blocks = 2});
  Interpreter& interpreter = interpreterFor(world, kind);
  world.keep(world.tryGet(1));
  auto& mine = world.template own<Buffer>(world.tryGet(1));
  // Reclaims in vain: it asks for more than can ever be free.
  world.thread([&world] { (void)world.request(2, {.max_wait = std::chrono::milliseconds(50)}); });
  world.thread([&world, &interpreter, &mine] {
    Attached const attached(interpreter);
    loseInCycle(interpreter, std::move(mine));
    mustGet(world, interpreter, 1);
  });
}
FLEXALLOC_PYTHON_SCENARIO(lateGarbage, "what became garbage during a reclaim needs another one",
                          exhaustive);

template <class S>
void collectorDisabledWith(World<S>& world, Kind kind) {
  world.build({.blocks = 1});
  Interpreter& interpreter = interpreterFor(world, kind);
  auto& mine = world.template own<Buffer>(world.tryGet(1));
  interpreter.disableCollector();
  world.thread([&world, &interpreter, &mine] {
    Attached const attached(interpreter);
    loseInCycle(interpreter, std::move(mine));
    mustGet(world, interpreter, 1);
  });
  world.thread([&interpreter] {
    Attached const attached(interpreter);
    interpreter.switchPoint();
  });
}
FLEXALLOC_PYTHON_SCENARIO(collectorDisabled, "gc.disable() is in force", exhaustive);

template <class S>
void finalizerAllocatesWith(World<S>& world, Kind kind) {
  world.build({.blocks = 2});
  Interpreter& interpreter = interpreterFor(world, kind);
  auto& first = world.template own<Buffer>(world.tryGet(1));
  auto& second = world.template own<Buffer>(world.tryGet(1));
  world.thread([&world, &interpreter, &first] {
    Attached const attached(interpreter);
    interpreter.addGarbage([&world, &interpreter, &first] {
      Outcome outcome = allocateFromPython(interpreter, world, 1);
      world.require(outcome.served() || outcome.failure == FailureReason::inside_finalizer ||
                        outcome.failure == FailureReason::inside_callback,
                    "finalizer", "fails for another reason");
      first.reset();
    });
    (void)interpreter.collect();
  });
  world.thread([&world, &interpreter, &second] {
    Attached const attached(interpreter);
    loseInCycle(interpreter, std::move(second));
    Outcome outcome = allocateFromPython(interpreter, world, 1);
    // Only the finalizer's short-lived buffer can be in the way.
    world.keep(std::move(outcome.buffer));
  });
}
FLEXALLOC_PYTHON_SCENARIO(finalizerAllocates,
                          "a finalizer asks for memory while another thread is under pressure",
                          exhaustive);

template <class S>
void finalizerAsksFirstWith(World<S>& world, Kind kind) {
  world.build({.blocks = 2});
  Interpreter& interpreter = interpreterFor(world, kind);
  auto& buffer = world.template own<Buffer>(world.tryGet(1));
  world.keep(world.tryGet(1));
  interpreter.addGarbage([&world, &interpreter, &buffer] {
    Outcome const outcome = allocateFromPython(interpreter, world, 1);
    world.require(!outcome.served(), "double hand-off");
    buffer.reset();
  });
  world.thread([&interpreter] {
    Attached const attached(interpreter);
    (void)interpreter.collect();
  });
  // Waits for that collection, so that one must not wait for this.
  world.thread([&world, &interpreter] {
    Attached const attached(interpreter);
    mustGet(world, interpreter, 1);
  });
}
FLEXALLOC_PYTHON_SCENARIO(finalizerAsksFirst, "a finalizer asks for memory in vain before it frees",
                          exhaustive);

template <class S>
void finalizerDetachesWith(World<S>& world, Kind kind) {
  world.build({.blocks = 1});
  Interpreter& interpreter = interpreterFor(world, kind);
  auto& buffer = world.template own<Buffer>(world.tryGet(1));
  interpreter.addGarbage([&interpreter, &buffer] {
    { Detached const detached(interpreter); }  // writes to a file, say
    buffer.reset();
  });
  world.thread([&interpreter] {
    Attached const attached(interpreter);
    (void)interpreter.collect();
  });
  world.thread([&world, &interpreter] {
    Attached const attached(interpreter);
    mustGet(world, interpreter, 1);
  });
}
FLEXALLOC_PYTHON_SCENARIO(finalizerDetaches,
                          "a finalizer lets go of the interpreter and then frees", exhaustive);

template <class S>
void nativeAndPythonWith(World<S>& world, Kind kind) {
  world.build({.blocks = 2});
  Interpreter& interpreter = interpreterFor(world, kind);
  loseInCycle(interpreter, world.tryGet(1));
  loseInCycle(interpreter, world.tryGet(1));
  world.thread([&world] { world.keep(world.get(1)); });
  world.thread([&world, &interpreter] {
    Attached const attached(interpreter);
    mustGet(world, interpreter, 1);
  });
}
FLEXALLOC_PYTHON_SCENARIO(nativeAndPython, "a thread that Python does not know reclaims",
                          exhaustive);

template <class S>
void deletersEverywhereWith(World<S>& world, Kind kind) {
  world.build({.blocks = 2});
  Interpreter& interpreter = interpreterFor(world, kind);
  auto& first = world.template own<Buffer>(world.tryGet(1));
  auto& second = world.template own<Buffer>(world.tryGet(1));
  world.thread([&interpreter, &first] {
    Attached const attached(interpreter);
    first.reset();
  });
  world.thread([&second] { second.reset(); });
  world.thread([&world] {
    Outcome outcome = world.request(2);
    if (!World<S>::kHolds) world.require(outcome.served(), "false out-of-memory");
    world.keep(std::move(outcome.buffer));
  });
}
FLEXALLOC_PYTHON_SCENARIO(deletersEverywhere, "deleters with the GIL and without, under pressure",
                          exhaustive);

template <class S>
void unregisterFromPythonWith(World<S>& world, Kind kind) {
  world.build({.blocks = 1, .max_wait = std::chrono::milliseconds(50)});
  auto& interpreter = world.template own<Interpreter>(kind);
  auto& gone = world.template own<Flag>(false);
  auto& handle =
      world.template own<CallbackHandle>(world.allocator().registerMemoryPressureCallback(
          [&world, &interpreter, &gone](Lock& lock, PressureEvent const&) {
            world.require(!gone.load(), "unregistered callback runs");
            return collectGarbage(interpreter, lock);
          }));
  auto& held = world.template own<Buffer>(world.tryGet(1));
  world.thread([&world, &interpreter] {
    Attached const attached(interpreter);
    world.free(allocateFromPython(interpreter, world, 1).buffer);
  });
  world.thread([&interpreter, &handle, &gone, &held] {
    Attached const attached(interpreter);
    {
      Detached const detached(interpreter);
      handle.reset();
    }
    gone.store(true);
    held.reset();
  });
}
FLEXALLOC_PYTHON_SCENARIO(unregisterFromPython, "Python unregisters a callback that wants the GIL",
                          exhaustive);

template <class S>
void finalizersEverywhereWith(World<S>& world, Kind kind) {
  world.build({.blocks = 3});
  Interpreter& interpreter = interpreterFor(world, kind);
  for (int i = 0; i < 3; ++i) {
    auto& mine = world.template own<Buffer>(world.tryGet(1));
    world.thread([&world, &interpreter, &mine, i] {
      Attached const attached(interpreter);
      interpreter.addGarbage([&world, &interpreter, &mine, i] {
        if (i == 0) {
          Detached const detached(interpreter);
        }
        if (i == 1) world.free(allocateFromPython(interpreter, world, 1).buffer);
        mine.reset();
      });
      if (i == 2) (void)interpreter.collect();
      world.free(allocateFromPython(interpreter, world, 1).buffer);
    });
  }
}
FLEXALLOC_PYTHON_SCENARIO(finalizersEverywhere, "finalizers allocate, free and detach in a crowd",
                          large);

}  // namespace
}  // namespace flex::interleave
