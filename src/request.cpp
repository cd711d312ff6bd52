// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include <cxxabi.h>

#include <flex/detail/callout.hpp>
#include <flex/detail/request.hpp>

namespace flex::detail {
namespace {

// How often a sleeping request polls (for Ctrl-C, say).
constexpr Duration kPollInterval = std::chrono::milliseconds(50);

}  // namespace

/// Keeps the engine alive while a request is inside. Requires: the mutex is held at both ends.
class Request::Inside {
 public:
  explicit Inside(Engine& engine) noexcept FLEXALLOC_REQUIRES(engine.cell_.mutex)
      : engine_(engine) {
    ++engine_.requests_inside_;
  }
  Inside(Inside const&) = delete;
  Inside& operator=(Inside const&) = delete;
  ~Inside() {
    --engine_.requests_inside_;
    if (engine_.closed_) engine_.retireIfUnused();
  }

 private:
  Engine& engine_;
};

Request::Request(Engine& engine, Placement const& placement, RequestOptions const& options)
    : engine_(engine),
      placement_(placement),
      options_(options),
      max_wait_(options.max_wait.value_or(engine.options_.max_wait)) {
  blocks_.reserve(placement.chunks);  // so that serving never needs memory
}

Request::~Request() {
  if (served_ && !taken_) engine_.giveBack(std::move(blocks_));
}

// ---------------------------------------------------------------------------- the whole path

CompositeAddress Request::run() {
  EntryLock entry(engine_, engine_.cell_.mutex);
  engine_.cell_.mutex.assertHeld();
  Lock& lock = entry.lock();
  Inside const inside(engine_);
  arrived_ = engine_.generation_;

  if (entry.insideCallback()) {
    if (tryServe()) return take();
    fail(options_.may_wait ? FailureReason::inside_callback : options_.no_wait_reason);
  }
  if (!engine_.pool_.couldEverServe(placement_)) fail(FailureReason::larger_than_any_region);
  if (!options_.may_wait || engine_.stop_reason_) {
    if (searchOrGrow(lock)) return take();
    fail(options_.may_wait ? *engine_.stop_reason_ : options_.no_wait_reason);
  }

  if (engine_.admit()) {
    if (searchOrGrow(lock)) {
      engine_.onServedAtOnce();
      return take();
    }
    noteEvent();
  }
  Verdict const verdict = engine_.resolve(lock, *this);
  if (verdict != Verdict::served) noteEvent();
  if (met_exhaustion_ && reclaims_ == 0) ++engine_.pressure_.coalesced;
  if (verdict == Verdict::served) return take();
  // Nobody waits for anybody any more, so there is no turn to wait for.
  if (verdict == Verdict::stopped && !engine_.closed_ && tryServe()) return take();
  fail(reasonFor(verdict, engine_.pool_.freeSpace(placement_)));
}

CompositeAddress Request::tryRun() {
  EntryLock entry(engine_, engine_.cell_.mutex);
  engine_.cell_.mutex.assertHeld();
  Inside const inside(engine_);
  if (entry.insideCallback()) return tryServe() ? take() : CompositeAddress{};
  if (!engine_.admit() || !searchOrGrow(entry.lock())) return {};
  engine_.onServedAtOnce();
  return take();
}

bool Request::searchOrGrow(Lock& lock) {
  for (;;) {
    if (tryServe()) return true;
    if (!grow(lock)) return false;
  }
}

bool Request::tryServe() noexcept {
  engine_.cell_.mutex.assertHeld();
  engine_.cell_.mutex.runDeferred();
  if (served_) return true;  // what was deferred went to this very request
  if (!engine_.pool_.tryPlace(placement_, blocks_)) {
    ++failed_searches_;
    return false;
  }
  served_ = true;
  if (!onItsThread()) ++engine_.pressure_.handoffs;
  return true;
}

bool Request::fits() const noexcept {
  engine_.cell_.mutex.assertHeld();
  engine_.cell_.mutex.runDeferred();
  return engine_.pool_.fits(placement_);
}

CompositeAddress Request::take() noexcept {
  taken_ = true;
  return Engine::own(std::move(blocks_));
}

// ---------------------------------------------------------------------------- growing

// Returns true whenever the mutex was let go of, so that whoever calls looks again (rule R4); once
// nothing can have changed any more, it returns false without letting go.
bool Request::grow(Lock& lock) {
  engine_.cell_.mutex.assertHeld();
  if (engine_.device_calls_ != 0) {
    // Its region may serve us too. Who must not wait goes on without.
    Engine::GrowthWait waiting;
    engine_.growth_waits_.push_back(waiting);
    struct Leave {
      ~Leave() { waits.erase(waits.iterator_to(wait)); }
      Engine::GrowthWaits& waits;
      Engine::GrowthWait& wait;
    } const leave{engine_.growth_waits_, waiting};
    return wait(lock, waiting.parker) == WaitEnd::woken;
  }
  // Free regions that are too small may stand in the way of one that is large enough. They are
  // given back once, and again only after another one has become free: not what was just acquired.
  bool const may_exchange = engine_.options_.acquisition == Acquisition::on_demand &&
                            exchanged_at_ != engine_.pool_.timesEmptied() &&
                            engine_.pool_.hasEmptyRegion() &&
                            engine_.pool_.couldEverServe(placement_);
  bool const refused = refused_at_ == engine_.releases_;  // and nothing was given back since
  if (!may_exchange && (refused || engine_.pool_.growthPlans(placement_).empty())) return false;
  Engine::DeviceCall const call(engine_);
  if (!refused && askDevice(lock)) return true;
  if (may_exchange) {
    exchanged_at_ = engine_.pool_.timesEmptied();
    auto in_the_way = engine_.pool_.takeEmptyRegions();
    if (!in_the_way.empty()) {
      ++engine_.releases_;
      {
        Gap const gap(lock);
        engine_.releaseToDevice(std::move(in_the_way));
      }
      if (askDevice(lock)) return true;
    }
  }
  refused_at_ = engine_.releases_;
  return true;
}

bool Request::askDevice(Lock& lock) {
  engine_.cell_.mutex.assertHeld();
  for (GrowthPlan const& plan : engine_.pool_.growthPlans(placement_)) {
    std::optional<DeviceRegion> region;
    {
      Gap const gap(lock);  // the device may block
      sync::assertNoMutexHeld("DeviceMemory::tryAllocate");
      region = engine_.device_->tryAllocate(plan.nbytes, plan.domain);
    }
    if (!region) continue;
    engine_.addRegion(*region, plan.types);
    ++engine_.pressure_.growths;
    engine_.onFree();
    return true;
  }
  return false;
}

// ---------------------------------------------------------------------------- reclaiming

void Request::noteEvent() noexcept {
  engine_.cell_.mutex.assertHeld();
  if (met_exhaustion_) return;
  met_exhaustion_ = true;
  ++engine_.pressure_.events;
}

PressureEvent Request::describeEvent() const noexcept {
  engine_.cell_.mutex.assertHeld();
  FreeSpace const space = engine_.pool_.freeSpace(placement_);
  PressureEvent event{.requested = placement_.requested,
                      .free = space.free,
                      .largest_free = space.largest,
                      .total = space.total,
                      .memory_type = placement_.memory_type,
                      .attempt = std::max(failed_searches_, 1U),
                      .generation = own_generation_};
  if (placement_.domains.size() == 1) event.domain = placement_.domains.front();
  return event;
}

Generation Request::beginReclaim() {
  engine_.cell_.mutex.assertHeld();
  noteEvent();
  chain_ = engine_.chain_->snapshot();
  next_callback_ = 0;
  chain_did_its_work_ = true;
  ++reclaims_;
  ++engine_.pressure_.reclaims;
  own_generation_ = ++engine_.generation_;
  return own_generation_;
}

// The analysis cannot follow a lock that a callback may let go of and take again.
bool Request::runNextCallback(Lock& lock, CallbackLock mode) FLEXALLOC_NO_THREAD_SAFETY_ANALYSIS {
  while (next_callback_ < chain_->size() && !engine_.stop_reason_) {
    CallbackChain::EntryPointer const& entry = (*chain_)[next_callback_++];
    CallbackChain::Run const run(*engine_.chain_, *entry);
    if (!run.mayRun()) continue;

    PressureEvent const event = describeEvent();
    std::int64_t const freed_before = engine_.pool_.bytesFreed();
    TimePoint const began = engine_.options_.clock->now();
    ++engine_.pressure_.callbacks;
    /// However the callback ends: the mutex is held again, and what it did is counted.
    struct Account {
      ~Account() {
        lock.lock();
        request.engine_.cell_.mutex.runDeferred();
        auto& pressure = request.engine_.pressure_;
        auto const freed =
            static_cast<std::uint64_t>(request.engine_.pool_.bytesFreed() - freed_before);
        pressure.bytes_reclaimed += freed;
        request.bytes_reclaimed_ += freed;
        pressure.callback_time += request.engine_.options_.clock->now() - began;
      }
      Request& request;
      Lock& lock;
      std::int64_t freed_before;
      TimePoint began;
    } const account{*this, lock, freed_before, began};
    Callout const callout(engine_, lock);
    try {
      if (mode == CallbackLock::released) {
        lock.unlock();
        sync::assertNoMutexHeld("memory-pressure callback");
      }
      ReclaimResult result = entry->callback(lock, event);
      lock.lock();
      noteResult(std::move(result));
    } catch (abi::__forced_unwind&) {
      throw;  // the thread is being ended
    } catch (boost::thread_interrupted const&) {
      throw;
    } catch (AbortRequest const&) {
      throw;
    } catch (...) {
      lock.lock();
      ++engine_.pressure_.callback_errors;
      if (engine_.options_.callback_errors == CallbackErrors::propagate) throw;
      chain_did_its_work_ = false;
      // All are kept, though only the first is told: destroying one may run foreign code, which
      // must not happen under the mutex.
      callback_errors_.push_back(std::current_exception());
    }
    return true;
  }
  return false;
}

void Request::noteResult(ReclaimResult&& result) {
  engine_.cell_.mutex.assertHeld();
  if (result.outcome != ReclaimResult::Outcome::done) ++engine_.pressure_.callbacks_skipped;
  if (result.outcome == ReclaimResult::Outcome::not_possible) chain_did_its_work_ = false;
  if (result.reason) callback_reason_ = result.reason;
  if (result.note.empty()) return;
  if (!callback_note_.empty()) callback_note_ += "; ";
  callback_note_ += result.note;
}

// ---------------------------------------------------------------------------- waiting

WaitEnd Request::wait(Lock& lock, sync::Parker& parker, Duration at_most) {
  engine_.cell_.mutex.assertHeld();
  if (engine_.stop_reason_) return WaitEnd::stopped;
  Clock& clock = *engine_.options_.clock;
  TimePoint const now = clock.now();
  Duration const left = options_.may_wait ? max_wait_ - slept_ : Duration::zero();
  if (left <= Duration::zero()) {
    if (options_.may_wait) ++engine_.pressure_.timeouts;
    return WaitEnd::timed_out;
  }
  if (!std::exchange(has_slept_, true)) ++engine_.pressure_.waits;
  /// However the sleep ends: it is counted, with the mutex held again.
  struct Account {
    ~Account() {
      Duration const slept = clock.now() - began;
      request.slept_ += slept;
      request.engine_.pressure_.wait_time += slept;
    }
    Request& request;
    Clock& clock;
    TimePoint began;
  } const account{*this, clock, now};
  Gap const gap(lock);
  sync::noteWaitBegins("waiting for device memory");
  Duration const sleep = std::min(left, at_most);
  clock.park(parker, saturatingAdd(now, options_.poll ? std::min(sleep, kPollInterval) : sleep));
  sync::noteWaitEnds();
  if (options_.poll != nullptr) options_.poll(options_.poll_context);
  return WaitEnd::woken;
}

// ---------------------------------------------------------------------------- failing

FailureReason Request::reasonFor(Verdict verdict, FreeSpace const& space) const noexcept {
  engine_.cell_.mutex.assertHeld();
  switch (verdict) {
    case Verdict::timed_out:
      return FailureReason::timed_out;
    case Verdict::stopped:
      return engine_.stop_reason_.value_or(FailureReason::closed);
    case Verdict::served:
    case Verdict::exhausted:
      break;
  }
  if (engine_.stop_reason_) return *engine_.stop_reason_;
  if (!callback_errors_.empty()) return FailureReason::callback_failed;
  if (callback_reason_) return *callback_reason_;
  if (placement_.policy == PlacementPolicy::bind && space.largest >= placement_.requested) {
    return FailureReason::timed_out;  // there is a block, but it was others' turn until the end
  }
  return space.free >= placement_.requested ? FailureReason::fragmented : FailureReason::exhausted;
}

void Request::fail(FailureReason reason) {
  engine_.cell_.mutex.assertHeld();
  ++engine_.pressure_.failures[static_cast<std::size_t>(reason)];
  FreeSpace const space = engine_.pool_.freeSpace(placement_);
  OutOfMemoryInfo info{.requested = placement_.requested,
                       .free = space.free,
                       .largest_free = space.largest,
                       .total = space.total,
                       .memory_type = placement_.memory_type,
                       .reclaims = reclaims_,
                       .bytes_reclaimed = bytes_reclaimed_,
                       .waited_ms = std::chrono::duration<double, std::milli>(slept_).count(),
                       .reason = reason,
                       .note = callback_note_};
  if (placement_.domains.size() == 1) info.domain = placement_.domains.front();
  throw OutOfMemoryError(std::move(info),
                         callback_errors_.empty() ? nullptr : callback_errors_.front());
}

}  // namespace flex::detail
