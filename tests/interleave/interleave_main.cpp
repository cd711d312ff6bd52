// SPDX-License-Identifier: Apache-2.0
// The command line: explores scenarios, looks for known faults, replays schedules.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>

#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <flex/sync/lock_rules.hpp>

#include "explorer.hpp"
#include "host_memory.hpp"
#include "interpreter_model.hpp"
#include "mutants.hpp"
#include "scenario.hpp"

namespace flex::interleave {

int active_mutant = 0;

namespace {

constexpr char kUsage[] =
    R"(interleave --list                     scenarios (and mutants, in the build that has some)
interleave --all [--jobs N]           explores every scenario; exit status 1 if one fails
interleave --scenario NAME [--trace]  explores one; with --trace, prints the steps to a failure
interleave --scenario NAME --schedule STR [--trace]   runs one schedule again
interleave --mutants                  every mutant must be found
interleave --mutant NAME ...          switches one on for any of the above

  --bound N      deviations from the default schedule (3)
  --seconds S    at most, per scenario (30; large scenarios with --all: 2)
  --random N     N random schedules instead of depth first; --seed S (1)
  --at-least N   with --all: fails if fewer schedules were run in total
)";

struct Mutant {
  int number;
  std::string name;
  std::string about;
  std::string scenarios;
};

std::vector<Mutant> const& mutants() {
  static std::vector<Mutant> const all = {
#if defined(FLEXALLOC_INTERLEAVE_MUTANTS)
#include "mutant_table.inc"
#endif
  };
  return all;
}

struct Settings {
  std::string scenario;
  std::string schedule;
  std::string mutant;
  unsigned bound = 3;
  double seconds = 30;
  double large_seconds = 2;
  std::uint64_t seed = 1;
  std::uint64_t random = 0;
  std::uint64_t at_least = 0;
  unsigned jobs = 1;
  bool trace = false;
  bool list = false;
  bool all = false;
  bool find_mutants = false;
};

/// What became of a row of runs. Plain text on its way between processes.
struct Result {
  std::uint64_t runs = 0;
  std::uint64_t longest = 0;  ///< steps
  bool complete = false;
  double seconds = 0;
  std::string how;
  Failure failure;
  std::string schedule;

  [[nodiscard]] bool found() const noexcept { return !failure.kind.empty(); }

  [[nodiscard]] std::string pack() const {
    return fmt::format("{} {} {} {}\n{}\n{}\n{}\n{}", runs, longest, complete ? 1 : 0, seconds, how,
                       failure.kind, schedule, failure.text);
  }
  static Result unpack(std::string const& text) {
    Result result;
    std::istringstream in(text);
    in >> result.runs >> result.longest >> result.complete >> result.seconds;
    in.ignore();
    std::getline(in, result.how);
    std::getline(in, result.failure.kind);
    std::getline(in, result.schedule);
    std::getline(in, result.failure.text, '\0');
    return result;
  }
};

// ---------------------------------------------------------------------------- what goes wrong

bool lock_rules = true;
int answer_to = -1;  ///< where the process that waits for us listens, if any

void onBrokenRule(sync::LockRule rule, char const* where) noexcept {
  static constexpr char const* kNames[] = {
      "R1 broken: waits attached to the interpreter",
      "R2 broken: attaches with the mutex held",
      "R3 broken: foreign code with the mutex held",
      "state used without the mutex",
  };
  if (lock_rules) Scheduler::instance().fail(kNames[static_cast<int>(rule)], where);
}

void answer(Result const& result) {
  std::string const text = result.pack();
  if (::write(answer_to, text.data(), text.size()) < 0) std::_Exit(3);
}

// A run that dies says by which schedule.
void onSignal(int number) {
  Result result;
  result.failure = {fmt::format("signal {}", number), strsignal(number)};
  result.schedule = Scheduler::instance().schedule();
  if (answer_to >= 0) {
    answer(result);
  } else {
    fmt::print("failure: {} ({})\nschedule: {}\n", result.failure.kind, result.failure.text,
               result.schedule);
    std::fflush(stdout);
  }
  std::_Exit(1);
}

void catchSignals() {
  static char signal_stack[65536];
  stack_t stack{};
  stack.ss_sp = signal_stack;
  stack.ss_size = sizeof signal_stack;
  sigaltstack(&stack, nullptr);
  for (int const number : {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL}) {
    struct sigaction action {};
    action.sa_handler = &onSignal;
    action.sa_flags = SA_ONSTACK;
    sigaction(number, &action, nullptr);
  }
}

// ---------------------------------------------------------------------------- running

/// One run. False: something failed, and this process can run no further one.
bool runOnce(Scenario const& scenario, Search& search, Result& result) {
  Scheduler& scheduler = Scheduler::instance();
  scheduler.reset();
  HostMemory::beginRun();
  std::unique_ptr<AnyWorld> world = scenario.make();
  lock_rules = world->hasLockRules();
  scheduler.onQuiescence([&] { world->checkSleepers(); });
  bool passed = scheduler.run(search);
  result.longest = std::max(result.longest, scheduler.steps());
  ++result.runs;
  if (passed) {
    world->finish();
    world.reset();
    scheduler.onQuiescence(nullptr);
    std::string const left = HostMemory::endRun();
    if (!left.empty()) scheduler.fail("host memory", left);
    passed = scheduler.failure().kind.empty();
  }
  if (!passed) {
    (void)world.release();  // its threads stand still inside it
    HostMemory::depth() = 1;
    result.failure = scheduler.failure();
    result.schedule = scheduler.schedule();
  }
  return passed;
}

Result explore(Scenario const& scenario, Search& search, double seconds) {
  Result result;
  auto const began = std::chrono::steady_clock::now();
  auto const passed = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  };
  for (;;) {
    if (!search.nextRun()) {
      result.complete = true;
      break;
    }
    if (!runOnce(scenario, search, result)) break;
    if (result.runs % 64 == 0 && passed() > seconds) break;
  }
  result.seconds = passed();
  return result;
}

