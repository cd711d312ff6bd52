# SPDX-License-Identifier: Apache-2.0
"""``python -m spyre_alloc compare --torch``: a table and figures of both strategies."""

import json

from support import run_python

COMPARE = "import sys; from spyre_alloc.compare import main; sys.exit(main(sys.argv[1:]))"


def test_both_strategies_train_under_pressure_and_no_request_fails(tmp_path):
    file = tmp_path / "figures.json"
    # Small enough that a second of a slow machine meets pressure.
    done = run_python(COMPARE, "--torch", "--seconds", 2, "--capacity", "4MiB", "--json", file)
    assert done.returncode == 0, done.stderr
    for title in ("training steps/s", "reclaims", "false out-of-memory", "bystander latency p99"):
        assert title in done.stdout
    report = json.loads(file.read_text())
    assert report["workload"] == "torch"
    assert list(report["strategies"]) == ["hold-mutex", "release-condvar"]
    for figures in report["strategies"].values():
        assert figures["steps"] > 0
        assert figures["false_out_of_memory"] == 0
        assert figures["reclaims"] > 0 and figures["collections"] > 0
        assert figures["bytes_reclaimed"] > 0
        assert 0 < figures["step_ns"]["p50"] <= figures["step_ns"]["max"]


def test_too_small_a_device_is_refused():
    done = run_python(COMPARE, "--torch", "--capacity", "64KiB")
    assert done.returncode == 2
    assert "need at least" in done.stderr
