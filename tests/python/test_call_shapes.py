# SPDX-License-Identifier: Apache-2.0
"""Calls with too many, too few and unknown arguments, and the edges of what is allowed."""

import pytest
import spyre_alloc
from support import BLOCK, small

CALLS = {
    "allocate": lambda alloc: alloc.allocate,
    "try_allocate": lambda alloc: alloc.try_allocate,
    "register": lambda alloc: alloc.register_memory_pressure_callback,
    "memory_stats": lambda alloc: alloc.memory_stats,
    "pressure_stats": lambda alloc: alloc.pressure_stats,
    "memory_info": lambda alloc: alloc.memory_info,
    "empty_cache": lambda alloc: alloc.empty_cache,
    "reset_peak": lambda alloc: alloc.reset_peak_memory_stats,
    "reset_accumulated": lambda alloc: alloc.reset_accumulated_memory_stats,
    "check_invariants": lambda alloc: alloc.check_invariants,
    "free": lambda alloc: alloc.allocate(BLOCK).free,
    "unregister": lambda alloc: alloc.register_memory_pressure_callback(print).unregister,
    "SpyreAllocator": lambda alloc: spyre_alloc.SpyreAllocator,
    "SimulatedDevice": lambda alloc: spyre_alloc.SimulatedDevice,
    "OffsetDevice": lambda alloc: spyre_alloc.OffsetDevice,
    "GcOptions": lambda alloc: spyre_alloc.GcOptions,
    "NativeWorker": lambda alloc: spyre_alloc.NativeWorker,
}


@pytest.mark.parametrize("call", CALLS)
def test_an_unknown_argument_is_a_type_error(strategy, call):
    with pytest.raises(TypeError):
        CALLS[call](small(strategy))(colour="red")


@pytest.mark.parametrize("call", CALLS)
def test_too_many_arguments_are_a_type_error(strategy, call):
    with pytest.raises(TypeError):
        CALLS[call](small(strategy))(*[None] * 20)


@pytest.mark.parametrize("call", ["allocate", "try_allocate", "register", "NativeWorker"])
def test_a_missing_argument_is_a_type_error(strategy, call):
    with pytest.raises(TypeError):
        CALLS[call](small(strategy))()


@pytest.mark.parametrize(
    "name", ["Buffer", "PressureEvent", "Registration", "DeviceMemory"]
)
def test_what_only_the_module_makes_cannot_be_made_by_hand(name):
    with pytest.raises((TypeError, RuntimeError)):
        getattr(spyre_alloc, name)()


@pytest.mark.parametrize("name", ["SpyreAllocator", "SimulatedDevice", "NativeWorker", "Buffer"])
def test_an_object_that_was_never_initialised_is_refused(name):
    kind = getattr(spyre_alloc, name)
    empty = kind.__new__(kind)
    for attribute in ("allocate", "memory_stats", "strategy", "calls", "stop", "free", "nbytes"):
        if not hasattr(kind, attribute):
            continue
        with pytest.raises(TypeError):
            getattr(empty, attribute)()
    empty.me = empty


def test_the_edges_of_what_is_allowed(strategy):
    make = spyre_alloc.SpyreAllocator
    assert make(strategy, capacity=128, regions=1).memory_info() == (128, 128)
    assert make(strategy, capacity=64 * 128, regions=64).memory_info()[1] == 64 * 128
    for max_wait in (0, 0.0, 86400, 86400.0):
        make(strategy, capacity="1MiB", max_wait=max_wait)
    for overtake_limit in (0, 2**63 - 1):
        make(strategy, capacity="1MiB", overtake_limit=overtake_limit)
    for look_again in (0.001, 1, 86400):
        make(strategy, capacity="1MiB", look_again=look_again)
    alloc = make(strategy, capacity=2**63, regions=1)
    assert alloc.memory_info()[1] == 16 * 2**30
    for priority in (-(2**31), 2**31 - 1):
        alloc.register_memory_pressure_callback(print, priority)
    assert alloc.allocate(128, max_wait=86400).nbytes == 128
    with pytest.raises(spyre_alloc.OutOfMemoryError, match="larger-than-any-region"):
        alloc.allocate(2**64 - 1)


def test_arguments_may_be_given_by_position(strategy):
    alloc = spyre_alloc.SpyreAllocator(
        strategy, "1MiB", 1, None, 0.5, False, "upfront", "1MiB", None, "least-free", 4, "cause", 0.5
    )
    assert alloc.allocate(128, 0, 0, "bind", "tensor", 1.0).nbytes == 128
    assert alloc.try_allocate(128, [0], 0, "scatter", "program").nbytes == 128


def test_an_empty_list_of_domains_means_any(strategy):
    assert small(strategy).allocate(128, domain=[]).nbytes == 128
