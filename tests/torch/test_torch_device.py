# SPDX-License-Identifier: Apache-2.0
"""The device as a whole: the module torch.spyre, random numbers, streams and events."""

import pytest
import torch


def test_the_module_has_what_pytorch_asks_a_device_for():
    assert torch.spyre.is_available()
    assert torch.spyre.device_count() == 1
    assert torch.spyre.current_device() == 0
    assert not torch.spyre._is_in_bad_fork()
    assert torch.bfloat16 in torch.spyre.get_amp_supported_dtype()
    torch.spyre._lazy_init()
    assert torch.spyre.is_initialized()
    torch.spyre.synchronize()
    assert torch._C._get_accelerator() == torch.device("spyre")


def test_torch_accelerator_is_this_device():
    assert torch.accelerator.is_available()
    assert torch.accelerator.current_accelerator() == torch.device("spyre")
    assert torch.accelerator.device_count() == 1
    assert torch.accelerator.current_device_index() == 0
    torch.accelerator.set_device_index(0)
    torch.accelerator.synchronize()
    assert torch.accelerator.current_stream().device == torch.device("spyre", 0)


@pytest.mark.parametrize("device", [0, "spyre", "spyre:0", torch.device("spyre"), None])
def test_there_is_one_device(device):
    torch.spyre.set_device(device)
    with torch.spyre.device(device):
        assert torch.spyre.current_device() == 0


@pytest.mark.parametrize("device", [1, -1, "spyre:1", torch.device("spyre", 7)])
def test_there_is_no_other_device(device):
    for use in (torch.spyre.set_device, torch.spyre.device, torch.spyre.memory_allocated):
        with pytest.raises(RuntimeError, match="invalid device ordinal"):
            use(device)


def test_a_device_of_another_type_is_refused():
    with pytest.raises(ValueError, match="expected a spyre device, not cpu"):
        torch.spyre.set_device("cpu")


DRAWS = [
    lambda **to: torch.randn(100, **to),
    lambda **to: torch.rand(100, dtype=torch.float64, **to),
    lambda **to: torch.randint(0, 50, (100,), **to),
    lambda **to: torch.randperm(100, **to),
    lambda **to: torch.empty(100, device=to["device"]).exponential_(generator=to["generator"]),
    lambda **to: torch.empty(100, device=to["device"]).bernoulli_(0.3, generator=to["generator"]),
    lambda **to: torch.bernoulli(torch.full((100,), 0.3, device=to["device"]), generator=to["generator"]),
    lambda **to: torch.multinomial(
        torch.ones(100, device=to["device"]), 50, generator=to["generator"]
    ),
    lambda **to: torch.normal(torch.zeros(100, device=to["device"]), 2.0, generator=to["generator"]),
]


@pytest.mark.parametrize("draw", DRAWS)
def test_a_seed_gives_the_numbers_of_the_cpu(draw):
    torch.manual_seed(11)  # seeds both
    here, there = draw(device="cpu", generator=None), draw(device="spyre", generator=None)
    assert torch.equal(there.cpu(), here)
    assert not torch.equal(draw(device="spyre", generator=None).cpu(), here)
    torch.spyre.manual_seed(11)
    assert torch.equal(draw(device="spyre", generator=None).cpu(), here)
    generator = torch.Generator(device="spyre").manual_seed(11)
    assert torch.equal(draw(device="spyre", generator=generator).cpu(), here)


def test_a_generator_of_another_device_is_refused():
    for draw in DRAWS:
        with pytest.raises(RuntimeError, match="generator"):
            draw(device="spyre", generator=torch.Generator())
    with pytest.raises(RuntimeError, match="1 spyre device"):
        torch.Generator(device="spyre:1")


def test_the_state_of_the_generator_can_be_kept():
    state = torch.spyre.get_rng_state()
    first = torch.randn(5, device="spyre")
    torch.spyre.set_rng_state(state)
    assert torch.equal(torch.randn(5, device="spyre"), first)
    torch.spyre.set_rng_state_all([state])
    assert torch.equal(torch.spyre.get_rng_state_all()[0], state)
    with torch.random.fork_rng(device_type="spyre"):
        inside = torch.randn(5, device="spyre")
    assert torch.equal(torch.randn(5, device="spyre"), inside)
    torch.spyre.manual_seed(5)
    assert torch.spyre.initial_seed() == 5
    assert torch.spyre.default_generators[0].device.type == "spyre"
    torch.spyre.seed()
    assert torch.spyre.initial_seed() != 5


def test_streams_and_events_of_a_device_that_is_synchronous():
    stream = torch.spyre.Stream()
    assert stream == torch.spyre.current_stream() == torch.spyre.default_stream()
    begin, end = torch.spyre.Event(enable_timing=True), torch.spyre.Event(enable_timing=True)
    with torch.spyre.stream(stream):
        begin.record()
        torch.randn(1000, device="spyre").sum()
        end.record(stream)
    stream.wait_event(end)
    stream.synchronize()
    end.synchronize()
    assert stream.query() and end.query()
    assert 0.0 < begin.elapsed_time(end) < 60_000.0
    torch.spyre.set_stream(stream)


@pytest.mark.parametrize("dtype", torch.spyre.get_amp_supported_dtype())
def test_autocast_runs_operators_in_the_types_that_pytorch_lists(dtype):
    x = torch.ones(2, 2, device="spyre")
    with torch.autocast("spyre", dtype=dtype):
        assert (x @ x).dtype == dtype
        assert torch.equal((x @ x).cpu().float(), torch.full((2, 2), 2.0))
        assert (x @ x).softmax(0).dtype == torch.float32
        assert (x + x).dtype == torch.float32
    assert (x @ x).dtype == torch.float32
