// SPDX-License-Identifier: Apache-2.0
#pragma once
// One logical thread at a time: who runs next is a choice that somebody else makes.

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <boost/container/static_vector.hpp>

namespace flex::interleave {

using Duration = std::chrono::nanoseconds;
using TimePoint = std::chrono::time_point<std::chrono::steady_clock, Duration>;

inline constexpr std::size_t kMaxThreads = 5;

/// What a thread is about to do to an object.
enum class Op : std::uint8_t {
  begin,
  lock,
  try_lock,
  unlock,
  wait,
  wake,
  notify,
  load,
  store,
  read_clock,
  step,
  interrupt
};

/// The identity and the history of something that threads synchronise on. The history is a hash of
/// the partial order of all that was done to it, so that two schedules which differ only in the
/// order of unrelated steps are recognised as one.
class Object {
 public:
  Object() noexcept;
  explicit Object(char const* name) noexcept : Object() { name_ = name; }
  Object(Object const&) = delete;
  Object& operator=(Object const&) = delete;
  ~Object();

  void rename(char const* name) noexcept { name_ = name; }

 private:
  friend class Scheduler;

  static constexpr std::uint32_t kAlive = 0xA11BE000U;
  static constexpr std::uint32_t kDestroyed = 0xDEADDEADU;

  std::uint32_t magic_ = kAlive;
  std::uint32_t number_ = 0;  ///< for people
  std::uint64_t epoch_ = 0;   ///< the run that the rest belongs to
  std::uint64_t id_ = 0;
  std::uint64_t last_write_ = 0;
  std::uint64_t reads_ = 0;
  char const* name_ = nullptr;
};

/// A mutex as the scheduler sees it.
struct MutexCore {
  static constexpr int kFree = -1;
  int owner = kFree;  ///< index of a thread
  Object object;
};

/// A flag whose last store may not have arrived at other threads yet, as in a store buffer.
struct LateCore {
  explicit LateCore(bool value) noexcept : arrived(value), stored(value) {}
  bool arrived;     ///< what the others see
  bool stored;      ///< what the thread sees that stored it
  int writer = -1;  ///< of a store that has not arrived
  Object object;
};

/// One way to go on.
struct Option {
  enum class Kind : std::uint8_t {
    run,       ///< let the thread do what it is about to do
    time_out,  ///< let time pass until the thread's sleep ends
    spurious,  ///< let the thread's sleep end without a cause
    arrives,   ///< let what another thread wrote arrive before the thread reads
  };
  std::uint8_t thread = 0;
  Kind kind = Kind::run;
  std::uint8_t cost = 0;  ///< 1: a preemption, or what need not happen yet

  friend bool operator==(Option const&, Option const&) = default;
};
using Options = boost::container::static_vector<Option, 3 * kMaxThreads>;

/// Whoever decides. Asked only where there is more than one way; the first one is the default: go
/// on with the running thread, or with the lowest one that can run.
class Chooser {
 public:
  Chooser() = default;
  Chooser(Chooser const&) = delete;
  Chooser& operator=(Chooser const&) = delete;
  virtual ~Chooser() = default;

  /// `state` names what has happened so far, up to the order of unrelated steps.
  [[nodiscard]] virtual std::size_t choose(Options const& options, std::uint64_t state) = 0;
};

/// What may happen.
struct Faults {
  bool time_outs = true;   ///< a sleep ends early
  bool spurious = true;    ///< a sleep ends without a cause
  bool ownership = false;  ///< threads may own mutexes (flex/sync/biased_mutex.hpp)
};

struct Failure {
  std::string kind;  ///< one or two words: "deadlock", "lost wake-up", ...
  std::string text;
};

/// Runs logical threads, each on a stack of its own, one at a time.
///
/// Confined: everything in this program happens on one thread of the operating system.
class Scheduler {
 public:
  using Body = std::function<void()>;

  [[nodiscard]] static Scheduler& instance();

  // --- a run

