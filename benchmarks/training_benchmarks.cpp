// SPDX-License-Identifier: Apache-2.0
// W2 (sizes recur), W2j (sizes vary from iteration to iteration) and REPLAY (traces from files).

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

#include "peers/all_peers.hpp"
#include "registry.hpp"
#include "works/random.hpp"
#include "works/trace_player.hpp"
#include "works/training_trace.hpp"

namespace flexbench {
namespace {

constexpr double kLoad = 0.60;  ///< share of the region that is live at the peak

template <Peer P>
void run(benchmark::State& state, AllocationTrace const& trace) {
  P peer({static_cast<std::uint64_t>(static_cast<double>(trace.peak_bytes) / kLoad)});
  TracePlayer<P> player(peer, trace);
  player.play();
  for (auto _ : state) player.play();
  if (!player.complete()) state.SkipWithError("a block could not be allocated");
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(trace.events.size() / 2));
}

/// The named file, or all of the folder that this was built with.
std::vector<std::filesystem::path> traceFiles(std::string const& named) {
  if (!named.empty()) return {named};
  std::vector<std::filesystem::path> files;
  for (auto const& entry : std::filesystem::directory_iterator(FLEXALLOC_TRACES)) {
    if (entry.path().extension() == ".trace") files.push_back(entry.path());
  }
  std::ranges::sort(files);
  return files;
}

}  // namespace

void addTrainingBenchmarks(Registry& registry) {
  std::uint64_t const seed = registry.settings().seed;
  auto const same = std::make_shared<AllocationTrace const>(makeTrainingTrace(seed, 0.0, 1));
  auto const varied = std::make_shared<AllocationTrace const>(makeTrainingTrace(seed, 0.25, 8));
  forEachPeer([&]<Peer P>() {
    std::string const name(P::kName);
    registry.add("W2/" + name, registry.scaled(P::kSlow ? 40 : 400),
                 [same](benchmark::State& state) { run<P>(state, *same); });
    registry.add("W2j/" + name, registry.scaled(P::kSlow ? 5 : 50),
                 [varied](benchmark::State& state) { run<P>(state, *varied); });
  });
  for (std::filesystem::path const& file : traceFiles(registry.settings().trace)) {
    auto const trace = std::make_shared<AllocationTrace const>(readTrace(file.string()));
    // As many pairs whatever the trace's length.
    double const plays = 800'000.0 / static_cast<double>(trace->events.size() / 2);
    forEachPeer([&]<Peer P>() {
      registry.add("REPLAY/" + file.stem().string() + "/" + std::string(P::kName),
                   registry.scaled(P::kSlow ? plays / 10 : plays),
                   [trace](benchmark::State& state) { run<P>(state, *trace); });
    });
  }
}

}  // namespace flexbench
