# SPDX-License-Identifier: Apache-2.0
"""A model trains on the device, with the losses that the CPU has, bit for bit."""

import pytest
import torch

STEPS = 12


def make_mlp():
    return torch.nn.Sequential(
        torch.nn.Linear(8, 32), torch.nn.ReLU(), torch.nn.LayerNorm(32), torch.nn.Linear(32, 3)
    ), torch.randn(16, 8)


def make_convolutional():
    return torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 3, padding=1),
        torch.nn.BatchNorm2d(8),
        torch.nn.GELU(),
        torch.nn.MaxPool2d(2),
        torch.nn.Flatten(),
        torch.nn.Linear(8 * 16, 3),
    ), torch.randn(16, 3, 8, 8)


def make_transformer():
    layer = torch.nn.TransformerEncoderLayer(16, 4, 32, dropout=0.0, batch_first=True)
    return torch.nn.Sequential(layer, torch.nn.Flatten(), torch.nn.Linear(5 * 16, 3)), torch.randn(16, 5, 16)


def losses(device, make, optimizer):
    torch.manual_seed(5)
    model, data = make()
    model.to(device)
    data, labels = data.to(device), (torch.arange(16) % 3).to(device)
    step = optimizer(model.parameters())
    curve = []
    for _ in range(STEPS):
        step.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(data), labels)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        step.step()
        curve.append(loss.item())
    return curve, [parameter.detach().cpu() for parameter in model.parameters()]


@pytest.mark.parametrize("optimizer", [
    lambda parameters: torch.optim.SGD(parameters, lr=0.1, momentum=0.9),
    lambda parameters: torch.optim.AdamW(parameters, lr=0.01),
], ids=["SGD", "AdamW"])
@pytest.mark.parametrize("make", [make_mlp, make_convolutional, make_transformer])
def test_the_curve_of_losses_is_the_cpus(make, optimizer):
    there, there_parameters = losses("spyre", make, optimizer)
    # For attention the CPU has a kernel of its own, of which a back end knows nothing.
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        here, here_parameters = losses("cpu", make, optimizer)
    assert there == here
    assert there[-1] < there[0] / 2
    for a, b in zip(there_parameters, here_parameters):
        assert torch.equal(a, b)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("make", [torch.nn.LSTM, torch.nn.GRU, torch.nn.RNN])
def test_recurrent_networks_and_their_gradients_are_the_cpus(make, bias):
    def run(device):
        torch.manual_seed(2)
        model = make(4, 6, num_layers=2, bias=bias, batch_first=True)
        x = torch.randn(3, 5, 4)
        model.to(device)
        x = x.to(device).detach().requires_grad_()
        output, state = model(x)
        (output.square().sum() + sum(each.sum() for each in state)).backward()
        return [output.detach(), x.grad, *(parameter.grad for parameter in model.parameters())]

    for there, here in zip(run("spyre"), run("cpu")):
        assert there.is_spyre
        torch.testing.assert_close(there.cpu(), here, rtol=1e-5, atol=1e-6)


def test_dropout_draws_from_the_devices_generator():
    def dropped():
        return torch.nn.functional.dropout(torch.ones(1000, device="spyre"), 0.5)

    torch.spyre.manual_seed(9)
    first = dropped()
    assert not torch.equal(dropped(), first)
    torch.spyre.manual_seed(9)
    assert torch.equal(dropped(), first)


def test_state_of_a_model_moves_both_ways():
    model = torch.nn.Linear(4, 4).to("spyre")
    other = torch.nn.Linear(4, 4)
    other.load_state_dict(model.state_dict())
    assert torch.equal(other.weight, model.weight.cpu())
    model.load_state_dict({name: value + 1 for name, value in other.state_dict().items()})
    assert torch.equal(model.weight.cpu(), other.weight + 1)
    assert model.cpu().weight.device.type == "cpu"


def test_gradients_accumulate_on_the_device():
    x = torch.arange(4.0, device="spyre", requires_grad=True)
    (x * x).sum().backward()
    (x * 3).sum().backward()
    assert x.grad.is_spyre
    assert torch.equal(x.grad.cpu(), 2 * torch.arange(4.0) + 3)
    y = x.cpu() * 2  # the graph goes over the copy
    y.sum().backward()
    assert torch.equal(x.grad.cpu(), 2 * torch.arange(4.0) + 5)


def test_a_function_of_ones_own():
    class Double(torch.autograd.Function):
        @staticmethod
        def forward(context, x):
            context.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(context, gradient):
            (x,) = context.saved_tensors
            assert x.is_spyre and gradient.is_spyre
            return gradient * 2

    x = torch.ones(3, device="spyre", requires_grad=True)
    Double.apply(x).sum().backward()
    assert torch.equal(x.grad.cpu(), torch.full((3,), 2.0))