Result exploreDepthFirst(Scenario const& scenario, unsigned bound, double seconds) {
  DepthFirst search(bound);
  Result result = explore(scenario, search, seconds);
  result.how = fmt::format("bound {}", bound);
  return result;
}

Result exploreAtRandom(Scenario const& scenario, std::uint64_t seed, std::uint64_t runs,
                       double seconds) {
  Result result;
  Priorities by_priority(seed, runs / 2 + 1, 3);
  result = explore(scenario, by_priority, seconds / 2);
  if (!result.found()) {
    RandomWalk walk(seed, runs / 2 + 1);
    Result more = explore(scenario, walk, seconds / 2);
    more.runs += result.runs;
    more.seconds += result.seconds;
    more.longest = std::max(more.longest, result.longest);
    result = more;
  }
  result.how = fmt::format("seed {}", seed);
  result.complete = false;
  return result;
}

Result exploreAsSet(Scenario const& scenario, Settings const& settings) {
  if (settings.random != 0) {
    return exploreAtRandom(scenario, settings.seed, settings.random, settings.seconds);
  }
  if (settings.all && scenario.size == Scenario::Size::large) {
    return exploreAtRandom(scenario, settings.seed, ~std::uint64_t{0} / 2, settings.large_seconds);
  }
  return exploreDepthFirst(scenario, settings.bound, settings.seconds);
}

// ---------------------------------------------------------------------------- processes

/// Work in a process of its own, since a failed run leaves threads that stand still for ever.
class Child {
 public:
  explicit Child(std::function<Result()> const& work) {
    int ends[2];
    if (::pipe(ends) != 0) throw std::runtime_error("no pipe");
    std::fflush(stdout);
    process_ = ::fork();
    if (process_ < 0) throw std::runtime_error("no process");
    if (process_ == 0) {
      ::close(ends[0]);
      answer_to = ends[1];
      answer(work());
      std::_Exit(0);
    }
    ::close(ends[1]);
    from_ = ends[0];
  }
  Child(Child const&) = delete;
  Child& operator=(Child const&) = delete;
  ~Child() = default;

  [[nodiscard]] pid_t process() const noexcept { return process_; }

  /// Blocks until the work is done.
  [[nodiscard]] Result result() {
    std::string text;
    char buffer[4096];
    for (ssize_t got = 0; (got = ::read(from_, buffer, sizeof buffer)) > 0;) {
      text.append(buffer, static_cast<std::size_t>(got));
    }
    ::close(from_);
    int status = 0;
    ::waitpid(process_, &status, 0);
    if (!text.empty()) return Result::unpack(text);
    Result died;
    died.failure = {"died", fmt::format("status {}", status)};
    return died;
  }

