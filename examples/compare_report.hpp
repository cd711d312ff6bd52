// SPDX-License-Identifier: Apache-2.0
#pragma once
// How compare_strategies.cpp shows what it has measured.

#include <cstdint>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "compare_workload.hpp"

inline nlohmann::ordered_json summarise(std::vector<std::int64_t> const& sorted) {
  auto const at = [&](std::size_t percent) {
    return sorted.empty() ? 0 : sorted[(sorted.size() - 1) * percent / 100];
  };
  return {{"p50", at(50)}, {"p99", at(99)}, {"max", at(100)}};
}

inline nlohmann::ordered_json summarise(Outcome const& outcome, double seconds) {
  flex::PressureStatistics const& pressure = outcome.pressure;
  return {{"allocations", outcome.allocations},
          {"allocations_per_second", static_cast<double>(outcome.allocations) / seconds},
          {"pressure_events", pressure.events},
          {"reclaims", pressure.reclaims},
          {"coalesced", pressure.coalesced},
          {"handoffs", pressure.handoffs},
          {"false_out_of_memory", pressure.outOfMemory()},
          {"requester_stall_ns", summarise(outcome.stalls)},
          {"bystander_latency_ns", summarise(outcome.latencies)}};
}

inline void printTable(nlohmann::ordered_json const& strategies) {
  auto const& hold = strategies["hold-mutex"];
  auto const& release = strategies["release-condvar"];
  fmt::print("{:26}{:>18}{:>18}\n", "", "hold-mutex", "release-condvar");
  auto const row = [](char const* what, double left, double right) {
    fmt::print("{:26}{:>18.0f}{:>18.0f}\n", what, left, right);
  };
  auto const both = [&](char const* what, char const* key) { row(what, hold[key], release[key]); };
  both("allocations/s", "allocations_per_second");
  both("pressure events", "pressure_events");
  both("reclaims", "reclaims");
  both("coalesced", "coalesced");
  both("hand-offs", "handoffs");
  for (char const* const which : {"requester_stall", "bystander_latency"}) {
    std::string const key = fmt::format("{}_ns", which);
    for (char const* const quantile : {"p50", "p99", "max"}) {
      row(fmt::format("{} {}, us", which, quantile).c_str(),
          hold[key][quantile].get<double>() / 1e3, release[key][quantile].get<double>() / 1e3);
    }
  }
  both("false out-of-memory", "false_out_of_memory");
}
