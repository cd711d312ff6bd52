// SPDX-License-Identifier: Apache-2.0
// How full a region gets (FILL, FILLS, FILLSS), what running full costs (W3), the largest block,
// and what the bookkeeping costs in host memory. Shares are counters; times are beside the point.

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <benchmark/benchmark.h>

#include "peers/all_peers.hpp"
#include "registry.hpp"
#include "works/random.hpp"
#include "works/replace_plan.hpp"
#include "works/thread_team.hpp"

namespace flexbench {
namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;

/// Blocks that come and go, and their bytes as requested.
template <Peer P>
class Herd {
 public:
  explicit Herd(P& peer) : peer_(peer) {}
  Herd(Herd const&) = delete;
  Herd& operator=(Herd const&) = delete;
  ~Herd() {
    for (auto& [handle, nbytes] : live_) peer_.deallocate(handle);
  }

  [[nodiscard]] bool add(std::uint64_t nbytes) {
    auto handle = peer_.tryAllocate(nbytes);
    if (!handle) return false;
    live_.emplace_back(std::move(handle), nbytes);
    live_bytes_ += nbytes;
    return true;
  }
  void removeRandom(Random& random) {
    auto& [handle, nbytes] = live_[random.below(live_.size())];
    peer_.deallocate(handle);
    live_bytes_ -= nbytes;
    if (&live_.back().first != &handle) {
      handle = std::move(live_.back().first);
      nbytes = live_.back().second;
    }
    live_.pop_back();
  }
  /// Frees every other block. Returns the sizes freed.
  std::vector<std::uint64_t> removeAlternate() {
    std::vector<std::uint64_t> sizes;
    std::vector<std::pair<typename P::Handle, std::uint64_t>> kept;
    kept.reserve(live_.size());
    sizes.reserve(live_.size());
    for (std::size_t i = 0; i < live_.size(); ++i) {
      if (i % 2 == 0) {
        kept.push_back(std::move(live_[i]));
      } else {
        sizes.push_back(live_[i].second);
        peer_.deallocate(live_[i].first);
      }
    }
    live_ = std::move(kept);
    return sizes;
  }

  [[nodiscard]] bool empty() const { return live_.empty(); }
  [[nodiscard]] std::size_t count() const { return live_.size(); }
  [[nodiscard]] std::uint64_t liveBytes() const { return live_bytes_; }

