// SPDX-License-Identifier: Apache-2.0
#pragma once
// Random numbers: the same as the CPU's from the same seed.

#include <ATen/core/Generator.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

namespace spyre_torch {

/// What torch.spyre.manual_seed seeds, and what an operator uses that is given none.
[[nodiscard]] at::Generator const& defaultGenerator();

/// A further one, for torch.Generator(device="spyre").
[[nodiscard]] at::Generator makeGenerator();

/// Puts the CPU's generators in place of the device's in the arguments of an operator, and the one
/// inside the default where none is given. Throws c10::Error for one of another device.
void replaceGenerators(c10::OperatorHandle const& op, torch::jit::Stack* stack);

}  // namespace spyre_torch
