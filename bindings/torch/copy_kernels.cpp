// SPDX-License-Identifier: Apache-2.0
// Copies into the device, out of it, and within.

#include <ATen/core/Tensor.h>
#include <torch/library.h>

#include "host_view.hpp"

namespace spyre_torch {
namespace {

at::Tensor copyFrom(at::Tensor const& self, at::Tensor const& destination, bool /*non_blocking*/) {
  hostView(destination).copy_(hostView(self));
  return destination;
}

at::Tensor copyFromAndResize(at::Tensor const& self, at::Tensor const& destination) {
  destination.resize_(self.sizes());
  return copyFrom(self, destination, false);
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  library.impl("_copy_from", &copyFrom);
  library.impl("_copy_from_and_resize", &copyFromAndResize);
}

// The views of the host are conjugated and negated as the tensors are, so the copy sees to it. What
// PyTorch would do instead ends in a copy again.
TORCH_LIBRARY_IMPL(aten, Conjugate, library) {
  library.impl("_copy_from", torch::CppFunction::makeFallthrough());
}
TORCH_LIBRARY_IMPL(aten, Negative, library) {
  library.impl("_copy_from", torch::CppFunction::makeFallthrough());
}

}  // namespace spyre_torch
