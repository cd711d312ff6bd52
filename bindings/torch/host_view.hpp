// SPDX-License-Identifier: Apache-2.0
#pragma once
// A tensor of the device as a tensor of the CPU on the same memory, and the way back.

#include <ATen/core/Tensor.h>

namespace spyre_torch {

/// Shares memory, shape and strides with `tensor`, and keeps its storage alive. A tensor that is
/// not of the device is itself.
[[nodiscard]] at::Tensor hostView(at::Tensor const& tensor);

/// A copy on the device; one that is not defined is itself.
[[nodiscard]] at::Tensor toDevice(at::Tensor const& tensor);

}  // namespace spyre_torch
