# SPDX-License-Identifier: Apache-2.0
"""What one allocate and one drop cost from Python, ours beside numpy.empty: prints JSON in ns."""

import json
import statistics
import time

import numpy

import spyre_alloc

PAIRS = 20_000
REPEATS = 9


def measure(allocate, nbytes):
    began = time.perf_counter_ns()
    for _ in range(PAIRS):
        allocate(nbytes)
    return (time.perf_counter_ns() - began) / PAIRS


def main():
    hold = spyre_alloc.SpyreAllocator(strategy="hold-mutex", capacity="1GiB", regions=1)
    release = spyre_alloc.SpyreAllocator(strategy="release-condvar", capacity="1GiB", regions=1)
    # numpy.empty counts in elements of 8 bytes unless it is given a type, which costs it more.
    peers = {
        "flex-hold": hold.allocate,
        "flex-release": release.allocate,
        "numpy": numpy.empty,
    }
    results = {}
    for nbytes in (4096, 65536, 1 << 20):
        times = {peer: [] for peer in peers}
        for _ in range(REPEATS):
            for peer, allocate in peers.items():
                times[peer].append(measure(allocate, nbytes // 8 if peer == "numpy" else nbytes))
        results[f"PYTHON/{nbytes}"] = {
            peer: statistics.median(values) for peer, values in times.items()
        }
    print(json.dumps(results))


main()
