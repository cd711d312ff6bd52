// SPDX-License-Identifier: Apache-2.0
// Convolutions, for which PyTorch does not fall back: it asks a back end for operators of its own.

#include <tuple>

#include <ATen/ops/convolution.h>
#include <ATen/ops/convolution_backward.h>
#include <torch/library.h>

#include "host_view.hpp"

namespace spyre_torch {
namespace {

at::Tensor convolve(at::Tensor const& input, at::Tensor const& weight,
                    std::optional<at::Tensor> const& bias, at::IntArrayRef stride,
                    at::IntArrayRef padding, at::IntArrayRef dilation, bool transposed,
                    at::IntArrayRef output_padding, std::int64_t groups) {
  auto const host_bias = bias && bias->defined() ? std::optional(hostView(*bias)) : std::nullopt;
  return toDevice(at::convolution(hostView(input), hostView(weight), host_bias, stride, padding,
                                  dilation, transposed, output_padding, groups));
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> convolveBackward(
    at::Tensor const& gradient, at::Tensor const& input, at::Tensor const& weight,
    at::IntArrayRef stride, at::IntArrayRef padding, at::IntArrayRef dilation, bool transposed,
    at::IntArrayRef output_padding, std::int64_t groups, std::array<bool, 3> wanted) {
  std::int64_t const outputs = gradient.size(1);
  auto const [for_input, for_weight, for_bias] =
      at::convolution_backward(hostView(gradient), hostView(input), hostView(weight),
                               wanted[2] ? at::OptionalIntArrayRef(outputs) : std::nullopt, stride,
                               padding, dilation, transposed, output_padding, groups, wanted);
  return {toDevice(for_input), toDevice(for_weight), toDevice(for_bias)};
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  library.impl("convolution_overrideable", &convolve);
  library.impl("convolution_backward_overrideable", &convolveBackward);
}

}  // namespace spyre_torch
