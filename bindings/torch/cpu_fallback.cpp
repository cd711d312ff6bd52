// SPDX-License-Identifier: Apache-2.0
// Every operator that has no kernel of ours runs on the CPU, on copies.

#include <array>
#include <string_view>

#include <ATen/native/CPUFallback.h>
#include <torch/library.h>

#include "spyre_device.hpp"
#include "spyre_generator.hpp"

namespace spyre_torch {
namespace {

/// Operators that take some of their tensors from the CPU by design.
constexpr std::array<std::string_view, 5> kMixing{"aten::index", "aten::index_put_",
                                                  "aten::_index_put_impl_", "aten::_ctc_loss",
                                                  "aten::_pack_padded_sequence"};

bool isStranger(at::Tensor const& tensor) {
  return tensor.defined() && tensor.device().type() != kDeviceType && tensor.dim() > 0;
}

/// PyTorch's fallback would take tensors of any device; its own devices refuse that. Numbers, that
/// is tensors without dimensions, may come from anywhere.
void requireOneDevice(c10::OperatorHandle const& op, torch::jit::Stack const& stack) {
  for (std::string_view const name : kMixing) {
    if (op.operator_name().name == name) return;
  }
  for (c10::IValue const& value : torch::jit::last(stack, op.schema().arguments().size())) {
    at::Tensor stranger;
    if (value.isTensor() && isStranger(value.toTensor())) stranger = value.toTensor();
    if (value.isTensorList()) {
      for (at::Tensor const& tensor : value.toTensorVector()) {
        if (isStranger(tensor)) stranger = tensor;
      }
    }
    TORCH_CHECK(!stranger.defined(), "Expected all tensors to be on the same device, but found ",
                stranger.device(), " and ", spyreDevice(), " in ", op.operator_name());
  }
}

void runOnCpu(c10::OperatorHandle const& op, torch::jit::Stack* stack) {
  requireOneDevice(op, *stack);
  replaceGenerators(op, stack);
  at::native::cpu_fallback(op, stack);
}

}  // namespace

TORCH_LIBRARY_IMPL(_, PrivateUse1, library) {
  library.fallback(torch::CppFunction::makeFromBoxedFunction<&runOnCpu>());
}

// For these PyTorch would rather use other operators than fall back, with other last digits.
TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  for (char const* const name :
       {"addr", "mish_backward", "native_group_norm", "native_layer_norm"}) {
    library.impl(name, torch::CppFunction::makeFromBoxedFunction<&runOnCpu>());
  }
}

}  // namespace spyre_torch
