# SPDX-License-Identifier: Apache-2.0
"""Fixtures, and how property tests are run."""

import gc

import hypothesis
import pytest
from support import STRATEGIES

hypothesis.settings.register_profile(
    "flexalloc",
    derandomize=True,
    database=None,
    deadline=None,
    print_blob=True,
    suppress_health_check=list(hypothesis.HealthCheck),
)
hypothesis.settings.load_profile("flexalloc")


@pytest.fixture(params=STRATEGIES)
def strategy(request):
    return request.param


@pytest.fixture
def manual_gc():
    """Garbage is collected only where the test or the allocator says so, and quickly."""
    gc.collect()
    gc.disable()
    gc.freeze()
    yield gc
    gc.unfreeze()
    gc.enable()
