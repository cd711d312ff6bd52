// SPDX-License-Identifier: Apache-2.0
#include "scheduler.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <utility>

#include <boost/context/fiber.hpp>
#include <boost/context/protected_fixedsize_stack.hpp>
#include <boost/thread/exceptions.hpp>
#include <cxxabi.h>
#include <fmt/format.h>

#include "host_memory.hpp"

// The bounds of the section that fiber_locals.hpp fills; the linker makes them.
extern "C" {
extern char __start_fiber_locals[] __attribute__((weak));
extern char __stop_fiber_locals[] __attribute__((weak));
}

namespace flex::interleave {
namespace {

constexpr std::size_t kStackBytes = 256 * 1024;
constexpr std::uint64_t kMaxSteps = 20'000;
constexpr std::size_t kMaxLocals = 128;

std::uint64_t mix(std::uint64_t a, std::uint64_t b) noexcept {
  std::uint64_t x =
      (a ^ (b + 0x9E3779B97F4A7C15ULL + (a << 6U) + (a >> 2U))) * 0xBF58476D1CE4E5B9ULL;
  x ^= x >> 29U;
  x *= 0x94D049BB133111EBULL;
  return x ^ (x >> 32U);
}

std::size_t localsSize() noexcept {
  return static_cast<std::size_t>(__stop_fiber_locals - __start_fiber_locals);
}

// What the C++ runtime keeps per thread about exceptions in flight.
struct ExceptionState {
  void* caught = nullptr;
  unsigned int uncaught = 0;
};

ExceptionState& exceptionState() noexcept {
  return *reinterpret_cast<ExceptionState*>(abi::__cxa_get_globals());
}

char const* verb(Op op) noexcept {
  switch (op) {
    case Op::begin:
      return "begins";
    case Op::lock:
      return "locks";
    case Op::try_lock:
      return "tries to lock";
    case Op::unlock:
      return "unlocks";
    case Op::wait:
      return "sleeps at";
    case Op::wake:
      return "wakes at";
    case Op::notify:
      return "notifies";
    case Op::load:
      return "reads";
    case Op::store:
      return "writes";
    case Op::read_clock:
      return "reads";
    case Op::step:
      return "passes";
    case Op::interrupt:
      return "interrupts";
  }
  return "?";
}

template <class Index>
char letter(Index thread) noexcept {
  return thread < Index{} ? '-' : static_cast<char>('A' + static_cast<int>(thread));
}

}  // namespace

// ---------------------------------------------------------------------------- threads

// What goes with a stack.
struct Scheduler::Context {
  boost::context::fiber fiber;  ///< empty while it runs
  ExceptionState exceptions;
  int untracked = 0;
  std::array<char, kMaxLocals> locals{};
};

struct Scheduler::Thread : Context {
  enum class State : std::uint8_t { unused, ready, asleep, done };

  Body body;
  State state = State::unused;
  MutexCore* wants = nullptr;  ///< cannot go on before this is free
  Op op = Op::begin;           ///< what it is about to do, for people
  Object const* object = nullptr;

  Object* condition = nullptr;  ///< while asleep
  bool notified = false;
  bool bounded = false;
  TimePoint until{};

  bool interrupted = false;
  int interruption_disabled = 0;
  Object interruption{"interruption"};

