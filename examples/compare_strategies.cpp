// SPDX-License-Identifier: Apache-2.0
// Both strategies on one workload, side by side: what scripts/compare does, without Python.

#include <cstdlib>
#include <fstream>
#include <string>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <flex/bytes.hpp>
#include <flex/strategies/hold_mutex_during_callback.hpp>
#include <flex/strategies/release_and_condvar.hpp>

#include "compare_report.hpp"
#include "compare_workload.hpp"

int main(int argc, char** argv) try {
  Workload workload;
  std::string capacity = "8MiB";
  std::string json;
  CLI::App app("Runs one workload on both pressure strategies and shows what each did.");
  app.add_option("--threads", workload.threads, "Threads that make garbage")
      ->check(CLI::Range(1, 64));
  app.add_option("--seconds", workload.seconds, "For each strategy")
      ->check(CLI::Range(0.1, 3600.0));
  app.add_option("--capacity", capacity, "Bytes of the simulated device, such as 8MiB");
  app.add_option("--json", json, "Write the figures to this file, too");
  CLI11_PARSE(app, argc, argv);
  workload.capacity = flex::parseBytes(capacity);
  if (workload.capacity < workload.leastCapacity()) {
    fmt::print(stderr, "--capacity is {}; for so many threads it must be {} or more\n", capacity,
               flex::formatBytes(workload.leastCapacity()));
    return EXIT_FAILURE;
  }
  nlohmann::ordered_json strategies;
  strategies["hold-mutex"] =
      summarise(runWorkload<flex::HoldMutexDuringCallback>(workload), workload.seconds);
  strategies["release-condvar"] =
      summarise(runWorkload<flex::ReleaseAndCondvar>(workload), workload.seconds);
  printTable(strategies);
  if (!json.empty()) {
    std::ofstream(json) << nlohmann::ordered_json{{"strategies", strategies}}.dump(2) << '\n';
  }
  return EXIT_SUCCESS;
} catch (std::exception const& error) {
  fmt::print(stderr, "compare_strategies: {}\n", error.what());
  return EXIT_FAILURE;
}
