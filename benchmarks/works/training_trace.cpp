// SPDX-License-Identifier: Apache-2.0
#include "works/training_trace.hpp"

#include <array>
#include <vector>

#include "works/random.hpp"

namespace flexbench {
namespace {

constexpr std::uint32_t kLayers = 24;

/// Sizes in units that a network has.
struct Shape {
  explicit Shape(Random& random) {
    constexpr std::array<std::uint32_t, 5> kTokens = {1024, 1536, 2048, 3072, 4096};
    constexpr std::array<std::uint32_t, 5> kHidden = {768, 1024, 1280, 1600, 2048};
    tokens = kTokens[random.below(kTokens.size())];
    hidden = kHidden[random.below(kHidden.size())];
  }

  [[nodiscard]] std::uint32_t activation() const { return tokens * hidden * 2; }
  [[nodiscard]] std::uint32_t statistic() const { return tokens * 8; }
  [[nodiscard]] std::uint32_t weight() const { return hidden * hidden * 2; }
  [[nodiscard]] std::uint32_t bias() const { return hidden * 2; }

  std::uint32_t tokens;
  std::uint32_t hidden;
};

/// What one layer keeps for its backward pass: normalisation, attention, normalisation, MLP.
std::array<std::uint32_t, 14> savedSizes(Shape const& shape) {
  std::uint32_t const a = shape.activation();
  std::uint32_t const s = shape.statistic();
  return {s, a, 3 * a, 2 * a, a / 2, a, a, s, a, 4 * a, 4 * a, a / 2, a, s};
}

}  // namespace

AllocationTrace makeTrainingTrace(std::uint64_t seed, double jitter, std::size_t iterations) {
  Random random(seed);
  Shape const shape(random);
  TraceBuilder builder;

  // Per layer two large matrices, two of a quarter and vectors; then embeddings and small change.
  std::vector<std::uint32_t> persistent;
  for (std::size_t i = 0; i < kTrainingPersistent; ++i) {
    std::array<std::uint32_t, 8> const kinds = {
        4 * shape.weight(), 4 * shape.weight(), 3 * shape.weight(), shape.weight(),
        shape.bias(),       shape.bias(),       4 * shape.bias(),   512};
    persistent.push_back(kinds[i % kinds.size()]);
    builder.keep(persistent.back());
  }

  // Which temporaries are large is a property of the network: the same in every iteration.
  std::array<std::uint32_t, 10> temporaries{};
  for (std::uint32_t& nbytes : temporaries) {
    std::array<std::uint32_t, 5> const kinds = {shape.activation(), 4 * shape.activation(),
                                                shape.activation() / 2, shape.statistic(), 512};
    nbytes = kinds[random.below(kinds.size())];
  }

  auto const vary = [&](std::uint32_t nbytes) {
    return nbytes - static_cast<std::uint32_t>(nbytes * jitter * random.unit());
  };
  for (std::size_t iteration = 0; iteration < iterations; ++iteration) {
    std::size_t const first = builder.allocations();

    std::vector<std::array<std::size_t, 14>> saved(kLayers);
    std::array<std::uint32_t, 14> const sizes = savedSizes(shape);
    for (auto& slots : saved) {
      std::size_t next_temporary = 0;
      std::vector<std::size_t> open;
      for (std::size_t i = 0; i < slots.size(); ++i) {
        if (i % 3 != 2 && next_temporary < temporaries.size()) {
          open.push_back(builder.allocate(vary(temporaries[next_temporary++])));
        }
        slots[i] = builder.allocate(vary(sizes[i]));
        if (open.size() == 2 || (i % 3 == 2 && !open.empty())) {
          builder.free(open.back());
          open.pop_back();
        }
      }
      for (; !open.empty(); open.pop_back()) builder.free(open.back());
    }

    std::size_t gradient = builder.allocate(512);  // of the loss
    for (std::size_t layer = kLayers; layer-- > 0;) {
      for (std::size_t i = sizes.size(); i-- > 0;) {
        std::size_t const workspace = builder.allocate(vary(temporaries[i % temporaries.size()]));
        std::size_t const next = builder.allocate(vary(sizes[i]));
        builder.free(workspace);
        builder.free(gradient);
        builder.free(saved[layer][i]);
        gradient = next;
      }
    }
    builder.free(gradient);

    for (std::size_t i = 0; builder.allocations() - first < kTrainingPairs; ++i) {
      std::uint32_t const nbytes = persistent[i % persistent.size()];
      std::size_t const momentum = builder.allocate(nbytes);
      if (builder.allocations() - first < kTrainingPairs) {
        builder.free(builder.allocate(nbytes));
      }
      builder.free(momentum);
    }
  }
  return builder.finish();
}

}  // namespace flexbench
