# SPDX-License-Identifier: Apache-2.0
"""What torch.empty and dropping its result cost, on the device spyre beside the CPU: prints JSON in ns.

Run it where the package is: PYTHONPATH=build/release/python python3 benchmarks/torch_empty.py
"""

import json
import statistics
import time

import torch

PAIRS = 20_000
REPEATS = 15


def measure(device, count):
    began = time.perf_counter_ns()
    for _ in range(PAIRS):
        torch.empty(count, device=device)
    return (time.perf_counter_ns() - began) / PAIRS


def main():
    results = {}
    for count in (1024, 16 * 1024, 1 << 20):
        times = {"cpu": [], "spyre": []}
        for _ in range(REPEATS):
            for device, values in times.items():
                values.append(measure(device, count))
        median = {device: statistics.median(values) for device, values in times.items()}
        ratio = median["spyre"] / median["cpu"]
        results[f"TORCH/{4 * count}"] = {**median, "ratio": round(ratio, 2)}
    print(json.dumps(results, indent=2))


if __name__ == "__main__":
    main()