  std::uint64_t hash = 0;
  std::uint64_t objects = 0;
};

// ---------------------------------------------------------------------------- objects

Object::Object() noexcept = default;

Object::~Object() { magic_ = kDestroyed; }

void Scheduler::identify(Object& object) {
  if (object.magic_ != Object::kAlive) {
    fail("use after destruction",
         fmt::format("thread {} uses a lock, condition or atomic that is gone", letter(current_)));
  }
  if (object.epoch_ == epoch_) return;
  object.epoch_ = epoch_;
  object.number_ = static_cast<std::uint32_t>(++objects_);
  object.last_write_ = 0;
  object.reads_ = 0;
  // Named by who used it first: the same in all schedules that differ only in unrelated steps.
  std::uint64_t& counter = current_ == kNobody ? objects_ : threadAt(current_).objects;
  object.id_ = mix(static_cast<std::uint64_t>(current_ + 2), ++counter);
}

std::string Scheduler::nameOf(Object const& object) {
  return object.name_ != nullptr ? object.name_ : fmt::format("object {}", object.number_);
}

// ---------------------------------------------------------------------------- stacks

Scheduler::Thread& Scheduler::threadAt(int index) const noexcept {
  return *threads_[static_cast<std::size_t>(index)];
}

Scheduler::Context& Scheduler::contextOf(int index) const noexcept {
  return index == kNobody ? *main_ : threadAt(index);
}

Scheduler& Scheduler::instance() {
  static auto* const scheduler = new Scheduler;  // for good: its threads never end
  return *scheduler;
}

Scheduler::Scheduler() : main_(std::make_unique<Context>()) {
  for (std::size_t i = 0; i < kMaxThreads; ++i) {
    Thread& thread = *threads_.emplace_back(std::make_unique<Thread>());
    thread.fiber = boost::context::fiber(
        std::allocator_arg, boost::context::protected_fixedsize_stack(kStackBytes),
        [this, &thread](boost::context::fiber&& before) -> boost::context::fiber {
          left_->fiber = std::move(before);
          threadMain(thread);
        });
  }
}

// Never ends: a stack is used for one body after the other.
void Scheduler::threadMain(Thread& thread) {
  for (;;) {
    try {
      thread.body();
    } catch (std::exception const& error) {
      fail("uncaught exception", error.what());
    } catch (boost::thread_interrupted const&) {
      fail("uncaught exception", "boost::thread_interrupted");
    } catch (...) {
      fail("uncaught exception", "of an unknown type");
    }
    thread.body = nullptr;
    HostMemory::Untracked const untracked;
    if (print_) remark("ends");
    thread.state = Thread::State::done;
    thread.wants = nullptr;
    thread.object = nullptr;
    if (std::all_of(threads_.begin(), threads_.begin() + static_cast<std::ptrdiff_t>(count_),
                    [](auto const& other) { return other->state == Thread::State::done; })) {
      switchTo(kNobody);
    } else {
      reschedule();
    }
  }
}

void Scheduler::switchTo(int to) {
  if (current_ == to) return;
  Context& own = contextOf(current_);
  Context& next = contextOf(to);
  own.untracked = std::exchange(HostMemory::depth(), next.untracked);
  own.exceptions = std::exchange(exceptionState(), next.exceptions);
  std::memcpy(own.locals.data(), __start_fiber_locals, localsSize());
  std::memcpy(__start_fiber_locals, next.locals.data(), localsSize());
  current_ = to;
  left_ = &own;
  boost::context::fiber before = std::move(next.fiber).resume();
  left_->fiber = std::move(before);
}

// ---------------------------------------------------------------------------- a run

void Scheduler::reset() {
  if (localsSize() > kMaxLocals) throw std::logic_error("kMaxLocals is too small");
  ++epoch_;
  count_ = 0;
  faults_ = {};
  quiescence_ = nullptr;
  step_check_ = nullptr;
  failed_ = false;
  failure_ = {};
  steps_ = choices_ = objects_ = 0;
  now_ = TimePoint(std::chrono::hours(1));
  arrive(kNobody);
  deviations_.clear();
}

void Scheduler::spawn(Body body) {
  if (count_ == kMaxThreads) throw std::logic_error("too many threads");
  Thread& thread = *threads_[count_++];
  thread.body = std::move(body);
  thread.state = Thread::State::ready;
  thread.wants = nullptr;
  thread.op = Op::begin;
  thread.object = nullptr;
  thread.interrupted = false;
  thread.interruption_disabled = 0;
  thread.exceptions = {};
  std::memcpy(thread.locals.data(), __start_fiber_locals,
              localsSize());  // nobody is inside anything
  thread.hash = mix(count_, 77);
  thread.objects = 0;
}

bool Scheduler::run(Chooser& chooser) {
  HostMemory::Untracked const untracked;
  chooser_ = &chooser;
  if (count_ != 0) reschedule();
  chooser_ = nullptr;
  return !failed_;
}

void Scheduler::fail(std::string kind, std::string text) {
  HostMemory::Untracked const untracked;
  if (!failed_) {
    failed_ = true;
    failure_ = {std::move(kind), std::move(text)};
  }
  if (inThread()) {
    switchTo(kNobody);
    std::abort();  // nobody comes back here
  }
}

bool Scheduler::finished(int thread) noexcept {
  if (inThread()) threadAt(current_).hash = mix(threadAt(current_).hash, threadAt(thread).hash);
  return threadAt(thread).state == Thread::State::done;
}

// The answer becomes part of the asking thread's history.
bool Scheduler::asleep(int thread) noexcept {
  if (inThread()) threadAt(current_).hash = mix(threadAt(current_).hash, threadAt(thread).hash);
  return threadAt(thread).state == Thread::State::asleep;
}

void Scheduler::remark(std::string const& text) {
  if (!print_) return;
  HostMemory::Untracked const untracked;
  std::size_t const column = current_ == kNobody ? 0 : static_cast<std::size_t>(current_);
  fmt::print("{:5}  {}{}  {}\n", steps_, std::string(column * 4, ' '), letter(current_), text);
  std::fflush(stdout);
}

// ---------------------------------------------------------------------------- choosing

bool Scheduler::asleepAndMayRelock(Thread const& thread) const noexcept {
  return thread.state == Thread::State::asleep && thread.wants->owner == MutexCore::kFree;
}

bool Scheduler::enabled(Thread const& thread) const noexcept {
  switch (thread.state) {
    case Thread::State::ready:
      return thread.wants == nullptr || thread.wants->owner == MutexCore::kFree;
    case Thread::State::asleep:
      return thread.wants->owner == MutexCore::kFree &&
             (thread.notified || (thread.bounded && thread.until <= now_) ||
              (thread.interrupted && thread.interruption_disabled == 0));
    case Thread::State::unused:
    case Thread::State::done:
      break;
  }
  return false;
}

Options Scheduler::findOptions(bool yielding) {
  Options options;
  bool const can_go_on = current_ != kNobody && enabled(threadAt(current_));
  bool const own_turn = can_go_on && !yielding;
  if (own_turn) options.push_back({static_cast<std::uint8_t>(current_), Option::Kind::run, 0});
  std::uint8_t const cost = own_turn ? 1 : 0;
  for (std::size_t i = 0; i < count_; ++i) {
    if (static_cast<int>(i) == current_ || !enabled(*threads_[i])) continue;
    options.push_back({static_cast<std::uint8_t>(i), Option::Kind::run, cost});
  }
  if (options.empty() && can_go_on) {
    options.push_back({static_cast<std::uint8_t>(current_), Option::Kind::run, 0});
  }
  if (options.empty()) return options;
  for (std::size_t i = 0; i < count_; ++i) {
    Thread const& thread = *threads_[i];
    if (!asleepAndMayRelock(thread) || enabled(thread)) continue;
    if (faults_.time_outs && thread.bounded) {
      options.push_back({static_cast<std::uint8_t>(i), Option::Kind::time_out, 1});
    }
    if (faults_.spurious) {
      options.push_back({static_cast<std::uint8_t>(i), Option::Kind::spurious, 1});
    }
  }
  return options;
}

std::uint64_t Scheduler::stateKey() const noexcept {
  std::uint64_t key = static_cast<std::uint64_t>(current_ + 1);
  for (std::size_t i = 0; i < count_; ++i) key = mix(key, threads_[i]->hash);
  return mix(key, clock_.epoch_ == epoch_ ? clock_.last_write_ : 0);
}

void Scheduler::reschedule(bool yielding) {
  if (++steps_ > kMaxSteps) {
    fail("livelock", fmt::format("no end after {} steps\n{}", kMaxSteps, describeThreads()));
  }
  Options options = findOptions(yielding);
  if (options.empty()) {
    TimePoint earliest = TimePoint::max();
    for (std::size_t i = 0; i < count_; ++i) {
      Thread const& thread = *threads_[i];
      if (asleepAndMayRelock(thread) && thread.bounded) earliest = std::min(earliest, thread.until);
    }
    if (earliest != TimePoint::max()) quiescent();
    for (std::size_t i = 0; i < count_; ++i) {
      Thread const& thread = *threads_[i];
      if (asleepAndMayRelock(thread) && thread.bounded && thread.until == earliest) {
        options.push_back({static_cast<std::uint8_t>(i), Option::Kind::time_out, 0});
      }
    }
    if (options.empty()) deadlock();
  }
  take(options.size() > 1 ? choose(options, stateKey()) : options.front());
}

Option const& Scheduler::choose(Options const& options, std::uint64_t state) {
  std::uint64_t const choice = choices_++;
  std::size_t const chosen = chooser_->choose(options, state);
  if (chosen >= options.size()) {
    fail("schedule does not fit", fmt::format("choice {} is not possible here", choice));
  }
  if (chosen != 0) deviations_.push_back({choice, options[chosen]});
  return options[chosen];
}

void Scheduler::take(Option const& option) {
  Thread& thread = *threads_[option.thread];
  if (option.kind != Option::Kind::run) {
    if (option.kind == Option::Kind::time_out && thread.until > now_) {
      now_ = thread.until;
      identify(clock_);
      clock_.last_write_ = mix(clock_.last_write_, mix(thread.hash, clock_.reads_));
      clock_.reads_ = 0;
    }
    thread.hash = mix(thread.hash, static_cast<std::uint64_t>(option.kind));
    if (print_) {
      int const before = std::exchange(current_, option.thread);
      remark(option.kind == Option::Kind::time_out ? "its sleep times out"
                                                   : "wakes without a cause");
      current_ = before;
    }
  }
  switchTo(option.thread);
}

// Who sleeps may be asked for; nobody runs meanwhile.
void Scheduler::quiescent() {
  if (!quiescence_) return;
  int const before = std::exchange(current_, kNobody);
  quiescence_();
  current_ = before;
  if (failed_) {
    if (inThread()) switchTo(kNobody);
  }
}

void Scheduler::deadlock() {
  fail("deadlock", "nobody can run\n" + describeThreads());
  std::abort();
}

std::string Scheduler::describeThreads() const {
  std::string text;
  for (std::size_t i = 0; i < count_; ++i) {
    Thread const& thread = *threads_[i];
    text += fmt::format("  {}: ", letter(i));
    if (thread.state == Thread::State::done) {
      text += "has ended\n";
      continue;
    }
    if (thread.state == Thread::State::asleep) {
      text += fmt::format("sleeps at {}{}", nameOf(*thread.condition),
                          thread.bounded ? " with a bound" : "");
    } else {
      text += fmt::format("{} {}", verb(thread.op),
                          thread.object != nullptr ? nameOf(*thread.object) : "");
    }
    if (thread.wants != nullptr && thread.wants->owner != MutexCore::kFree) {
      text += fmt::format(", which {} holds", letter(thread.wants->owner));
    }
    text += '\n';
  }
  return text;
}

// ---------------------------------------------------------------------------- steps

void Scheduler::point(Op op, Object& object, MutexCore* wants) {
  Thread& self = threadAt(current_);
  identify(object);
  self.op = op;
  self.object = &object;
  self.wants = wants;
  reschedule();
  self.wants = nullptr;
  if (object.magic_ != Object::kAlive) identify(object);  // it went away meanwhile
  if (print_) remark(fmt::format("{} {}", verb(op), nameOf(object)));
}

void Scheduler::record(Op op, Object& object, bool write, std::uint64_t result) {
  if (current_ == kNobody) return;
  Thread& self = threadAt(current_);
  identify(object);
  std::uint64_t hash = mix(self.hash, mix(object.id_, object.last_write_));
  hash = mix(hash, static_cast<std::uint64_t>(op) << 8U | result);
  if (write) hash = mix(hash, object.reads_);
  self.hash = hash;
  if (write) {
    object.last_write_ = hash;
    object.reads_ = 0;
  } else {
    object.reads_ += mix(hash, 5);
  }
}

void Scheduler::lock(MutexCore& mutex) {
  HostMemory::Untracked const untracked;
  if (!inThread()) {
    identify(mutex.object);
    if (mutex.owner != MutexCore::kFree) fail("deadlock", "an oracle meets a held lock");
    mutex.owner = kMaxThreads;
    return;
  }
  if (mutex.owner == current_) {
    fail("self-deadlock",
         fmt::format("{} locks {} which it holds", letter(current_), nameOf(mutex.object)));
  }
  point(Op::lock, mutex.object, &mutex);
  mutex.owner = current_;
  record(Op::lock, mutex.object, true);
}

bool Scheduler::tryLock(MutexCore& mutex) {
  HostMemory::Untracked const untracked;
  if (!inThread()) {
    identify(mutex.object);
    if (mutex.owner != MutexCore::kFree) return false;
    mutex.owner = kMaxThreads;
    return true;
  }
  point(Op::try_lock, mutex.object);
  bool const free = mutex.owner == MutexCore::kFree;
  if (free) mutex.owner = current_;
  record(Op::try_lock, mutex.object, true, free ? 1 : 0);
  if (print_ && !free) remark("  in vain");
  return free;
}

void Scheduler::unlock(MutexCore& mutex) {
  HostMemory::Untracked const untracked;
  if (!inThread()) {
    identify(mutex.object);
    mutex.owner = MutexCore::kFree;
    return;
  }
  point(Op::unlock, mutex.object);
  if (mutex.owner != current_) fail("misuse", "a thread unlocks a mutex that it does not hold");
  arrive(current_);  // before the unlock
  mutex.owner = MutexCore::kFree;
  record(Op::unlock, mutex.object, true);
}

void Scheduler::wait(Object& condition, MutexCore& mutex, Duration at_most) {
  HostMemory::Untracked const untracked;
  if (!inThread()) {
    fail("deadlock", "an oracle would sleep");
    return;
  }
  point(Op::wait, condition);
  interruptionPoint();
  if (mutex.owner != current_) fail("misuse", "a thread waits without the mutex");
  Thread& self = threadAt(current_);
  record(Op::wait, condition, true);
  arrive(current_);
  mutex.owner = MutexCore::kFree;
  record(Op::unlock, mutex.object, true);
  self.state = Thread::State::asleep;
  self.wants = &mutex;
  self.condition = &condition;
  self.notified = false;
  self.bounded = at_most >= Duration::zero();
  if (self.bounded) {
    self.until = at_most > TimePoint::max() - now_ ? TimePoint::max() : now_ + at_most;
    record(Op::read_clock, clock_, false);
  }
  reschedule();
  self.state = Thread::State::ready;
  self.wants = nullptr;
  mutex.owner = current_;
  record(Op::wake, condition, true);
  record(Op::lock, mutex.object, true);
  if (print_) remark(fmt::format("wakes, locks {}", nameOf(mutex.object)));
  interruptionPoint();
}

void Scheduler::notifyAll(Object& condition) {
  if (!inThread()) return;
  HostMemory::Untracked const untracked;
  point(Op::notify, condition);
  record(Op::notify, condition, true);
  for (std::size_t i = 0; i < count_; ++i) {
    Thread& thread = *threads_[i];
    if (thread.state == Thread::State::asleep && thread.condition == &condition)
      thread.notified = true;
  }
}

void Scheduler::access(Object& object, Op op) {
  if (!inThread()) return;
  HostMemory::Untracked const untracked;
  point(op, object);
  record(op, object, op != Op::load);
}

// ---------------------------------------------------------------------------- late stores

// Read: the only moment at which it matters whether a store has arrived is when somebody looks.
bool Scheduler::loadLate(LateCore& flag) {
  if (!inThread()) return flag.stored;
  HostMemory::Untracked const untracked;
  point(Op::load, flag.object);
  if (flag.writer != kNobody && flag.writer != current_) {
    auto const self = static_cast<std::uint8_t>(current_);
    Options const options{{self, Option::Kind::run, 0}, {self, Option::Kind::arrives, 1}};
    if (choose(options, mix(stateKey(), flag.object.id_)).kind == Option::Kind::arrives) {
      if (print_) remark("  what was stored arrives");
      arrive(flag.writer);
    }
  }
  bool const value = flag.writer == current_ ? flag.stored : flag.arrived;
  record(Op::load, flag.object, false, value ? 1 : 0);
  return value;
}

// Written: the order of late stores and barriers matters, on whatever flags.
void Scheduler::storeLate(LateCore& flag, bool value) {
  if (!inThread()) {
    flag.stored = flag.arrived = value;
    return;
  }
  HostMemory::Untracked const untracked;
  point(Op::store, flag.object);
  record(Op::store, flag.object, true);
  identify(late_stores_);
  record(Op::store, late_stores_, true);
  if (flag.writer != kNobody && flag.writer != current_) {
    fail("misuse", "a flag of one writer has two");
  }
  flag.stored = value;
  if (flag.writer == kNobody) late_.push_back(&flag);
  flag.writer = current_;
}

void Scheduler::arrive(int writer) noexcept {
  auto const last = std::remove_if(late_.begin(), late_.end(), [writer](LateCore* flag) {
    if (writer != kNobody && flag->writer != writer) return false;
    flag->arrived = flag->stored;
    flag->writer = kNobody;
    return true;
  });
  late_.erase(last, late_.end());
}

void Scheduler::barrier() {
  if (!inThread()) return;
  access(late_stores_, Op::step);
  arrive(kNobody);
}

void Scheduler::yield() {
  if (!inThread()) return;
  HostMemory::Untracked const untracked;
  identify(late_stores_);
  arrive(kNobody);
  record(Op::step, late_stores_, true);
  threadAt(current_).op = Op::step;
  threadAt(current_).object = &late_stores_;
  reschedule(true);
}

TimePoint Scheduler::now() {
  if (!inThread()) return now_;
  HostMemory::Untracked const untracked;
  // Only the end of a sleep makes time pass: without a sleeper the moment of reading is no matter.
  bool const may_pass = std::any_of(
      threads_.begin(), threads_.begin() + static_cast<std::ptrdiff_t>(count_),
      [](auto const& thread) { return thread->state == Thread::State::asleep && thread->bounded; });
  if (may_pass) point(Op::read_clock, clock_);
  record(Op::read_clock, clock_, false);
  return now_;
}

// ---------------------------------------------------------------------------- interruption

void Scheduler::interrupt(int thread) {
  HostMemory::Untracked const untracked;
  Thread& other = threadAt(thread);
  point(Op::interrupt, other.interruption);
  record(Op::interrupt, other.interruption, true);
  other.interrupted = true;
}

void Scheduler::interruptionPoint() {
  if (!inThread()) return;
  Thread& self = threadAt(current_);
  record(Op::load, self.interruption, false);
  if (!self.interrupted || self.interruption_disabled != 0) return;
  self.interrupted = false;
  throw boost::thread_interrupted();
}

void Scheduler::disableInterruption(int change) noexcept {
  if (inThread()) threadAt(current_).interruption_disabled += change;
}

// ---------------------------------------------------------------------------- schedules as text

std::string Scheduler::schedule() const {
  std::string text;
  for (Deviation const& deviation : deviations_) {
    if (!text.empty()) text += '-';
    text += fmt::format("{}{}", deviation.choice, letter(deviation.option.thread));
    if (deviation.option.kind == Option::Kind::time_out) text += 't';
    if (deviation.option.kind == Option::Kind::spurious) text += 's';
    if (deviation.option.kind == Option::Kind::arrives) text += 'a';
  }
  return text.empty() ? "default" : text;
}

std::vector<Deviation> parseSchedule(std::string const& text) {
  std::vector<Deviation> deviations;
  if (text == "default") return deviations;
  char const* at = text.c_str();
  while (*at != '\0') {
    char* end = nullptr;
    Deviation deviation{.choice = std::strtoull(at, &end, 10), .option = {}};
    if (end == at || *end < 'A' || *end >= static_cast<char>('A' + kMaxThreads)) {
      throw std::invalid_argument("a schedule is a row of <choice><thread>[t|s|a], joined by '-'");
    }
    deviation.option.thread = static_cast<std::uint8_t>(*end++ - 'A');
    if (*end == 't') deviation.option.kind = Option::Kind::time_out;
    if (*end == 's') deviation.option.kind = Option::Kind::spurious;
    if (*end == 'a') deviation.option.kind = Option::Kind::arrives;
    if (*end == 't' || *end == 's' || *end == 'a') ++end;
    if (*end == '-') ++end;
    deviations.push_back(deviation);
    at = end;
  }
  return deviations;
}

}  // namespace flex::interleave
