# SPDX-License-Identifier: Apache-2.0
"""One workload under memory pressure, measured.

Three kinds of threads share one allocator on a small simulated device:

- requesters: Python threads whose garbage is cyclic and holds buffers, so that only the garbage
  collector brings memory back. They drive the device into exhaustion again and again.
- bystanders: Python threads with steady live data of smaller buffers, which they replace one by one.
- native threads: C++ threads off the GIL that do the same.

What is alive fits the device at every moment, so each OutOfMemoryError is a false one.
"""

import gc
import threading
import time

from . import GcOptions, NativeWorker, OutOfMemoryError, SpyreAllocator

__all__ = ["WorkloadOptions", "percentiles", "pressure_figures", "run_workload"]

_GRANULE = 128


class WorkloadOptions:
    """What to run.

    Parameters
    ----------
    threads : int
        Requesters; there are half as many bystanders and native threads each, at least one.
    seconds : float
        How long they run.
    capacity : int
        Bytes of the simulated device.
    """

    def __init__(self, threads=4, seconds=5.0, capacity=64 << 20):
        self.threads = threads
        self.others = max(1, threads // 2)
        self.seconds = seconds
        self.capacity = capacity
        # A requester keeps 2 blocks and asks for a third; a bystander or native thread keeps 4 small
        # ones, one eighth the size. A quarter of the device is never alive, for fragmentation.
        blocks = threads * 3 + self.others
        self.block = capacity * 3 // 4 // blocks // _GRANULE * _GRANULE
        self.small = self.block // 8 // _GRANULE * _GRANULE
        if self.small < _GRANULE:
            raise ValueError(
                f"capacity is {capacity}; {threads} threads need at least "
                f"{(blocks * 8 * _GRANULE * 4 + 2) // 3 + blocks * _GRANULE} bytes"
            )


class _Node:
    """A cycle of its own; what it holds is freed by the garbage collector only."""

    def __init__(self, buffer):
        self.me = self
        self.buffer = buffer


class _Thread(threading.Thread):
    def __init__(self, allocator, nbytes, stop):
        super().__init__(daemon=True)
        self.allocator = allocator
        self.nbytes = nbytes
        self.stop = stop
        self.latencies = []
        self.allocations = 0
        self.out_of_memory = 0
        self.error = None

    def timed_allocate(self):
        began = time.perf_counter_ns()
        try:
            buffer = self.allocator.allocate(self.nbytes)
        except OutOfMemoryError:
            self.out_of_memory += 1
            return None
        finally:
            self.latencies.append(time.perf_counter_ns() - began)
        self.allocations += 1
        return buffer

    def run(self):
        try:
            self.work()
        except BaseException as error:  # reported by run_workload
            self.error = error


class _Requester(_Thread):
    def work(self):
        live = []
        while not self.stop.is_set():
            live.append(_Node(self.timed_allocate()))
            if len(live) > 2:
                del live[0]


class _Bystander(_Thread):
    def work(self):
        live = []
        while not self.stop.is_set():
            if len(live) == 4:
                del live[0]
            live.append(self.timed_allocate())
            time.sleep(0)  # as a thread does that also computes: lets others have the GIL


def percentiles(values):
    """p50, p99 and max of a list of numbers, as a dict; zeros if there are none."""
    if not values:
        return {"p50": 0, "p99": 0, "max": 0}
    ordered = sorted(values)

    def at(share):
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))]

    return {"p50": at(0.50), "p99": at(0.99), "max": ordered[-1]}


def pressure_figures(allocator):
    """What pressure did to an allocator, as workloads report it: a dict of counts and bytes."""
    pressure = allocator.pressure_stats()
    return {
        "pressure_events": pressure["events"],
        "reclaims": pressure["reclaims"],
        "coalesced": pressure["coalesced"],
        "collections": pressure["collections"],
        "collections_skipped": pressure["collections_skipped"],
        "handoffs": pressure["handoffs"],
        "timeouts": pressure["timeouts"],
        "bytes_reclaimed": pressure["bytes_reclaimed"],
    }


def run_workload(strategy, options, progress=None):
    """Run the workload on one strategy.

    Parameters
    ----------
    strategy : str
        ``'hold-mutex'`` or ``'release-condvar'``.
    options : WorkloadOptions
    progress : callable, optional
        Called now and then with the share of the time that has passed, 0 to 1.

    Returns
    -------
    dict
        Counts, times in nanoseconds, bytes. ``requester_stall_ns`` are the calls of requesters that
        took at least 100 microseconds: those that had to wait or to reclaim.
    """
    allocator = SpyreAllocator(
        strategy,
        capacity=options.capacity,
        regions=1,
        max_wait=60.0,
        gc=GcOptions(patience=60.0),
    )
    was_enabled = gc.isenabled()
    gc.collect()
    gc.disable()  # garbage goes by pressure alone, so that the strategies are what is compared
    stop = threading.Event()
    requesters = [_Requester(allocator, options.block, stop) for _ in range(options.threads)]
    bystanders = [_Bystander(allocator, options.small, stop) for _ in range(options.others)]
    began = time.perf_counter()
    natives = [
        NativeWorker(allocator, options.small, live=4, pause=20e-6) for _ in range(options.others)
    ]
    try:
        for thread in requesters + bystanders:
            thread.start()
        while (passed := time.perf_counter() - began) < options.seconds:
            if progress is not None:
                progress(passed / options.seconds)
            time.sleep(min(0.1, options.seconds - passed))
    finally:
        stop.set()
        for thread in requesters + bystanders:
            thread.join()
        for native in natives:
            native.stop()
        if was_enabled:
            gc.enable()
    seconds = time.perf_counter() - began
    for thread in requesters + bystanders:
        if thread.error is not None:
            raise thread.error
    gc.collect()
    allocator.check_invariants()

    everyone = requesters + bystanders + natives
    allocations = sum(each.allocations for each in everyone)
    return {
        "seconds": seconds,
        "allocations": allocations,
        "allocations_per_second": allocations / seconds,
        **pressure_figures(allocator),
        "false_out_of_memory": sum(each.out_of_memory for each in everyone),
        "requester_stall_ns": percentiles(
            [ns for each in requesters for ns in each.latencies if ns >= 100_000]
        ),
        "bystander_latency_ns": percentiles([ns for each in bystanders for ns in each.latencies]),
        "native_latency_ns": percentiles([ns for each in natives for ns in each.latencies()]),
    }