 private:
  pid_t process_ = -1;
  int from_ = -1;
};

Result inChild(std::function<Result()> const& work) {
  Child child(work);
  return child.result();
}

// ---------------------------------------------------------------------------- reporting

bool report(Scenario const& scenario, Result const& result) {
  if (result.found()) {
    bool const meant = result.failure.kind == scenario.shows;
    fmt::print("{:<42} {} after {} schedules: {}\n{}{}schedule: {}\n", scenario.name,
               meant ? "shown" : "FAILED", result.runs, result.failure.kind, result.failure.text,
               result.failure.text.ends_with('\n') ? "" : "\n", result.schedule);
    std::fflush(stdout);
    return meant;
  }
  fmt::print("{:<42} {:<8} {:>8} schedules {:>5} steps {:>7.2f} s {:>6.1f} us{}{}\n", scenario.name,
             result.how, result.runs, result.longest, result.seconds,
             result.seconds * 1e6 / static_cast<double>(std::max<std::uint64_t>(result.runs, 1)),
             result.complete ? "  all" : "", scenario.shows.empty() ? "" : "  NOT SHOWN");
  std::fflush(stdout);
  return scenario.shows.empty();
}

Scenario const& find(std::string_view name) {
  for (Scenario const& scenario : allScenarios()) {
    if (scenario.name == name) return scenario;
  }
  throw std::invalid_argument(fmt::format("no scenario is called {}", name));
}

// ---------------------------------------------------------------------------- commands

int replay(Settings const& settings) {
  Scenario const& scenario = find(settings.scenario);
  Scheduler::instance().printSteps(settings.trace);
  Replay search(settings.schedule);
  Result result = explore(scenario, search, settings.seconds);
  result.how = "replay";
  if (!search.fits()) fmt::print("this schedule does not fit: the code has changed\n");
  return report(scenario, result) && search.fits() ? 0 : 1;
}

// Finds the failure, and finds it again by the schedule that is printed.
bool exploreOne(Scenario const& scenario, Settings const& settings) {
  Result const result = inChild([&] { return exploreAsSet(scenario, settings); });
  bool good = report(scenario, result);
  if (!result.found()) return good;
  Result const again = inChild([&] {
    Scheduler::instance().printSteps(settings.trace);
    Replay search(result.schedule);
    return explore(scenario, search, settings.seconds);
  });
  if (again.failure.kind != result.failure.kind) {
    fmt::print("replaying it gives: {}\n", again.found() ? again.failure.kind : "no failure");
    good = false;
  }
  return good;
}

int exploreAll(Settings const& settings) {
  auto const began = std::chrono::steady_clock::now();
  std::uint64_t runs = 0;
  unsigned failures = 0;
  unsigned complete = 0;
  unsigned count = 0;
  struct Running {
    std::unique_ptr<Child> child;
    Scenario const* scenario;
  };
  std::vector<Running> running;
  auto const collectFirst = [&] {
    Result const result = running.front().child->result();
    if (!report(*running.front().scenario, result)) ++failures;
    runs += result.runs;
    complete += result.complete ? 1 : 0;
    running.erase(running.begin());
  };
  std::vector<Scenario const*> order;
  for (Scenario const& scenario : allScenarios()) {
    if (scenario.shows.empty()) order.push_back(&scenario);
  }
  std::ranges::stable_sort(order, {}, [](Scenario const* scenario) { return scenario->size; });
  for (Scenario const* scenario : order) {
    ++count;
    if (running.size() == settings.jobs) collectFirst();
    running.push_back(
        {std::make_unique<Child>([&, scenario] { return exploreAsSet(*scenario, settings); }),
         scenario});
  }
  while (!running.empty()) collectFirst();
  double const seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  fmt::print("{} scenarios, {} of them completely; {} schedules in {:.0f} s; {} failures\n", count,
             complete, runs, seconds, failures);
  if (runs < settings.at_least) {
    fmt::print("at least {} schedules were wanted\n", settings.at_least);
    return 1;
  }
  return failures == 0 ? 0 : 1;
}

