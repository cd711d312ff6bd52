# SPDX-License-Identifier: Apache-2.0
"""Tensors of the device do what tensors of the CPU do."""

import copy
import io
import pickle

import pytest
import torch

DTYPES = [
    torch.bool,
    torch.uint8,
    torch.int8,
    torch.int16,
    torch.int32,
    torch.int64,
    torch.float16,
    torch.bfloat16,
    torch.float32,
    torch.float64,
    torch.complex64,
    torch.complex128,
]


def numbers(dtype, *shape):
    """Small whole numbers of both signs, where the type has them."""
    count = torch.Size(shape).numel()
    return (torch.arange(count) % 7 + (0 if dtype in (torch.bool, torch.uint8) else -3)).to(dtype).view(shape)


def same(on_device, on_cpu):
    assert on_device.device == torch.device("spyre", 0)
    assert on_device.dtype == on_cpu.dtype
    assert on_device.shape == on_cpu.shape
    assert torch.equal(on_device.cpu(), on_cpu.contiguous())


@pytest.mark.parametrize("make", [
    lambda **to: torch.zeros(3, 5, **to),
    lambda **to: torch.ones(2, 2, dtype=torch.float16, **to),
    lambda **to: torch.full((4,), 2.5, **to),
    lambda **to: torch.arange(10, **to),
    lambda **to: torch.arange(0, 1, 0.125, **to),
    lambda **to: torch.eye(3, **to),
    lambda **to: torch.linspace(0, 1, 9, **to),
    lambda **to: torch.tensor([[1, 2], [3, 4]], **to),
    lambda **to: torch.zeros_like(torch.ones(2, 3), **to),
    lambda **to: torch.full_like(torch.ones(2, 3), 7, **to),
    lambda **to: torch.tril(torch.ones(3, 3, **to)),
    lambda **to: torch.empty(0, **to),
    lambda **to: torch.tensor(5.0, **to),
])
def test_what_is_made_is_as_on_the_cpu(make):
    same(make(device="spyre"), make())


def test_empty_has_the_layout_that_was_asked_for():
    x = torch.empty(2, 3, 4, 5, device="spyre", memory_format=torch.channels_last)
    assert x.stride() == torch.empty(2, 3, 4, 5, memory_format=torch.channels_last).stride()
    y = torch.empty_strided((3, 4), (1, 3), device="spyre", dtype=torch.float64)
    assert (y.stride(), y.dtype, y.is_contiguous()) == ((1, 3), torch.float64, False)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_copies_in_all_directions(dtype):
    x = numbers(dtype, 6, 5)
    there = x.to("spyre")
    same(there, x)
    same(there.clone(), x)
    same(there.t(), x.t())
    same(torch.empty(6, 5, dtype=dtype, device="spyre").copy_(there), x)
    back = torch.zeros(6, 5, dtype=dtype)
    back.copy_(there)
    assert torch.equal(back, x)
    same(torch.zeros(5, 6, dtype=dtype, device="spyre").t().copy_(x), x)  # into strides
    same(there.to(torch.float32 if dtype != torch.complex64 else torch.complex128),
         x.to(torch.float32 if dtype != torch.complex64 else torch.complex128))


def test_an_expanded_source_and_a_conjugate_are_copied_by_value():
    row = torch.arange(4.0)
    same(torch.zeros(3, 4, device="spyre").copy_(row), row.expand(3, 4))
    z = torch.complex(torch.randn(5), torch.randn(5))
    same(z.to("spyre").conj(), z.conj().resolve_conj())
    same(z.conj().to("spyre"), z.conj().resolve_conj())
    same(z.to("spyre").conj().imag, z.conj().imag.resolve_neg())


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("operate", [
    lambda x: x + x,
    lambda x: x * 2,
    lambda x: x.sum(),
    lambda x: x == x[0, 0],
    lambda x: x.view(-1)[::2],
    lambda x: torch.cat([x, x], dim=1),
    lambda x: torch.where(x == x[0, 0], x, x[1, 1]),
    lambda x: x.to(torch.complex64).abs(),
    lambda x: torch.stack([x, x]).permute(2, 0, 1),
    lambda x: x.flip(0),
    lambda x: x.nonzero(),
    lambda x: x.index_select(0, torch.tensor([2, 0], device=x.device)),
], ids=lambda operate: None)
def test_operators_that_fall_back_are_right_for_every_type(operate, dtype):
    x = numbers(dtype, 3, 4)
    same(operate(x.to("spyre")), operate(x))


@pytest.mark.parametrize("operate", [
    lambda x: x.add_(1),
    lambda x: x.mul_(x),
    lambda x: x.t().add_(torch.arange(3.0, device=x.device)),
    lambda x: x[1].fill_(9),
    lambda x: x[:, 1:3].zero_(),
    lambda x: x.clamp_(0, 1),
    lambda x: x.index_fill_(0, torch.tensor([1], device=x.device), 5),
    lambda x: x.masked_fill_(x > 0, -1),
    lambda x: x.__setitem__((slice(None), 1), 8),
    lambda x: x.__setitem__(x > 0, 3),
    lambda x: x.__setitem__(torch.tensor([0, 2]), 4),
    lambda x: torch.add(x, 1, out=x),
    lambda x: torch._foreach_add_([x, x[0]], 1.0),
])
def test_operators_in_place_change_the_memory_of_the_device(operate):
    there, here = (numbers(torch.float32, 3, 4).to(device) for device in ("spyre", "cpu"))
    operate(there)
    operate(here)
    same(there, here)


