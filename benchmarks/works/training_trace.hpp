// SPDX-License-Identifier: Apache-2.0
#pragma once
// W2: what training a network of 24 equal layers asks of an allocator, as a fixed list of calls.

#include <cstddef>
#include <cstdint>
#include <vector>

namespace flexbench {

/// One iteration (or several, each with sizes of its own) of forward pass, backward pass and
/// optimizer step. Everything that an iteration allocates it also frees, so it can be repeated.
///
///   forward    24 layers: 14 tensors each that the backward pass will need, 10 temporaries, each
///              freed before the next but one begins
///   backward   the layers in reverse: for each saved tensor a gradient and a workspace; the
///              workspace, the gradient before it and the saved tensor are freed
///   optimizer  two temporaries of a parameter's size at a time, freed in reverse, up to 2000
///              allocations in all
///
/// Beside it live 400 tensors that stay: weights, their gradients, the optimizer's state.
struct TrainingTrace {
  struct Event {
    std::uint32_t slot;
    std::uint32_t nbytes;  ///< 0: free the slot
  };

  static constexpr std::size_t kPairs = 2000;  ///< allocations of one iteration, and its frees
  static constexpr std::size_t kPersistent = 400;

  std::vector<std::uint32_t> persistent;  ///< sizes
  std::vector<Event> events;
  std::size_t slots = 0;         ///< live at once, at most, beside the persistent ones
  std::uint64_t peak_bytes = 0;  ///< of everything live, the persistent ones included
};

/// The seed chooses batch, sequence and model size, and which temporaries are large. With `jitter`
/// (between 0 and 1), every iteration draws the size of its activations anew, up to that share
/// smaller, as batches of sequences of unequal length do.
[[nodiscard]] TrainingTrace makeTrainingTrace(std::uint64_t seed, double jitter,
                                              std::size_t iterations);

}  // namespace flexbench
