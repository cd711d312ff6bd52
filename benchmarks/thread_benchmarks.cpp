// SPDX-License-Identifier: Apache-2.0
// W4: W1 split over threads. W4X: one thread allocates, another frees.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

#include "peers/all_peers.hpp"
#include "registry.hpp"
#include "works/handle_ring.hpp"
#include "works/random.hpp"
#include "works/replace_plan.hpp"
#include "works/thread_team.hpp"

namespace flexbench {
namespace {

constexpr std::size_t kLive = 10'000;

template <Peer P>
void replaceOnThreads(benchmark::State& state, unsigned threads, std::size_t steps,
                      std::uint64_t seed) {
  std::vector<ReplacePlan> plans;
  std::uint64_t region_bytes = 0;
  for (unsigned i = 0; i < threads; ++i) {
    plans.emplace_back(kLive / threads, kAnySize, std::size_t{1} << 17, seed * 1000 + i);
    region_bytes += plans.back().region_bytes;
  }
  for (auto _ : state) {
    P peer({region_bytes});
    std::vector<std::optional<Replacing<P>>> works(threads);
    double const seconds = runTogether(
        threads,
        [&](unsigned i) {
          works[i].emplace(peer, plans[i]);
          works[i]->steps(steps / 4);
        },
        [&](unsigned i) { works[i]->steps(steps); });
    state.SetIterationTime(seconds);
    for (auto const& work : works) {
      if (!work->complete()) state.SkipWithError("a block could not be allocated");
    }
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(threads * steps));
}

template <Peer P>
void produceAndConsume(benchmark::State& state, std::size_t count, std::uint64_t seed) {
  ReplacePlan const plan(HandleRing<typename P::Handle>::kCapacity, kAnySize, count, seed);
  for (auto _ : state) {
    P peer({plan.region_bytes});
    HandleRing<typename P::Handle> ring;
    bool complete = true;
    double const seconds = runTogether(
        2, [](unsigned) {},
        [&](unsigned i) {
          if (i == 0) {
            for (ReplacePlan::Step const& step : plan.steps) {
              auto handle = peer.allocate(step.nbytes);
              if (!handle) complete = false;
              ring.push(std::move(handle));
            }
          } else {
            for (std::size_t k = 0; k < count; ++k) {
              ring.pop([&](typename P::Handle& handle) {
                if (handle) peer.deallocate(handle);
              });
            }
          }
        });
    state.SetIterationTime(seconds);
    if (!complete) state.SkipWithError("a block could not be allocated");
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(count));
}

}  // namespace

void addThreadBenchmarks(Registry& registry) {
  std::uint64_t const seed = registry.settings().seed;
  forEachPeer([&]<Peer P>() {
    if constexpr (P::kThreadSafe) {
      std::string const name(P::kName);
      for (unsigned const threads : {1U, 2U, 4U, 8U}) {
        auto const steps =
            static_cast<std::size_t>(registry.scaled((P::kSlow ? 40'000.0 : 400'000.0) / threads));
        registry.addManual(
            "W4/" + std::to_string(threads) + "/" + name, 1,
            [=](benchmark::State& state) { replaceOnThreads<P>(state, threads, steps, seed); });
      }
      auto const count = static_cast<std::size_t>(registry.scaled(P::kSlow ? 40'000 : 400'000));
      registry.addManual("W4X/" + name, 1, [=](benchmark::State& state) {
        produceAndConsume<P>(state, count, seed);
      });
    }
  });
}

}  // namespace flexbench
