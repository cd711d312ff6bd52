// SPDX-License-Identifier: Apache-2.0
#include "python_gc.hpp"

#include <algorithm>

#include <boost/thread/lock_guard.hpp>
#include <boost/thread/mutex.hpp>
#include <fmt/format.h>

#include "gc_watcher.hpp"
#include "gil.hpp"

namespace spyre_alloc {
namespace {

using SteadyClock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;
using Outcome = flex::ReclaimResult::Outcome;

constexpr int kFullCollection = 2;

flex::ReclaimResult interpreterIsClosed() {
  return {Outcome::not_possible, flex::FailureReason::interpreter_finalizing, {}};
}

}  // namespace

/// Shared by the registered callbacks, which may outlive the registration by the run they are in.
/// The mutex is for free-threaded builds; it is held while attached only, so that a fork, which is
/// attached too, finds it free.
struct PythonGc::State {
  explicit State(GcOptions const& settings) : options(settings), allowance(settings.burst) {}

  flex::ReclaimResult reclaim(flex::Lock& lock, int generation);
  flex::ReclaimResult collect(int generation);
  [[nodiscard]] bool withinBudget(SteadyClock::time_point now) noexcept;
  void account(SteadyClock::time_point began, SteadyClock::time_point ended,
               bool fruitful) noexcept;
  GcOptions const options;

  mutable boost::mutex mutex;
  GcStatistics statistics;
  double allowance;  ///< seconds of fruitless collecting left
  SteadyClock::time_point refilled = SteadyClock::now();
  SteadyClock::time_point last_fruitless{};
};

PythonGc::PythonGc(spyre::AnyAllocator& allocator, GcOptions const& options)
    : state_(std::make_shared<State>(options)) {
  for (int generation = options.young_first ? 0 : kFullCollection; generation <= kFullCollection;
       ++generation) {
    handles_.push_back(allocator.registerMemoryPressureCallback(
        [state = state_, generation](flex::Lock& lock, flex::PressureEvent const&) {
          return state->reclaim(lock, generation);
        },
        kPriority + generation));
  }
}

GcStatistics PythonGc::statistics() const noexcept {
  boost::lock_guard<boost::mutex> const guard(state_->mutex);
  return state_->statistics;
}

flex::ReclaimResult PythonGc::State::reclaim(flex::Lock& lock, int generation) {
  lock.unlock();  // attaching with the mutex held would be a deadlock (rule R2)
  flex::ReclaimResult result;
  {
    Attached const attached;
    if (!attached.ok()) return interpreterIsClosed();
    result = collect(generation);
    boost::lock_guard<boost::mutex> const guard(mutex);
    if (result.outcome != Outcome::done) ++statistics.collections_skipped;
  }
  return result;
}

flex::ReclaimResult PythonGc::State::collect(int generation) {
  GcWatcher& watcher = GcWatcher::instance();
  if (options.respect_disable && !watcher.enabled()) {
    return {Outcome::skipped, std::nullopt, "garbage collection is disabled and respected as such"};
  }
  if (!withinBudget(SteadyClock::now())) {
    return {Outcome::skipped, std::nullopt,
            "not collected: earlier collections gave nothing back and used up the time budget"};
  }
  std::uint64_t const released_before = spyre::bytesReleasedByThisThread();
  auto const began = SteadyClock::now();
  auto const patience =
      std::chrono::duration_cast<std::chrono::nanoseconds>(Seconds(options.patience));
  switch (watcher.collect(generation, patience)) {
    case GcWatcher::Outcome::ran:
      break;
    case GcWatcher::Outcome::inside_collection:
      return {Outcome::not_possible, flex::FailureReason::inside_finalizer,
              "this thread is inside a garbage collection already"};
    case GcWatcher::Outcome::busy:
      return {Outcome::not_possible, std::nullopt,
              "not collected: another thread's garbage collection did not end in time"};
    case GcWatcher::Outcome::failed:
      return {Outcome::not_possible, std::nullopt, "gc.collect() raised an exception"};
  }
  bool const fruitful = spyre::bytesReleasedByThisThread() != released_before;
  account(began, SteadyClock::now(), fruitful);
  if (fruitful || generation != kFullCollection) return {};
  Py_ssize_t const frozen = watcher.frozenCount();
  if (frozen <= 0) return {};
  return {Outcome::done, std::nullopt,
          fmt::format("gc.freeze() hides {} objects from the garbage collector", frozen)};
}

bool PythonGc::State::withinBudget(SteadyClock::time_point now) noexcept {
  boost::lock_guard<boost::mutex> const guard(mutex);
  allowance = std::min(options.burst, allowance + options.budget * Seconds(now - refilled).count());
  refilled = now;
  bool const too_soon = last_fruitless != SteadyClock::time_point{} &&
                        Seconds(now - last_fruitless).count() < options.min_interval;
  return allowance > 0.0 && !too_soon;
}

void PythonGc::State::account(SteadyClock::time_point began, SteadyClock::time_point ended,
                              bool fruitful) noexcept {
  boost::lock_guard<boost::mutex> const guard(mutex);
  ++statistics.collections;
  statistics.time += ended - began;
  if (fruitful) return;
  ++statistics.fruitless;
  allowance -= Seconds(ended - began).count();
  last_fruitless = ended;
}

}  // namespace spyre_alloc