bool findMutant(Mutant const& mutant, Settings const& settings) {
  std::uint64_t runs = 0;
  std::istringstream names(mutant.scenarios);
  for (std::string name; names >> name;) {
    Scenario const& scenario = find(name);
    for (unsigned round = 1; round <= settings.bound + 1; ++round) {
      Result const result = inChild([&] {
        active_mutant = mutant.number;
        return round <= settings.bound
                   ? exploreDepthFirst(scenario, round, settings.seconds)
                   : exploreAtRandom(scenario, settings.seed, 100'000, settings.seconds);
      });
      runs += result.runs;
      if (!result.found()) continue;
      fmt::print(
          "{:<28} found after {:>6} schedules in {}: {}\n{:<28} --scenario {} --schedule {}\n",
          mutant.name, runs, name, result.failure.kind, "", name, result.schedule);
      std::fflush(stdout);
      return true;
    }
  }
  fmt::print("{:<28} NOT FOUND in {} schedules\n", mutant.name, runs);
  std::fflush(stdout);
  return false;
}

Settings parse(int count, char** arguments) {
  Settings settings;
  for (int i = 1; i < count; ++i) {
    std::string const name = arguments[i];
    auto const value = [&]() -> std::string {
      if (++i == count) throw std::invalid_argument(name + " needs a value");
      return arguments[i];
    };
    std::map<std::string, std::function<void()>> const options = {
        {"--scenario", [&] { settings.scenario = value(); }},
        {"--schedule", [&] { settings.schedule = value(); }},
        {"--mutant", [&] { settings.mutant = value(); }},
        {"--bound", [&] { settings.bound = static_cast<unsigned>(std::stoul(value())); }},
        {"--seconds", [&] { settings.seconds = settings.large_seconds = std::stod(value()); }},
        {"--seed", [&] { settings.seed = std::stoull(value()); }},
        {"--random", [&] { settings.random = std::stoull(value()); }},
        {"--at-least", [&] { settings.at_least = std::stoull(value()); }},
        {"--jobs", [&] { settings.jobs = static_cast<unsigned>(std::stoul(value())); }},
        {"--trace", [&] { settings.trace = true; }},
        {"--list", [&] { settings.list = true; }},
        {"--all", [&] { settings.all = true; }},
        {"--mutants", [&] { settings.find_mutants = true; }},
    };
    auto const option = options.find(name);
    if (option == options.end()) throw std::invalid_argument("unknown option " + name);
    option->second();
  }
  if (settings.jobs == 0) settings.jobs = 1;
  return settings;
}

int run(Settings const& settings) {
  catchSignals();
  sync::setLockRuleHandler(&onBrokenRule);
  warmUp();
  sync::setInterpreterProbe({.attached = &attachedToAny});
  if (settings.list) {
    for (Scenario const& scenario : allScenarios()) {
      fmt::print("{:<42} {}\n", scenario.name, scenario.about);
    }
    for (Mutant const& mutant : mutants()) {
      fmt::print("mutant {:<35} {}\n", mutant.name, mutant.about);
    }
    return 0;
  }
  if (settings.find_mutants) {
    bool good = !mutants().empty();
    for (Mutant const& mutant : mutants()) {
      if (settings.mutant.empty() || settings.mutant == mutant.name) {
        good = findMutant(mutant, settings) && good;
      }
    }
    return good ? 0 : 1;
  }
  if (!settings.mutant.empty()) {
    auto const found = std::ranges::find(mutants(), settings.mutant, &Mutant::name);
    if (found == mutants().end()) throw std::invalid_argument("no such mutant");
    active_mutant = found->number;
  }
  if (settings.all) return exploreAll(settings);
  if (settings.scenario.empty())
    throw std::invalid_argument("nothing to do\n\n" + std::string(kUsage));
  if (!settings.schedule.empty()) return replay(settings);
  return exploreOne(find(settings.scenario), settings) ? 0 : 1;
}

}  // namespace
}  // namespace flex::interleave

int main(int count, char** arguments) {
  try {
    return flex::interleave::run(flex::interleave::parse(count, arguments));
  } catch (std::exception const& error) {
    fmt::print(stderr, "interleave: {}\n", error.what());
    return 2;
  }
}
