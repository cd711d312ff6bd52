# SPDX-License-Identifier: Apache-2.0
"""``python -m spyre_alloc compare``: one workload on both strategies, side by side."""

import argparse
import importlib.util
import json
import platform
import subprocess
import sys

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from . import __version__
from ._core import format_bytes, parse_bytes
from .workload import WorkloadOptions, run_workload

__all__ = ["main"]

STRATEGIES = ("hold-mutex", "release-condvar")


def _size(text):
    try:
        nbytes = parse_bytes(text)
    except (ValueError, OverflowError) as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    if not 0 < nbytes < 1 << 47:
        raise argparse.ArgumentTypeError(f"{text!r} is not between 1 byte and 128 TiB")
    return nbytes


def _positive(kind, most):
    def parse(text):
        try:
            value = kind(text)
        except ValueError:
            raise argparse.ArgumentTypeError(f"{text!r} is not a number") from None
        if not 0 < value <= most:
            raise argparse.ArgumentTypeError(f"{text} is not above 0 and at most {most}")
        return value

    return parse


def _duration(ns):
    if ns < 1_000:
        return f"{ns} ns"
    if ns < 1_000_000:
        return f"{ns / 1e3:.1f} µs"
    if ns < 1_000_000_000:
        return f"{ns / 1e6:.1f} ms"
    return f"{ns / 1e9:.2f} s"


def _rows(result):
    if "steps_per_second" in result:
        yield "training steps/s", f"{result['steps_per_second']:,.0f}"
    else:
        yield "allocations/s", f"{result['allocations_per_second']:,.0f}"
    yield "pressure events", f"{result['pressure_events']:,}"
    yield "reclaims", f"{result['reclaims']:,}"
    yield "coalesced requests", f"{result['coalesced']:,}"
    yield "collections that did not run", f"{result['collections_skipped']:,}"
    yield "hand-offs", f"{result['handoffs']:,}"
    yield "false out-of-memory", f"{result['false_out_of_memory']:,}"
    yield "bytes reclaimed", format_bytes(result["bytes_reclaimed"])
    for title, key in (
        ("training step", "step_ns"),
        ("requester stall", "requester_stall_ns"),
        ("bystander latency", "bystander_latency_ns"),
        ("native thread latency", "native_latency_ns"),
    ):
        for point in ("p50", "p99", "max") if key in result else ():
            yield f"{title} {point}", _duration(result[key][point])


def _print_table(console, options, threads, results):
    table = Table(
        title=f"{threads}, {format_bytes(options.capacity)} device, {options.seconds:g} s each"
    )
    table.add_column("")
    for strategy in results:
        table.add_column(strategy, justify="right")
    for rows in zip(*(_rows(result) for result in results.values())):
        false_oom = rows[0][0] == "false out-of-memory"
        bad = false_oom and any(value != "0" for _, value in rows)
        table.add_row(rows[0][0], *(value for _, value in rows), style="bold red" if bad else None)
    console.print(table)


def _run(options, results):
    """The workload of this package; all strategies in this process, one after the other."""
    columns = (TextColumn("{task.description:>16}"), BarColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(file=sys.stderr), transient=True) as progress:
        for strategy in STRATEGIES:
            task = progress.add_task(strategy, total=1.0)
            results[strategy] = run_workload(
                strategy, options, lambda share: progress.update(task, completed=share)
            )
            progress.update(task, completed=1.0)
    return f"{options.threads} requesters, {options.others} bystanders, {options.others} native threads"


def _run_torch(options, results):
    """Training with PyTorch, whose device has one allocator a process: so a process each."""
    for strategy in STRATEGIES:
        wanted = {
            "strategy": strategy,
            "threads": options.threads,
            "seconds": options.seconds,
            "capacity": options.capacity,
        }
        run = subprocess.run(
            [sys.executable, "-m", "spyre_alloc.torch.training_workload", json.dumps(wanted)],
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
        results[strategy] = json.loads(run.stdout)
    return f"{options.threads} trainers, {options.others} bystanders"


def main(arguments=None):
    """Run the comparison; returns the exit status (1 if a request failed that had to be served)."""
    parser = argparse.ArgumentParser(
        prog="python -m spyre_alloc compare",
        description="Run one workload under memory pressure on both strategies and compare them.",
    )
    parser.add_argument("--threads", type=_positive(int, 256), default=4, help="requesters (4)")
    parser.add_argument(
        "--seconds", type=_positive(float, 86400), default=5.0, help="for each strategy (5)"
    )
    parser.add_argument("--capacity", type=_size, help="of the device (64MiB; with --torch 8MiB)")
    parser.add_argument(
        "--torch", action="store_true", help="train with PyTorch on the device spyre instead"
    )
    parser.add_argument("--json", metavar="FILE", help="write the figures there; - is the output")
    parsed = parser.parse_args(arguments)
    if parsed.torch and importlib.util.find_spec("spyre_alloc._torch") is None:
        parser.error("--torch needs the PyTorch back end, which was not built: no suitable PyTorch")
    try:
        if parsed.torch:
            from .torch.training_workload import TrainingOptions as Options
        else:
            Options = WorkloadOptions
        capacity = parsed.capacity or (8 << 20 if parsed.torch else 64 << 20)
        options = Options(parsed.threads, parsed.seconds, capacity)
    except ValueError as error:
        parser.error(str(error))

    if parsed.json not in (None, "-"):
        try:
            open(parsed.json, "a", encoding="utf-8").close()
        except OSError as error:
            parser.error(f"--json: {error}")

    # Progress and table go where people look; the output stays clean for --json -.
    console = Console(file=sys.stderr if parsed.json == "-" else sys.stdout)
    results = {}
    threads = (_run_torch if parsed.torch else _run)(options, results)
    _print_table(console, options, threads, results)

    if parsed.json:
        report = {
            "version": __version__,
            "python": platform.python_version(),
            "machine": platform.machine(),
            "workload": "torch" if parsed.torch else "buffers",
            "threads": options.threads,
            "seconds": options.seconds,
            "capacity": options.capacity,
            "strategies": results,
        }
        text = json.dumps(report, indent=2) + "\n"
        if parsed.json == "-":
            sys.stdout.write(text)
        else:
            with open(parsed.json, "w", encoding="utf-8") as file:
                file.write(text)
    return 0 if not any(result["false_out_of_memory"] for result in results.values()) else 1
