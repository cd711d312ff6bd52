// SPDX-License-Identifier: Apache-2.0
// Cells of recurrent networks, for which PyTorch does not fall back: of back ends it wants each
// cell in one operator, which the CPU does not have.

#include <ATen/ATen.h>
#include <torch/library.h>

#include "host_view.hpp"

namespace spyre_torch {
namespace {

using OptionalTensor = std::optional<at::Tensor>;

at::Tensor orZeros(OptionalTensor const& tensor, at::Tensor const& like) {
  return tensor && tensor->defined() ? hostView(*tensor) : at::zeros_like(like);
}

at::Tensor withBias(at::Tensor const& gates, OptionalTensor const& bias) {
  return bias && bias->defined() ? hostView(gates) + hostView(*bias) : hostView(gates);
}

/// Derivative of the sigmoid and of the hyperbolic tangent, by their values.
at::Tensor ofSigmoid(at::Tensor const& value) { return value * (1 - value); }
at::Tensor ofTanh(at::Tensor const& value) { return 1 - value * value; }

std::tuple<at::Tensor, at::Tensor, at::Tensor> lstmCell(at::Tensor const& input_gates,
                                                        at::Tensor const& hidden_gates,
                                                        at::Tensor const& cell,
                                                        OptionalTensor const& input_bias,
                                                        OptionalTensor const& hidden_bias) {
  auto const gates =
      (withBias(input_gates, input_bias) + withBias(hidden_gates, hidden_bias)).chunk(4, 1);
  at::Tensor const in = gates[0].sigmoid();
  at::Tensor const forget = gates[1].sigmoid();
  at::Tensor const candidate = gates[2].tanh();
  at::Tensor const out = gates[3].sigmoid();
  at::Tensor const next = forget * hostView(cell) + in * candidate;
  return {toDevice(out * next.tanh()), toDevice(next),
          toDevice(at::cat({in, forget, candidate, out}, 1))};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> lstmCellBackward(
    OptionalTensor const& hidden_gradient, OptionalTensor const& cell_gradient,
    at::Tensor const& cell, at::Tensor const& next, at::Tensor const& workspace, bool has_bias) {
  at::Tensor const before = hostView(cell);
  at::Tensor const shown = hostView(next).tanh();
  auto const gates = hostView(workspace).chunk(4, 1);
  at::Tensor const& in = gates[0];
  at::Tensor const& forget = gates[1];
  at::Tensor const& candidate = gates[2];
  at::Tensor const& out = gates[3];
  at::Tensor const for_hidden = orZeros(hidden_gradient, before);
  at::Tensor const for_next = for_hidden * out * ofTanh(shown) + orZeros(cell_gradient, before);
  at::Tensor const for_gates =
      at::cat({for_next * candidate * ofSigmoid(in), for_next * before * ofSigmoid(forget),
               for_next * in * ofTanh(candidate), for_hidden * shown * ofSigmoid(out)},
              1);
  return {toDevice(for_gates), toDevice(for_next * forget),
          has_bias ? toDevice(for_gates.sum(0)) : at::Tensor()};
}

std::tuple<at::Tensor, at::Tensor> gruCell(at::Tensor const& input_gates,
                                           at::Tensor const& hidden_gates, at::Tensor const& hidden,
                                           OptionalTensor const& input_bias,
                                           OptionalTensor const& hidden_bias) {
  auto const inputs = withBias(input_gates, input_bias).chunk(3, 1);
  auto const hiddens = withBias(hidden_gates, hidden_bias).chunk(3, 1);
  at::Tensor const before = hostView(hidden);
  at::Tensor const reset = (inputs[0] + hiddens[0]).sigmoid();
  at::Tensor const update = (inputs[1] + hiddens[1]).sigmoid();
  at::Tensor const candidate = (inputs[2] + reset * hiddens[2]).tanh();
  return {toDevice(candidate + update * (before - candidate)),
          toDevice(at::cat({reset, update, candidate, before, hiddens[2]}, 1))};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, at::Tensor> gruCellBackward(
    at::Tensor const& hidden_gradient, at::Tensor const& workspace, bool has_bias) {
  auto const kept = hostView(workspace).chunk(5, 1);
  at::Tensor const& reset = kept[0];
  at::Tensor const& update = kept[1];
  at::Tensor const& candidate = kept[2];
  at::Tensor const& before = kept[3];
  at::Tensor const& hidden_part = kept[4];
  at::Tensor const gradient = hostView(hidden_gradient);
  at::Tensor const for_candidate = gradient * (1 - update) * ofTanh(candidate);
  at::Tensor const for_update = gradient * (before - candidate) * ofSigmoid(update);
  at::Tensor const for_reset = for_candidate * hidden_part * ofSigmoid(reset);
  at::Tensor const for_input = at::cat({for_reset, for_update, for_candidate}, 1);
  at::Tensor const for_hidden = at::cat({for_reset, for_update, for_candidate * reset}, 1);
  return {toDevice(for_input), toDevice(for_hidden), toDevice(gradient * update),
          has_bias ? toDevice(for_input.sum(0)) : at::Tensor(),
          has_bias ? toDevice(for_hidden.sum(0)) : at::Tensor()};
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  library.impl("_thnn_fused_lstm_cell", &lstmCell);
  library.impl("_thnn_fused_lstm_cell_backward_impl", &lstmCellBackward);
  library.impl("_thnn_fused_gru_cell", &gruCell);
  library.impl("_thnn_fused_gru_cell_backward", &gruCellBackward);
}

}  // namespace spyre_torch
