// SPDX-License-Identifier: Apache-2.0
// Operators of the CPU, run in place on the device's memory: those that fill a tensor, which would
// otherwise copy it to the CPU and back.

#include <ATen/NativeFunctions.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/library.h>

#include "host_view.hpp"
#include "spyre_generator.hpp"

namespace spyre_torch {
namespace {

/// For operators that change no shape and return their first tensor, or no tensor.
void runOnHost(c10::OperatorHandle const& op, torch::jit::Stack* stack) {
  auto const& arguments = op.schema().arguments();
  at::Tensor const self = torch::jit::peek(*stack, 0, arguments.size()).toTensor();
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    c10::IValue& value = (*stack)[stack->size() - arguments.size() + i];
    if (value.isTensor()) value = hostView(value.toTensor());
  }
  replaceGenerators(op, stack);
  op.callBoxed(stack);
  if (stack->back().isTensor()) stack->back() = self;
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  for (char const* const name :
       {"_local_scalar_dense", "bernoulli_.float", "cauchy_", "exponential_", "fill_.Scalar",
        "geometric_", "log_normal_", "normal_", "random_", "random_.from", "random_.to", "uniform_",
        "zero_"}) {
    library.impl(name, torch::CppFunction::makeFromBoxedFunction<&runOnHost>());
  }
  // Takes no generator, so it must draw on the device for the device's to be used.
  library.impl("native_dropout", &at::native::native_dropout_cpu);
}

}  // namespace spyre_torch
