// SPDX-License-Identifier: Apache-2.0
// W1 and W1s on one thread.

#include <algorithm>
#include <array>
#include <memory>
#include <string>

#include <benchmark/benchmark.h>

#include "peers/all_peers.hpp"
#include "registry.hpp"
#include "works/replace_plan.hpp"

namespace flexbench {
namespace {

struct Variant {
  char const* name;
  std::size_t live;
  LogUniformSizes sizes;
};

constexpr std::array kVariants = {
    Variant{"W1/1k", 1'000, kAnySize},       Variant{"W1/10k", 10'000, kAnySize},
    Variant{"W1/100k", 100'000, kAnySize},   Variant{"W1s/1k", 1'000, kSmallSize},
    Variant{"W1s/10k", 10'000, kSmallSize},  Variant{"W1s/100k", 100'000, kSmallSize},
    Variant{"W1s/1M", 1'000'000, kSmallSize}};

constexpr std::size_t kSteps = std::size_t{1} << 20;

/// The plan is the same for all peers, so it is drawn once; one at a time is kept.
ReplacePlan const& planFor(Variant const& variant, std::uint64_t seed) {
  static Variant const* drawn_for = nullptr;
  static std::unique_ptr<ReplacePlan> plan;
  if (drawn_for != &variant) {
    plan.reset();
    plan = std::make_unique<ReplacePlan>(variant.live, variant.sizes, 2 * kSteps, seed);
    drawn_for = &variant;
  }
  return *plan;
}

template <Peer P>
void run(benchmark::State& state, Variant const& variant, std::uint64_t seed) {
  ReplacePlan const& plan = planFor(variant, seed);
  P peer({plan.region_bytes});
  Replacing<P> work(peer, plan);
  // Until holes and blocks have the mixture that replacing gives them.
  work.steps(P::kSlow ? std::min<std::size_t>(variant.live, 100'000)
                      : std::max<std::size_t>(variant.live, 100'000));
  for (auto _ : state) work.step();
  if (!work.complete()) state.SkipWithError("a block could not be allocated");
  state.SetItemsProcessed(state.iterations());
}

}  // namespace

void addReplaceBenchmarks(Registry& registry) {
  std::uint64_t const seed = registry.settings().seed;
  for (Variant const& variant : kVariants) {
    forEachPeer([&]<Peer P>() {
      registry.add(std::string(variant.name) + "/" + std::string(P::kName),
                   registry.scaled(P::kSlow ? 100'000 : static_cast<double>(kSteps)),
                   [&variant, seed](benchmark::State& state) { run<P>(state, variant, seed); });
    });
  }
}

}  // namespace flexbench
