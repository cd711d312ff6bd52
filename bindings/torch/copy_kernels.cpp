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

}  // namespace spyre_torch
