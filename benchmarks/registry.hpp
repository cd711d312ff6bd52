// SPDX-License-Identifier: Apache-2.0
#pragma once
// How the benchmarks of one program are gathered, so that they can be run in any order.

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <benchmark/benchmark.h>

namespace flexbench {

/// What the command line says.
struct Settings {
  std::uint64_t seed = 1;     ///< of the works
  std::uint64_t shuffle = 0;  ///< of the order in which they run; 0: as registered
  double effort = 1.0;        ///< share of the steps that are measured
  std::string trace;          ///< a file to replay; empty: those of benchmarks/traces
};

/// A named benchmark and how to add it to Google Benchmark.
struct Entry {
  std::string name;  ///< work/variant/peer
  std::function<void(std::string const& name)> add;
};

class Registry {
 public:
  explicit Registry(Settings settings) : settings_(settings) {}

  [[nodiscard]] Settings const& settings() const noexcept { return settings_; }
  [[nodiscard]] std::vector<Entry>& entries() noexcept { return entries_; }

  /// `run(state)` with a fixed number of iterations; all peers of a work do the same ones.
  template <class Run>
  void add(std::string name, std::int64_t iterations, Run run) {
    entries_.push_back(
        {std::move(name), [iterations, run](std::string const& registered) {
           benchmark::RegisterBenchmark(registered.c_str(), run)->Iterations(iterations);
         }});
  }
  /// The same, where run() measures the time itself.
  template <class Run>
  void addManual(std::string name, std::int64_t iterations, Run run) {
    entries_.push_back({std::move(name), [iterations, run](std::string const& registered) {
                          benchmark::RegisterBenchmark(registered.c_str(), run)
                              ->Iterations(iterations)
                              ->UseManualTime();
                        }});
  }

  [[nodiscard]] std::int64_t scaled(double count) const noexcept {
    double const steps = count * settings_.effort;
    return steps < 1 ? 1 : static_cast<std::int64_t>(steps);
  }

 private:
  Settings settings_;
  std::vector<Entry> entries_;
};

void addReplaceBenchmarks(Registry& registry);
void addTrainingBenchmarks(Registry& registry);
void addThreadBenchmarks(Registry& registry);
void addFillBenchmarks(Registry& registry);
void addPressureBenchmarks(Registry& registry);

}  // namespace flexbench
