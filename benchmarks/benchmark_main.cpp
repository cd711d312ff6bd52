// SPDX-License-Identifier: Apache-2.0
// Runs the benchmarks in an order of one's choice.
//
//   flexalloc_benchmarks [--seed=N] [--shuffle=N] [--effort=X] [--trace=FILE] [Google Benchmark's
//                        options]
//   flexalloc_benchmarks --write-training-trace=SEED    prints W2's trace, runs nothing

#include <cstdlib>
#include <cstring>
#include <iostream>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include <benchmark/benchmark.h>

#include "registry.hpp"
#include "works/random.hpp"
#include "works/training_trace.hpp"

namespace {

/// The value of `--name=` if `argument` is that option, else null.
char const* valueOf(char const* argument, char const* option) {
  std::size_t const length = std::strlen(option);
  return std::strncmp(argument, option, length) == 0 ? argument + length : nullptr;
}

}  // namespace

int main(int argc, char** argv) {
  // Nobody locks in a process of one thread, and there the C library's mutex leaves out its atomic
  // operations, which trylock() does not. It cannot once there was a second one.
  std::thread([] {}).join();

  flexbench::Settings settings;
  std::vector<char*> others;
  for (int i = 0; i < argc; ++i) {
    if (char const* seed = valueOf(argv[i], "--seed=")) {
      settings.seed = std::strtoull(seed, nullptr, 10);
    } else if (char const* shuffle = valueOf(argv[i], "--shuffle=")) {
      settings.shuffle = std::strtoull(shuffle, nullptr, 10);
    } else if (char const* effort = valueOf(argv[i], "--effort=")) {
      settings.effort = std::strtod(effort, nullptr);
    } else if (char const* trace = valueOf(argv[i], "--trace=")) {
      settings.trace = trace;
    } else if (char const* training_seed = valueOf(argv[i], "--write-training-trace=")) {
      flexbench::writeTrace(
          flexbench::makeTrainingTrace(std::strtoull(training_seed, nullptr, 10), 0.0, 1),
          std::cout);
      return 0;
    } else {
      others.push_back(argv[i]);
    }
  }

  flexbench::Registry registry(settings);
  flexbench::addReplaceBenchmarks(registry);
  try {
    flexbench::addTrainingBenchmarks(registry);
  } catch (std::runtime_error const& error) {  // a trace that cannot be read
    std::cerr << "flexalloc_benchmarks: " << error.what() << '\n';
    return 2;
  }
  flexbench::addThreadBenchmarks(registry);
  flexbench::addFillBenchmarks(registry);
  flexbench::addPressureBenchmarks(registry);

  auto& entries = registry.entries();
  if (settings.shuffle != 0) {
    flexbench::Random random(settings.shuffle);
    for (std::size_t i = entries.size(); i > 1; --i) {
      std::swap(entries[i - 1], entries[random.below(i)]);
    }
  }
  for (flexbench::Entry const& entry : entries) entry.add(entry.name);

  int other_count = static_cast<int>(others.size());
  benchmark::Initialize(&other_count, others.data());
  if (benchmark::ReportUnrecognizedArguments(other_count, others.data())) return 2;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
