// SPDX-License-Identifier: Apache-2.0
#pragma once
// W1 and W1s: many live blocks, a random one of which is replaced again and again.

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "peers/peer.hpp"
#include "works/random.hpp"

namespace flexbench {

/// All that is random about the work, drawn before the clock runs.
struct ReplacePlan {
  struct Step {
    std::uint32_t slot;
    std::uint32_t nbytes;
  };

  ReplacePlan(std::size_t live, LogUniformSizes sizes, std::size_t step_count, std::uint64_t seed)
      : region_bytes(static_cast<std::uint64_t>(static_cast<double>(live) * sizes.mean() / kLoad)) {
    Random random(seed);
    initial.reserve(live);
    for (std::size_t i = 0; i < live; ++i) initial.push_back(sizes.draw(random));
    steps.reserve(step_count);
    for (std::size_t i = 0; i < step_count; ++i) {
      steps.push_back({random.below(live), sizes.draw(random)});
    }
  }

  static constexpr double kLoad = 0.60;  ///< share of the region that is live

  std::uint64_t region_bytes;
  std::vector<std::uint32_t> initial;
  std::vector<Step> steps;
};

/// The state of one run of the plan.
template <Peer P>
class Replacing {
 public:
  Replacing(P& peer, ReplacePlan const& plan)
      : peer_(peer), plan_(plan), live_(plan.initial.size()) {
    for (std::size_t i = 0; i < live_.size(); ++i) live_[i] = peer_.allocate(plan_.initial[i]);
  }
  Replacing(Replacing const&) = delete;
  Replacing& operator=(Replacing const&) = delete;
  ~Replacing() {
    for (auto& handle : live_) {
      if (handle) peer_.deallocate(handle);
    }
  }

  void step() {
    ReplacePlan::Step const next = plan_.steps[position_];
    if (++position_ == plan_.steps.size()) position_ = 0;
    auto& handle = live_[next.slot];
    peer_.deallocate(handle);
    handle = peer_.allocate(next.nbytes);
  }
  void steps(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) step();
  }

  /// Whether every block is there: no peer may be fast by failing.
  [[nodiscard]] bool complete() const {
    for (auto const& handle : live_) {
      if (!handle) return false;
    }
    return true;
  }

 private:
  P& peer_;
  ReplacePlan const& plan_;
  std::size_t position_ = 0;
  std::vector<typename P::Handle> live_;
};

}  // namespace flexbench
