# SPDX-License-Identifier: Apache-2.0
"""Training under memory pressure, measured: what ``python -m spyre_alloc compare --torch`` runs, once
for each strategy in a process of its own.

- trainers: threads that train a small model each, and leave the activations of every step in a
  reference cycle, so that only the garbage collector brings memory back;
- bystanders: threads that ask a model of their own for answers, and leave no garbage.

What is alive fits the device at every moment, so each out-of-memory is a false one.
"""

import gc
import json
import sys
import threading
import time

import torch

import spyre_alloc

from ..workload import percentiles, pressure_figures
from . import configuration

__all__ = ["TrainingOptions", "run_workload"]

_WIDTH = 64


class TrainingOptions:
    """What to run.

    Parameters
    ----------
    threads : int
        Trainers; there are half as many bystanders, at least one.
    seconds : float
        How long they run.
    capacity : int
        Bytes of the device.
    """

    def __init__(self, threads=4, seconds=5.0, capacity=64 << 20):
        self.threads = threads
        self.others = max(1, threads // 2)
        self.seconds = seconds
        self.capacity = capacity
        # At its peak a trainer holds about 12 activations, those that PyTorch makes for itself
        # included, and the weights of its model; a bystander holds less. A quarter of the device is
        # never alive, for fragmentation.
        weights = 8 * 4 * (_WIDTH * _WIDTH + 4 * _WIDTH)
        share = capacity * 3 // 4 // (threads + self.others) - weights
        self.rows = share // 12 // (4 * _WIDTH)
        if self.rows < 1:
            least = (12 * 4 * _WIDTH + weights) * (threads + self.others) * 4 // 3 + 1
            raise ValueError(f"capacity is {capacity}; {threads} threads need at least {least} bytes")


class _Node:
    """A cycle of its own; what it holds is freed by the garbage collector only."""

    def __init__(self, *held):
        self.me = self
        self.held = held


class _Thread(threading.Thread):
    def __init__(self, options, stop):
        super().__init__(daemon=True)
        self.stop = stop
        self.latencies = []
        self.out_of_memory = 0
        self.error = None
        self.model = torch.nn.Sequential(
            torch.nn.Linear(_WIDTH, _WIDTH), torch.nn.Tanh(), torch.nn.Linear(_WIDTH, 1)
        ).to("spyre")
        self.data = torch.randn(options.rows, _WIDTH).to("spyre")

    def run(self):
        try:
            while not self.stop.is_set():
                began = time.perf_counter_ns()
                try:
                    self.step()
                except torch.OutOfMemoryError:
                    self.out_of_memory += 1
                self.latencies.append(time.perf_counter_ns() - began)
        except BaseException as error:  # reported by run_workload
            self.error = error


class _Trainer(_Thread):
    def step(self):
        hidden = self.model[:2](self.data)
        loss = self.model[2](hidden).pow(2).mean()
        loss.backward()
        with torch.no_grad():
            for parameter in self.model.parameters():
                parameter.sub_(parameter.grad, alpha=0.01)
                parameter.grad = None
        _Node(hidden, loss)


class _Bystander(_Thread):
    def step(self):
        with torch.no_grad():
            self.model(self.data[:1])


def run_workload(strategy, options):
    """Run the workload on one strategy; once a process.

    Returns
    -------
    dict
        As :func:`spyre_alloc.workload.run_workload` returns, and steps instead of allocations.
    """
    configuration.configure(
        strategy=strategy,
        capacity=options.capacity,
        regions=1,
        max_wait=60.0,
        gc=spyre_alloc.GcOptions(young_first=True, patience=60.0),
    )
    stop = threading.Event()
    trainers = [_Trainer(options, stop) for _ in range(options.threads)]
    bystanders = [_Bystander(options, stop) for _ in range(options.others)]
    gc.collect()
    gc.disable()  # garbage goes by pressure alone, so that the strategies are what is compared
    began = time.perf_counter()
    for thread in trainers + bystanders:
        thread.start()
    time.sleep(options.seconds)
    stop.set()
    for thread in trainers + bystanders:
        thread.join()
    seconds = time.perf_counter() - began
    gc.enable()
    for thread in trainers + bystanders:
        if thread.error is not None:
            raise thread.error
    allocator = configuration.allocator()
    allocator.check_invariants()

    steps = sum(len(thread.latencies) for thread in trainers)
    return {
        "seconds": seconds,
        "steps": steps,
        "steps_per_second": steps / seconds,
        "allocations": allocator.memory_stats()["allocation.all.allocated"],
        **pressure_figures(allocator),
        "false_out_of_memory": sum(thread.out_of_memory for thread in trainers + bystanders),
        "step_ns": percentiles([ns for thread in trainers for ns in thread.latencies]),
        "bystander_latency_ns": percentiles([ns for thread in bystanders for ns in thread.latencies]),
    }


if __name__ == "__main__":
    wanted = json.loads(sys.argv[1])
    result = run_workload(wanted.pop("strategy"), TrainingOptions(**wanted))
    print(json.dumps(result))
