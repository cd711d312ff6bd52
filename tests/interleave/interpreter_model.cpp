// SPDX-License-Identifier: Apache-2.0
#include "interpreter_model.hpp"

#include <algorithm>
#include <utility>

#include <flex/sync/lock_rules.hpp>

namespace flex::interleave {
namespace {

Interpreter const* present = nullptr;  // one a run

int self() noexcept { return Scheduler::instance().self(); }

std::size_t slot() noexcept { return static_cast<std::size_t>(self() + 1); }

}  // namespace

Interpreter::Interpreter(Kind kind) : kind_(kind) { present = this; }

Interpreter::~Interpreter() { present = nullptr; }

bool attachedToAny() noexcept { return present != nullptr && present->attached(); }

// ---------------------------------------------------------------------------- attaching

bool Interpreter::attached() const noexcept { return attached_[slot()]; }

void Interpreter::attach() {
  if (kind_ == Kind::gil) {
    gil_.lock();
  } else {
    sync::RawUniqueLock lock(world_mutex_);
    while (stopper_ != -1) world_changed_.wait(lock);
    attached_[slot()] = true;
  }
  attached_[slot()] = true;
}

void Interpreter::detach() {
  if (kind_ == Kind::gil) {
    attached_[slot()] = false;
    gil_.unlock();
    return;
  }
  sync::RawUniqueLock const lock(world_mutex_);
  attached_[slot()] = false;
  world_changed_.notifyAll();
}

void Interpreter::switchPoint() {
  detach();
  attach();
}

bool Interpreter::anyOtherAttached() const noexcept {
  for (std::size_t i = 0; i < attached_.size(); ++i) {
    if (i != slot() && attached_[i]) return true;
  }
  return false;
}

void Interpreter::stopTheWorld() {
  if (kind_ == Kind::gil) return;
  sync::RawUniqueLock lock(world_mutex_);
  attached_[slot()] = false;  // lets others stop the world before us
  world_changed_.notifyAll();
  while (stopper_ != -1) world_changed_.wait(lock);
  stopper_ = self();
  attached_[slot()] = true;
  while (anyOtherAttached()) world_changed_.wait(lock);
}

void Interpreter::startTheWorld() {
  if (kind_ == Kind::gil) return;
  sync::RawUniqueLock const lock(world_mutex_);
  stopper_ = -1;
  world_changed_.notifyAll();
}

// ---------------------------------------------------------------------------- collecting

// The flag and the list are guarded by the GIL, or by the world's standing still.
bool Interpreter::collect() {
  stopTheWorld();
  if (collecting_) {
    startTheWorld();
    return false;
  }
  collecting_ = true;
  std::deque<std::function<void()>> const found = std::exchange(garbage_, {});
  startTheWorld();
  collecting_thread_.store(self());
  for (auto const& finalizer : found) {
    switchPoint();
    finalizer();
  }
  {
    sync::RawUniqueLock const lock(watcher_mutex_);
    collecting_thread_.store(-1);
    stopped_.notifyAll();
  }
  stopTheWorld();
  collecting_ = false;
  startTheWorld();
  return true;
}

void Interpreter::pyGcCollect() {
  if (enabled_) (void)collect();
}

bool Interpreter::collectingHere() const noexcept { return collecting_thread_.load() == self(); }

Interpreter::Outcome Interpreter::collectOnceAble(Duration patience) {
  TimePoint const deadline = sync::steadyNow() + patience;
  for (;;) {
    if (collectingHere()) return Outcome::inside_collection;
    if (collecting_thread_.load() == -1 && collect()) return Outcome::ran;
    if (sync::steadyNow() >= deadline) return Outcome::busy;
    Detached const detached(*this);
    sync::RawUniqueLock lock(watcher_mutex_);
    stopped_.waitFor(lock, std::chrono::milliseconds(10));
  }
}

// ---------------------------------------------------------------------------- the binding

Attached::Attached(Interpreter& interpreter)
    : interpreter_(interpreter), was_attached_(interpreter.attached()) {
  sync::assertMayAttach("attaching to the interpreter");
  if (!was_attached_) interpreter_.attach();
}

Detached::~Detached() {
  sync::assertMayAttach("re-attaching to the interpreter");
  interpreter_.attach();
}

ReclaimResult collectGarbage(Interpreter& interpreter, Lock& lock) {
  lock.unlock();
  Attached const attached(interpreter);
  switch (interpreter.collectOnceAble(std::chrono::seconds(1))) {
    case Interpreter::Outcome::ran:
      return {};
    case Interpreter::Outcome::inside_collection:
      return {ReclaimResult::Outcome::not_possible, FailureReason::inside_finalizer, {}};
    case Interpreter::Outcome::busy:
      break;
  }
  return {ReclaimResult::Outcome::not_possible, std::nullopt, {}};
}

template <class S>
Outcome allocateFromPython(Interpreter& interpreter, World<S>& world, std::uint64_t blocks) {
  if (Buffer buffer = world.tryAtOnce(blocks)) return {.buffer = std::move(buffer)};
  RequestOptions options;
  if (interpreter.collectingHere()) {
    options.may_wait = false;
    options.no_wait_reason = FailureReason::inside_finalizer;
  }
  Detached const detached(interpreter);
  return world.request(blocks, options);
}

template Outcome allocateFromPython(Interpreter&, World<HoldMutexDuringCallback>&, std::uint64_t);
template Outcome allocateFromPython(Interpreter&, World<ReleaseAndCondvar>&, std::uint64_t);

}  // namespace flex::interleave
