// SPDX-License-Identifier: Apache-2.0
#pragma once
// W2: what training a network of 24 equal layers asks of an allocator, as a fixed list of calls.

#include <cstddef>
#include <cstdint>

#include "works/allocation_trace.hpp"

namespace flexbench {

inline constexpr std::size_t kTrainingPairs = 2000;  ///< allocations of one iteration, and frees
inline constexpr std::size_t kTrainingPersistent = 400;

/// One iteration (or several, each with sizes of its own) of forward pass, backward pass and
/// optimizer step.
///
///   forward    24 layers: 14 tensors each that the backward pass will need, 10 temporaries, each
///              freed before the next but one begins
///   backward   the layers in reverse: for each saved tensor a gradient and a workspace; the
///              workspace, the gradient before it and the saved tensor are freed
///   optimizer  two temporaries of a parameter's size at a time, freed in reverse, up to 2000
///              allocations in all
///
/// Beside it live 400 tensors that stay: weights, their gradients, the optimizer's state.
///
/// The seed chooses batch, sequence and model size, and which temporaries are large. With `jitter`
/// (between 0 and 1), every iteration draws the size of its activations anew, up to that share
/// smaller, as batches of sequences of unequal length do.
[[nodiscard]] AllocationTrace makeTrainingTrace(std::uint64_t seed, double jitter,
                                                std::size_t iterations);

}  // namespace flexbench
