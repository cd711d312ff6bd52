// SPDX-License-Identifier: Apache-2.0
#pragma once
// Python's interpreter as far as locks go, and what bindings/python does with it: who is attached,
// who collects, and the callback that collects under pressure.

#include <deque>
#include <functional>

#include "scenario.hpp"

namespace flex::interleave {

/// One interpreter, with a GIL or free-threaded. Its own locks are under the scheduler, too.
class Interpreter {
 public:
  enum class Kind : std::uint8_t { gil, free_threaded };

  explicit Interpreter(Kind kind);
  Interpreter(Interpreter const&) = delete;
  Interpreter& operator=(Interpreter const&) = delete;
  ~Interpreter();

  // --- attaching

  void attach();
  void detach();
  [[nodiscard]] bool attached() const noexcept;
  /// Between two bytecodes: others may get the GIL, or stop the world.
  void switchPoint();

  // --- garbage

  /// Something that only the cyclic collector frees. `finalizer` runs on the collecting thread.
  void addGarbage(std::function<void()> finalizer) { garbage_.push_back(std::move(finalizer)); }
  [[nodiscard]] bool hasGarbage() const noexcept { return !garbage_.empty(); }

  void disableCollector() noexcept { enabled_ = false; }
  /// gc.collect(): ignores that the collector is disabled. False: did nothing, another collection
  /// is in progress. Requires: attached.
  bool collect();
  /// PyGC_Collect(): does nothing, and does not say so, when disabled or when one is in progress.
  void pyGcCollect();

  // --- what the binding knows from gc.callbacks

  [[nodiscard]] bool collectingHere() const noexcept;

  enum class Outcome : std::uint8_t { ran, inside_collection, busy };
  /// Collects; waits, detached, for a collection of another thread before. Requires: attached.
  [[nodiscard]] Outcome collectOnceAble(Duration patience);

 private:
  void stopTheWorld();
  void startTheWorld();
  [[nodiscard]] bool anyOtherAttached() const noexcept;

  Kind const kind_;
  sync::RawMutex gil_{"the GIL"};
  std::array<bool, kMaxThreads + 1> attached_{};

  // Free-threaded: who stops the world, if anyone.
  sync::RawMutex world_mutex_{"the world"};
  sync::RawCondition world_changed_{"the world's change"};
  int stopper_ = -1;

  std::deque<std::function<void()>> garbage_;
  bool enabled_ = true;
  bool collecting_ = false;

  sync::Atomic<int> collecting_thread_{-1};
  sync::RawMutex watcher_mutex_{"the watcher"};
  sync::RawCondition stopped_{"the end of a collection"};
};

/// The lock-rule probe's view: whether the running thread is attached to any interpreter.
[[nodiscard]] bool attachedToAny() noexcept;

/// Attached for its lifetime, whether or not the thread was before.
class Attached {
 public:
  explicit Attached(Interpreter& interpreter);
  Attached(Attached const&) = delete;
  Attached& operator=(Attached const&) = delete;
  ~Attached() {
    if (!was_attached_) interpreter_.detach();
  }

 private:
  Interpreter& interpreter_;
  bool const was_attached_;
};

/// Detached for its lifetime.
class Detached {
 public:
  explicit Detached(Interpreter& interpreter) : interpreter_(interpreter) { interpreter_.detach(); }
  Detached(Detached const&) = delete;
  Detached& operator=(Detached const&) = delete;
  ~Detached();

 private:
  Interpreter& interpreter_;
};

/// The memory-pressure callback that collects garbage.
[[nodiscard]] ReclaimResult collectGarbage(Interpreter& interpreter, Lock& lock);

/// What allocate() of the module does. Requires: attached.
template <class S>
[[nodiscard]] Outcome allocateFromPython(Interpreter& interpreter, World<S>& world,
                                         std::uint64_t blocks);

extern template Outcome allocateFromPython(Interpreter&, World<HoldMutexDuringCallback>&,
                                           std::uint64_t);
extern template Outcome allocateFromPython(Interpreter&, World<ReleaseAndCondvar>&, std::uint64_t);

}  // namespace flex::interleave