 private:
  P& peer_;
  std::vector<std::pair<typename P::Handle, std::uint64_t>> live_;
  std::uint64_t live_bytes_ = 0;
};

/// FILL: 55 of 100 steps allocate, the others free a random block, until the first failure.
template <Peer P>
double fillUntilFailure(std::uint64_t region_bytes, LogUniformSizes sizes, std::uint64_t seed) {
  P peer({region_bytes});
  Herd<P> herd(peer);
  Random random(seed);
  for (;;) {
    if (herd.empty() || random.below(100) < 55) {
      if (!herd.add(sizes.draw(random))) break;
    } else {
      herd.removeRandom(random);
    }
  }
  return static_cast<double>(herd.liveBytes()) / static_cast<double>(region_bytes);
}

/// Whether 200 000 operations succeed with as much live as `share` of the region allows.
template <Peer P>
bool survives(std::uint64_t region_bytes, double share, std::uint64_t seed) {
  auto const limit = static_cast<std::uint64_t>(share * static_cast<double>(region_bytes));
  P peer({region_bytes});
  Herd<P> herd(peer);
  Random random(seed);
  std::uint64_t next = kAnySize.draw(random);
  for (; herd.liveBytes() + next <= limit; next = kAnySize.draw(random)) {
    if (!herd.add(next)) return false;
  }
  for (std::size_t operations = 0; operations < 200'000; ++operations) {
    if (herd.liveBytes() + next > limit) {
      herd.removeRandom(random);
    } else {
      if (!herd.add(next)) return false;
      next = kAnySize.draw(random);
    }
  }
  return true;
}

/// FILLSS: the highest live share, in hundredths, that survives.
template <Peer P>
double highestSteadyShare(std::uint64_t region_bytes, std::uint64_t seed) {
  int survived = 50;
  int failed = 100;
  while (failed - survived > 1) {
    int const middle = (survived + failed) / 2;
    (survives<P>(region_bytes, middle / 100.0, seed) ? survived : failed) = middle;
  }
  return survived / 100.0;
}

template <Peer P>
void fill(benchmark::State& state, std::uint64_t seed) {
  for (auto _ : state) {
    state.counters["FILL"] = fillUntilFailure<P>(16 * kGiB, kAnySize, seed);
    state.counters["FILLS"] = fillUntilFailure<P>(kGiB, kSmallSize, seed);
    state.counters["FILLSS"] = highestSteadyShare<P>(16 * kGiB, seed);
  }
}

/// The largest block of an empty region, as a share of the region.
template <Peer P>
void largest(benchmark::State& state) {
  constexpr std::uint64_t kRegion = 140 * kGiB;
  for (auto _ : state) {
    P peer({kRegion});
    std::uint64_t fits = 0;
    std::uint64_t fails = kRegion / kMiB + 1;
    while (fails - fits > 1) {
      std::uint64_t const middle = (fits + fails) / 2;
      auto handle = peer.tryAllocate(middle * kMiB);
      if (handle) {
        peer.deallocate(handle);
        fits = middle;
      } else {
        fails = middle;
      }
    }
    state.counters["share"] = static_cast<double>(fits * kMiB) / static_cast<double>(kRegion);
  }
}

/// W3: fill to the first failure, ask in vain, free every other block, ask for twice its size.
template <Peer P>
void burst(benchmark::State& state, std::uint64_t seed) {
  constexpr std::uint64_t kRegion = 16 * kGiB;
  constexpr std::size_t kVain = 1000;
  Random random(seed);
  std::vector<std::uint32_t> sizes(100'000);
  for (std::uint32_t& nbytes : sizes) nbytes = kAnySize.draw(random);
  for (auto _ : state) {
    P peer({kRegion});
    std::vector<typename P::Handle> live(sizes.size());
    auto const nanosecondsEach = [](auto begin, std::size_t count) {
      return secondsSince(begin) * 1e9 / static_cast<double>(count == 0 ? 1 : count);
    };

    auto begin = std::chrono::steady_clock::now();
    std::size_t count = 0;
    while (count < sizes.size() && (live[count] = peer.tryAllocate(sizes[count]))) ++count;
    state.counters["fill_ns"] = nanosecondsEach(begin, count + 1);

    begin = std::chrono::steady_clock::now();
    std::size_t succeeded = 0;
    for (std::size_t i = 0; i < kVain; ++i) {
      auto handle = peer.tryAllocate(16 * kMiB);
      if (!handle) continue;
      ++succeeded;
      peer.deallocate(handle);
    }
    state.counters["vain_ns"] = nanosecondsEach(begin, kVain);
    state.counters["vain_succeeded"] = static_cast<double>(succeeded);

    begin = std::chrono::steady_clock::now();
    for (std::size_t i = 1; i < count; i += 2) peer.deallocate(live[i]);
    state.counters["free_ns"] = nanosecondsEach(begin, count / 2);

    begin = std::chrono::steady_clock::now();
    succeeded = 0;
    std::size_t tried = 0;
    for (std::size_t i = 1; i < count; i += 4) {
      ++tried;
      live[i] = peer.tryAllocate(2 * std::uint64_t{sizes[i]});
      if (live[i]) ++succeeded;
    }
    state.counters["double_ns"] = nanosecondsEach(begin, tried);
    state.counters["double_share"] = static_cast<double>(succeeded) / static_cast<double>(tried);

    for (auto& handle : live) {
      if (handle) peer.deallocate(handle);
    }
  }
}

/// Host bytes that describe the blocks, over the blocks that are live.
template <Peer P>
void metadata(benchmark::State& state, std::size_t count, std::uint64_t seed) {
  ReplacePlan const plan(count, kAnySize, 4 * count, seed);
  for (auto _ : state) {
    P peer({plan.region_bytes});
    Replacing<P> work(peer, plan);
    work.steps(plan.steps.size());
    state.counters["bytes_per_block"] =
        static_cast<double>(peer.metadataBytes()) / static_cast<double>(count);
  }
}

}  // namespace

void addFillBenchmarks(Registry& registry) {
  std::uint64_t const seed = registry.settings().seed;
  forEachPeer([&]<Peer P>() {
    std::string const name(P::kName);
    if constexpr (P::kBounded) {
      registry.add("FILL/" + name, 1, [seed](benchmark::State& state) { fill<P>(state, seed); });
      registry.add("LARGEST/" + name, 1, [](benchmark::State& state) { largest<P>(state); });
      registry.add("W3/" + name, 1, [seed](benchmark::State& state) { burst<P>(state, seed); });
    }
    if constexpr (requires(P & peer) { peer.metadataBytes(); }) {
      for (auto const& [label, count] :
           {std::pair{"10k", std::size_t{10'000}}, std::pair{"100k", std::size_t{100'000}}}) {
        registry.add(
            std::string("METADATA/") + label + "/" + name, 1,
            [live = count, seed](benchmark::State& state) { metadata<P>(state, live, seed); });
      }
    }
  });
}

}  // namespace flexbench
