// SPDX-License-Identifier: Apache-2.0
#include "host_view.hpp"

#include <ATen/ops/from_blob.h>

#include "spyre_device.hpp"

namespace spyre_torch {

at::Tensor hostView(at::Tensor const& tensor) {
  if (tensor.device().type() != kDeviceType) return tensor;
  at::Tensor view = at::from_blob(
      tensor.unsafeGetTensorImpl()->mutable_data(), tensor.sizes(), tensor.strides(),
      [storage = tensor.storage()](void* /*data*/) {}, tensor.options().device(c10::kCPU));
  view._set_conj(tensor.is_conj());
  view._set_neg(tensor.is_neg());
  return view;
}

at::Tensor toDevice(at::Tensor const& tensor) {
  return tensor.defined() ? tensor.to(spyreDevice()) : tensor;
}

}  // namespace spyre_torch