def test_out_is_resized():
    out = torch.empty(0, device="spyre")
    x = torch.arange(6.0, device="spyre")
    torch.add(x, 1, out=out)
    same(out, torch.arange(6.0) + 1)


@pytest.mark.parametrize("view", [
    lambda x: x[1:3],
    lambda x: x[:, ::2],
    lambda x: x[2],
    lambda x: x.t(),
    lambda x: x.view(2, -1),
    lambda x: x.reshape(-1),
    lambda x: x.unsqueeze(0).expand(2, 4, 6),
    lambda x: x.diagonal(),
    lambda x: x.unfold(1, 2, 2),
    lambda x: x.as_strided((2, 2), (1, 6), 3),
    lambda x: x.view(torch.int32),
    lambda x: x.split(2)[1],
    lambda x: x.chunk(3, dim=1)[2],
    lambda x: x.unbind(1)[3],
    lambda x: x.movedim(0, 1),
    lambda x: torch.view_as_complex(x.view(4, 3, 2)),
    lambda x: torch.view_as_real(torch.view_as_complex(x.view(4, 3, 2))),
    lambda x: x.detach(),
    lambda x: x.narrow(0, 1, 2),
])
def test_views_share_the_memory(view):
    x = numbers(torch.float32, 4, 6)
    there = x.to("spyre")
    same(view(there), view(x))
    assert view(there).untyped_storage().data_ptr() == there.untyped_storage().data_ptr()
    there.fill_(3)
    x.fill_(3)
    same(view(there), view(x))


def test_indexing_with_tensors_of_either_device():
    x = numbers(torch.float32, 5, 4)
    there = x.to("spyre")
    index = torch.tensor([4, 0, 4])
    same(there[index], x[index])
    same(there[index.to("spyre")], x[index])
    same(there[x > 0], x[x > 0])
    same(there[index, 1], x[index, 1])
    assert there[2, 3].item() == x[2, 3].item()


def test_resize_keeps_what_was_there():
    x = torch.arange(4.0, device="spyre")
    x.resize_(2, 4)
    assert torch.equal(x.view(-1)[:4].cpu(), torch.arange(4.0))
    x.resize_(3)
    same(x, torch.arange(3.0))
    x.untyped_storage().resize_(0)
    assert x.untyped_storage().nbytes() == 0
    x.untyped_storage().resize_(12)
    assert x.untyped_storage().nbytes() == 12


def test_set_points_a_tensor_at_other_memory():
    x, y = torch.arange(4.0, device="spyre"), torch.empty(0, device="spyre")
    assert not y.is_set_to(x)
    y.set_(x)
    assert y.is_set_to(x)
    y.set_(x.untyped_storage(), 1, (2,), (2,))
    same(y, torch.tensor([1.0, 3.0]))
    y.set_()
    assert y.numel() == 0


def test_repr_shows_numbers_and_device():
    assert repr(torch.tensor([1.5, 2.0], device="spyre")) == (
        "tensor([1.5000, 2.0000], device='spyre:0')"
    )


@pytest.mark.parametrize("name", ["pickle", "torch.save", "deepcopy"])
def test_a_tensor_survives_being_stored(name):
    x = torch.randn(3, 4, device="spyre")[1:]
    if name == "pickle":
        again = pickle.loads(pickle.dumps(x))
    elif name == "deepcopy":
        again = copy.deepcopy(x)
    else:
        file = io.BytesIO()
        torch.save(x, file)
        file.seek(0)
        again = torch.load(file)
    same(again, x.cpu())


@pytest.mark.parametrize("source, target", [("spyre", "cpu"), ("cpu", "spyre"), ("spyre", "spyre:0")])
def test_load_maps_the_location(source, target):
    file = io.BytesIO()
    x = torch.arange(5.0)
    torch.save({"x": x.to(source)}, file)
    file.seek(0)
    loaded = torch.load(file, map_location=target)["x"]
    assert loaded.device.type == torch.device(target).type
    assert torch.equal(loaded.cpu(), x)


def test_generated_methods():
    x = torch.ones(2).spyre()
    assert x.is_spyre and not torch.ones(2).is_spyre
    assert torch.nn.Linear(2, 2).spyre().weight.is_spyre


def test_tensors_of_another_device_are_refused_and_nothing_is_lost():
    x = torch.ones(3, device="spyre")
    for operate in (
        lambda: x + torch.ones(3),
        lambda: torch.ones(3, 3) @ torch.ones(3, 3, device="spyre"),
        lambda: torch.cat([x, torch.ones(3)]),
        lambda: x.add_(torch.ones(3)),
        lambda: x + torch.ones(3, device="meta"),
    ):
        with pytest.raises(RuntimeError, match="same device|expected device"):
            operate()
    same(x + torch.tensor(2.0), torch.full((3,), 3.0))  # a number may come from anywhere
    same(x, torch.ones(3))


def test_bad_arguments():
    with pytest.raises(RuntimeError, match="invalid device ordinal"):
        torch.empty(2, device="spyre:1")
    with pytest.raises(RuntimeError, match="pinned"):
        torch.empty(2, device="spyre", pin_memory=True)
    with pytest.raises(RuntimeError, match="negative"):
        torch.empty(-1, device="spyre")
