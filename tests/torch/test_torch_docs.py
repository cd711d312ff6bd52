# SPDX-License-Identifier: Apache-2.0
"""What docs/torch.md and the README show of PyTorch runs as it stands."""

import pathlib
import re

import pytest
from support import run_python

ROOT = pathlib.Path(__file__).parent.parent.parent
EXAMPLES = [
    example
    for document in ("docs/torch.md", "README.md")
    for example in re.findall(r"```python\n(.*?)```", (ROOT / document).read_text(), re.S)
    if "torch" in example
]


def test_there_are_examples():
    assert len(EXAMPLES) == 3


@pytest.mark.parametrize("example", EXAMPLES)
def test_it_runs(example):
    done = run_python(example)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout
