# SPDX-License-Identifier: Apache-2.0
"""Every parameter of every call: what is refused, with which error, and what the text says."""

import re

import pytest
import spyre_alloc
from support import BLOCK, small

SIZE = "an int (bytes) or a str such as '64MiB'"
NOT_A_SIZE = "write bytes (4096) or a number with a unit"
HUGE = 2**64

# parameter: (value, error, what the text says beside the parameter's name)
ALLOCATOR = {
    "strategy": [
        ("other", ValueError, "'hold-mutex', 'release-condvar'"),
        ("hold-mutex\0", ValueError, "'hold-mutex', 'release-condvar'"),
        ("", ValueError, "'hold-mutex', 'release-condvar'"),
        (None, TypeError, "must be a str"),
        (1, TypeError, "must be a str, not int"),
        (b"hold-mutex", TypeError, "must be a str, not bytes"),
    ],
    "capacity": [
        (-1, ValueError, "128 and more"),
        (0, ValueError, "128 and more"),
        ("127", ValueError, "128 and more"),
        (-HUGE, ValueError, "128 and more"),
        (HUGE, OverflowError, "64 bits"),
        ("99999999999TiB", OverflowError, "64 bits"),
        ("1" * 40, OverflowError, "64 bits"),
        ("8 elephants", ValueError, NOT_A_SIZE),
        ("", ValueError, NOT_A_SIZE),
        ("-1", ValueError, NOT_A_SIZE),
        ("1e9", ValueError, NOT_A_SIZE),
        ("0x10", ValueError, NOT_A_SIZE),
        ("1.2.3MiB", ValueError, NOT_A_SIZE),
        ("\ud800", ValueError, "no valid text"),
        (1.0, TypeError, SIZE),
        (True, TypeError, SIZE),
        (b"1MiB", TypeError, SIZE),
    ],
    "regions": [
        (0, ValueError, "1 to 64"),
        (65, ValueError, "1 to 64"),
        (-1, ValueError, "1 to 64"),
        (HUGE, ValueError, "1 to 64"),
        ("7", TypeError, "must be an int"),
        (7.0, TypeError, "must be an int"),
        (None, TypeError, "must be an int"),
        (True, TypeError, "must be an int"),
    ],
    "device": [
        (1, TypeError, "SimulatedDevice, OffsetDevice or None"),
        ("simulated", TypeError, "SimulatedDevice, OffsetDevice or None"),
        (spyre_alloc.SimulatedDevice, TypeError, "SimulatedDevice, OffsetDevice or None"),
    ],
    "max_wait": [
        (-0.1, ValueError, "0 to 86400"),
        (86401, ValueError, "0 to 86400"),
        (10**400, ValueError, "0 to 86400"),
        (float("inf"), ValueError, "0 to 86400"),
        (float("nan"), ValueError, "0 to 86400"),
        ("1", TypeError, "must be a number"),
        (True, TypeError, "must be a number"),
        (None, TypeError, "must be a number"),
        (1j, TypeError, "must be a number"),
    ],
    "gc": [
        (None, TypeError, "True, False or GcOptions"),
        (1, TypeError, "True, False or GcOptions"),
        (spyre_alloc.GcOptions, TypeError, "True, False or GcOptions"),
    ],
    "acquisition": [
        ("later", ValueError, "'upfront', 'on-demand'"),
        (None, TypeError, "must be a str"),
    ],
    "max_region": [
        (0, ValueError, "128 and more"),
        (HUGE, OverflowError, "64 bits"),
        ("big", ValueError, NOT_A_SIZE),
        (None, TypeError, SIZE),
    ],
    "fallback_sizes": [
        ([], ValueError, "empty"),
        ([1], ValueError, "128 and more"),
        (["1GiB", "much"], ValueError, NOT_A_SIZE),
        ([None], TypeError, SIZE),
        (5, TypeError, "list or tuple"),
        ("12GiB", TypeError, "list or tuple"),
        (iter([1]), TypeError, "list or tuple"),
    ],
    "region_order": [
        ("random", ValueError, "'most-free', 'least-free'"),
        (0, TypeError, "must be a str"),
    ],
    "overtake_limit": [
        (-1, ValueError, "0 to"),
        (HUGE, ValueError, "0 to"),
        (1.5, TypeError, "must be an int"),
        (None, TypeError, "must be an int"),
    ],
    "look_again": [
        (0, ValueError, "0.001 to 86400"),
        (-1, ValueError, "0.001 to 86400"),
        (float("nan"), ValueError, "0.001 to 86400"),
        (HUGE, ValueError, "0.001 to 86400"),
        ("1", TypeError, "must be a number"),
        (None, TypeError, "must be a number"),
    ],
    "callback_errors": [
        ("ignore", ValueError, "'cause', 'propagate'"),
        (None, TypeError, "must be a str"),
    ],
}
PLACEMENT = {
    "nbytes": [
        (-1, ValueError, "0 and more"),
        (-HUGE, ValueError, "0 and more"),
        (HUGE, OverflowError, "64 bits"),
        ("many", ValueError, NOT_A_SIZE),
        (None, TypeError, SIZE),
        (1.0, TypeError, SIZE),
        (True, TypeError, SIZE),
        ([1], TypeError, SIZE),
    ],
    "domain": [
        (1, ValueError, "the device has 0 to 0"),
        (-1, ValueError, "0 to 4294967295"),
        (HUGE, ValueError, "0 to 4294967295"),
        ([0, 0], ValueError, "named twice"),
        ([0, 1], ValueError, "the device has 0 to 0"),
        ("0", TypeError, "list or tuple of ints"),
        (1.0, TypeError, "list or tuple of ints"),
        (["0"], TypeError, "must be an int"),
        (True, TypeError, "must be an int"),
        (iter([0]), TypeError, "list or tuple of ints"),
    ],
    "near": [
        (1, ValueError, "the device has 0 to 0"),
        (-1, ValueError, "0 to 4294967295"),
        ("0", TypeError, "must be an int"),
        ([0], TypeError, "must be an int"),
    ],
    "policy": [
        ("spread", ValueError, "'bind', 'interleave', 'scatter'"),
        ("interleave", ValueError, "two or more domains"),
        (0, TypeError, "must be a str"),
    ],
    "memory_type": [
        ("code", ValueError, "'tensor', 'program'"),
        (0, TypeError, "must be a str"),
    ],
}
WAIT = {"max_wait": [row for row in ALLOCATOR["max_wait"] if row[0] is not None]}
CALLBACK = {
    "fn": [(None, TypeError, "callable"), (1, TypeError, "callable, not int")],
    "priority": [
        (2**31, ValueError, "-2147483648 to 2147483647"),
        (-HUGE, ValueError, "-2147483648 to 2147483647"),
        ("0", TypeError, "must be an int"),
        (None, TypeError, "must be an int"),
    ],
}
SECONDS = [
    (-1, ValueError, "0 to"),
    (3601, ValueError, "0 to 3600"),
    (float("nan"), ValueError, "0 to"),
    ("1", TypeError, "must be a number"),
    (None, TypeError, "must be a number"),
]
GC_OPTIONS = {
    "young_first": [(1, TypeError, "True or False"), (None, TypeError, "True or False")],
    "respect_disable": [("yes", TypeError, "True or False")],
    "patience": SECONDS,
    "min_interval": SECONDS,
    "budget": [(1.01, ValueError, "0 to 1"), (-0.01, ValueError, "0 to 1")],
    "burst": SECONDS,
}
WORKER = {
    "allocator": [(None, TypeError, "SpyreAllocator"), (1, TypeError, "SpyreAllocator")],
    "nbytes": [(0, ValueError, "1 and more"), (None, TypeError, SIZE)],
    "live": [(0, ValueError, "1 to 1000000"), (1.0, TypeError, "must be an int")],
    "iterations": [(-1, ValueError, "0 to"), ("1", TypeError, "must be an int")],
    "pause": [(-1, ValueError, "0 to 60"), (61, ValueError, "0 to 60")],
}


def rows(table):
    return [
        pytest.param(name, *row, id=f"{name}-{number}")
        for name, cases in table.items()
        for number, row in enumerate(cases)
    ]


def refused(function, name, error, text, /, **arguments):
    with pytest.raises(error) as caught:
        function(**arguments)
    assert type(caught.value) is error
    said = str(caught.value)
    assert re.search(re.escape(text), said), said
    assert name in said or "domain" in said, said


@pytest.mark.parametrize("name, value, error, text", rows(ALLOCATOR))
def test_the_allocator_refuses(name, value, error, text):
    refused(spyre_alloc.SpyreAllocator, name, error, text, **{name: value})


@pytest.mark.parametrize("call", ["allocate", "try_allocate"])
@pytest.mark.parametrize("name, value, error, text", rows(PLACEMENT))
def test_a_request_refuses_and_changes_nothing(strategy, call, name, value, error, text):
    alloc = small(strategy)
    before = alloc.memory_stats(), alloc.pressure_stats()
    refused(getattr(alloc, call), name, error, text, **{"nbytes": BLOCK, name: value})
    assert (alloc.memory_stats(), alloc.pressure_stats()) == before


@pytest.mark.parametrize("name, value, error, text", rows(WAIT))
def test_a_request_refuses_a_wait_and_changes_nothing(strategy, name, value, error, text):
    alloc = small(strategy)
    refused(alloc.allocate, name, error, text, **{"nbytes": BLOCK, name: value})
    assert alloc.memory_stats()["allocation.all.allocated"] == 0


@pytest.mark.parametrize("name, value, error, text", rows(CALLBACK))
def test_registering_refuses(strategy, name, value, error, text):
    alloc = small(strategy)
    function = alloc.register_memory_pressure_callback
    refused(function, name, error, text, **{"fn": print, name: value})


@pytest.mark.parametrize("name, value, error, text", rows(GC_OPTIONS))
def test_gc_options_refuse(name, value, error, text):
    refused(spyre_alloc.GcOptions, name, error, text, **{name: value})


@pytest.mark.parametrize("name, value, error, text", rows(WORKER))
def test_a_worker_refuses(name, value, error, text):
    arguments = {"allocator": small("hold-mutex"), "nbytes": BLOCK, name: value}
    refused(spyre_alloc.NativeWorker, name, error, text, **arguments)


def test_capacity_and_device_exclude_each_other():
    device = spyre_alloc.SimulatedDevice("1MiB")
    with pytest.raises(ValueError, match="capacity and device exclude each other"):
        spyre_alloc.SpyreAllocator(capacity="1MiB", device=device)


def test_more_regions_than_the_capacity_can_bear_are_refused():
    with pytest.raises(ValueError, match="7 regions of at least 128"):
        spyre_alloc.SpyreAllocator(capacity=128)