  /// Forgets the last run. Requires: it came to its end.
  void reset();
  void allow(Faults const& faults) noexcept { faults_ = faults; }
  [[nodiscard]] Faults const& faults() const noexcept { return faults_; }
  void spawn(Body body);
  /// Called when nobody can run unless time passes, before it does.
  void onQuiescence(Body check) { quiescence_ = std::move(check); }
  /// Called after every step of a thread, if set. Slow.
  void onStep(Body check) { step_check_ = std::move(check); }
  /// Runs all threads to their ends. False: something failed; the program can run no further
  /// threads.
  [[nodiscard]] bool run(Chooser& chooser);
  [[nodiscard]] Failure const& failure() const noexcept { return failure_; }
  /// The choices of the run that were not the default, as text.
  [[nodiscard]] std::string schedule() const;
  [[nodiscard]] std::uint64_t steps() const noexcept { return steps_; }
  [[nodiscard]] std::uint64_t choices() const noexcept { return choices_; }
  void printSteps(bool on) noexcept { print_ = on; }

  // --- for what happens inside a run

  /// Reports a failure. Inside a thread it does not return.
  void fail(std::string kind, std::string text);
  [[nodiscard]] bool inThread() const noexcept { return current_ != kNobody; }
  /// The running thread, from 0; -1 outside any.
  [[nodiscard]] int self() const noexcept { return current_; }
  [[nodiscard]] bool finished(int thread) noexcept;
  [[nodiscard]] bool asleep(int thread) noexcept;
  void interrupt(int thread);
  /// A line of the printed trace.
  void remark(std::string const& text);

  // --- for the synchronisation types

  void lock(MutexCore& mutex);
  [[nodiscard]] bool tryLock(MutexCore& mutex);
  void unlock(MutexCore& mutex);
  /// `at_most` < 0: for ever.
  void wait(Object& condition, MutexCore& mutex, Duration at_most);
  void notifyAll(Object& condition);
  void access(Object& object, Op op);
  [[nodiscard]] bool loadLate(LateCore& flag);
  void storeLate(LateCore& flag, bool value);
  /// What has been stored late arrives.
  void barrier();
  /// The same, and another thread runs next, if one can.
  void yield();
  [[nodiscard]] TimePoint now();
  void interruptionPoint();
  void disableInterruption(int change) noexcept;

  Scheduler(Scheduler const&) = delete;
  Scheduler& operator=(Scheduler const&) = delete;

 private:
  friend class Object;
  struct Context;
  struct Thread;
  static constexpr int kNobody = -1;

  Scheduler();
  ~Scheduler() = delete;

  [[nodiscard]] Thread& threadAt(int index) const noexcept;
  [[nodiscard]] Context& contextOf(int index) const noexcept;
  void point(Op op, Object& object, MutexCore* wants = nullptr);
  void record(Op op, Object& object, bool write, std::uint64_t result = 0);
  void reschedule(bool yielding = false);
  void take(Option const& option);
  void switchTo(int thread);
  void identify(Object& object);
  [[nodiscard]] bool enabled(Thread const& thread) const noexcept;
  [[nodiscard]] bool asleepAndMayRelock(Thread const& thread) const noexcept;
  [[nodiscard]] Options findOptions(bool yielding);
  [[nodiscard]] Option const& choose(Options const& options, std::uint64_t state);
  /// What `writer` has stored late arrives; kNobody: what all have.
  void arrive(int writer) noexcept;
  [[nodiscard]] std::uint64_t stateKey() const noexcept;
  void quiescent();
  [[noreturn]] void deadlock();
  [[nodiscard]] std::string describeThreads() const;
  [[nodiscard]] static std::string nameOf(Object const& object);
  [[noreturn]] void threadMain(Thread& thread);

  std::vector<std::unique_ptr<Thread>> threads_;
  std::size_t count_ = 0;  ///< threads of this run
  int current_ = kNobody;
  Chooser* chooser_ = nullptr;
  Faults faults_;
  Body quiescence_;
  Body step_check_;
  Failure failure_;
  bool failed_ = false;
  bool print_ = false;
  std::uint64_t epoch_ = 1;
  std::uint64_t steps_ = 0;
  std::uint64_t choices_ = 0;
  std::uint64_t objects_ = 0;
  TimePoint now_{};
  Object clock_{"clock"};
  boost::container::static_vector<LateCore*, 8> late_;  ///< whose stores have not arrived
  Object late_stores_{"late stores"};
  struct Deviation {
    std::uint64_t choice;
    Option option;
  };
  std::vector<Deviation> deviations_;
  std::unique_ptr<Context> main_;
  Context* left_ = nullptr;  ///< by the last switch
};

/// Splits a schedule's text. Throws std::invalid_argument.
struct Deviation {
  std::uint64_t choice = 0;
  Option option;
};
[[nodiscard]] std::vector<Deviation> parseSchedule(std::string const& text);

}  // namespace flex::interleave
