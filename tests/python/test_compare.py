# SPDX-License-Identifier: Apache-2.0
"""``python -m spyre_alloc compare``: what it takes, what it shows and writes, how it ends."""

import json
import subprocess
import sys

import pytest
from support import SLOWNESS, STRATEGIES


def spyre_alloc_command(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "spyre_alloc", *arguments],
        capture_output=True,
        text=True,
        timeout=60 * SLOWNESS,
    )


def compare(*arguments):
    return spyre_alloc_command("compare", *arguments)


def test_a_run_shows_a_table_and_writes_the_figures(tmp_path):
    file = tmp_path / "figures.json"
    done = compare("--threads", "2", "--seconds", "0.5", "--capacity", "8MiB", "--json", file)
    assert done.returncode == 0, done.stderr
    for word in (*STRATEGIES, "8.00 MiB", "false out-of-memory", "bystander latency p99"):
        assert word in done.stdout
    report = json.loads(file.read_text())
    assert (report["threads"], report["seconds"], report["capacity"]) == (2, 0.5, 8 << 20)
    assert tuple(report["strategies"]) == STRATEGIES
    for figures in report["strategies"].values():
        assert figures["allocations"] > figures["pressure_events"] > 0
        assert figures["reclaims"] > 0 and figures["bytes_reclaimed"] > 0
        assert figures["false_out_of_memory"] == 0
        for name in ("requester_stall_ns", "bystander_latency_ns", "native_latency_ns"):
            points = figures[name]
            assert 0 < points["p50"] <= points["p99"] <= points["max"]


def test_figures_on_the_output_are_all_that_is_there():
    done = compare("--threads", "1", "--seconds", "0.2", "--json", "-")
    assert done.returncode == 0, done.stderr
    assert tuple(json.loads(done.stdout)["strategies"]) == STRATEGIES
    assert "false out-of-memory" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--threads", "0"], "0 is not above 0 and at most 256"),
        (["--threads", "many"], "'many' is not a number"),
        (["--seconds", "-1"], "-1 is not above 0"),
        (["--seconds", "nan"], "nan is not above 0"),
        (["--capacity", "8 elephants"], "8 elephants"),
        (["--capacity", "0"], "'0' is not between 1 byte and 128 TiB"),
        (["--capacity", "1000TiB"], "'1000TiB' is not between 1 byte and 128 TiB"),
        (["--capacity", "1KiB"], "4 threads need at least"),
        (["--strategy", "x"], "unrecognized arguments"),
    ],
)
def test_bad_arguments_are_explained(arguments, says):
    done = compare(*arguments)
    assert done.returncode == 2
    assert says in done.stderr and "Traceback" not in done.stderr


def test_a_file_that_cannot_be_written_is_known_before_the_run(tmp_path):
    done = compare("--seconds", "3600", "--json", tmp_path / "missing" / "figures.json")
    assert done.returncode == 2
    assert "figures.json" in done.stderr and "Traceback" not in done.stderr


def test_the_command_says_what_there_is():
    asked = spyre_alloc_command("--help")
    assert asked.returncode == 0 and "compare" in asked.stdout
    for arguments in ((), ("campare",)):
        done = spyre_alloc_command(*arguments)
        assert done.returncode == 2 and "compare" in done.stderr
