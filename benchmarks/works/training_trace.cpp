// SPDX-License-Identifier: Apache-2.0
#include "works/training_trace.hpp"

#include <algorithm>
#include <array>

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

class Writer {
 public:
  explicit Writer(TrainingTrace& trace, std::uint64_t live_bytes)
      : trace_(trace), live_bytes_(live_bytes) {}

  std::uint32_t allocate(std::uint32_t nbytes) {
    std::uint32_t slot = 0;
    if (free_slots_.empty()) {
      slot = static_cast<std::uint32_t>(sizes_.size());
      sizes_.push_back(0);
      trace_.slots = sizes_.size();
    } else {
      slot = free_slots_.back();
      free_slots_.pop_back();
    }
    sizes_[slot] = nbytes;
    trace_.events.push_back({slot, nbytes});
    live_bytes_ += nbytes;
    trace_.peak_bytes = std::max(trace_.peak_bytes, live_bytes_);
    ++allocations_;
    return slot;
  }
  void free(std::uint32_t slot) {
    trace_.events.push_back({slot, 0});
    live_bytes_ -= sizes_[slot];
    free_slots_.push_back(slot);
  }
  [[nodiscard]] std::size_t allocations() const { return allocations_; }

 private:
  TrainingTrace& trace_;
  std::uint64_t live_bytes_;
  std::vector<std::uint32_t> sizes_;
  std::vector<std::uint32_t> free_slots_;
  std::size_t allocations_ = 0;
};

/// What one layer keeps for its backward pass: normalisation, attention, normalisation, MLP.
std::array<std::uint32_t, 14> savedSizes(Shape const& shape) {
  std::uint32_t const a = shape.activation();
  std::uint32_t const s = shape.statistic();
  return {s, a, 3 * a, 2 * a, a / 2, a, a, s, a, 4 * a, 4 * a, a / 2, a, s};
}

}  // namespace

TrainingTrace makeTrainingTrace(std::uint64_t seed, double jitter, std::size_t iterations) {
  Random random(seed);
  Shape const shape(random);
  TrainingTrace trace;

  // Per layer two large matrices, two of a quarter and vectors; then embeddings and small change.
  std::uint64_t persistent_bytes = 0;
  for (std::size_t i = 0; i < TrainingTrace::kPersistent; ++i) {
    std::array<std::uint32_t, 8> const kinds = {
        4 * shape.weight(), 4 * shape.weight(), 3 * shape.weight(), shape.weight(),
        shape.bias(),       shape.bias(),       4 * shape.bias(),   512};
    trace.persistent.push_back(kinds[i % kinds.size()]);
    persistent_bytes += trace.persistent.back();
  }
  trace.peak_bytes = persistent_bytes;

  // Which temporaries are large is a property of the network: the same in every iteration.
  std::array<std::uint32_t, 10> temporaries{};
  for (std::uint32_t& nbytes : temporaries) {
    std::array<std::uint32_t, 5> const kinds = {shape.activation(), 4 * shape.activation(),
                                                shape.activation() / 2, shape.statistic(), 512};
    nbytes = kinds[random.below(kinds.size())];
  }

  Writer writer(trace, persistent_bytes);
  auto const vary = [&](std::uint32_t nbytes) {
    return nbytes - static_cast<std::uint32_t>(nbytes * jitter * random.unit());
  };
  for (std::size_t iteration = 0; iteration < iterations; ++iteration) {
    std::size_t const first = writer.allocations();

    std::vector<std::array<std::uint32_t, 14>> saved(kLayers);
    std::array<std::uint32_t, 14> const sizes = savedSizes(shape);
    for (auto& slots : saved) {
      std::size_t next_temporary = 0;
      std::vector<std::uint32_t> open;
      for (std::size_t i = 0; i < slots.size(); ++i) {
        if (i % 3 != 2 && next_temporary < temporaries.size()) {
          open.push_back(writer.allocate(vary(temporaries[next_temporary++])));
        }
        slots[i] = writer.allocate(vary(sizes[i]));
        if (open.size() == 2 || (i % 3 == 2 && !open.empty())) {
          writer.free(open.back());
          open.pop_back();
        }
      }
      for (; !open.empty(); open.pop_back()) writer.free(open.back());
    }

    std::uint32_t gradient = writer.allocate(512);  // of the loss
    for (std::size_t layer = kLayers; layer-- > 0;) {
      for (std::size_t i = sizes.size(); i-- > 0;) {
        std::uint32_t const workspace = writer.allocate(vary(temporaries[i % temporaries.size()]));
        std::uint32_t const next = writer.allocate(vary(sizes[i]));
        writer.free(workspace);
        writer.free(gradient);
        writer.free(saved[layer][i]);
        gradient = next;
      }
    }
    writer.free(gradient);

    for (std::size_t i = 0; writer.allocations() - first < TrainingTrace::kPairs; ++i) {
      std::uint32_t const nbytes = trace.persistent[i % trace.persistent.size()];
      std::uint32_t const momentum = writer.allocate(nbytes);
      if (writer.allocations() - first < TrainingTrace::kPairs) {
        writer.free(writer.allocate(nbytes));
      }
      writer.free(momentum);
    }
  }
  return trace;
}

}  // namespace flexbench
