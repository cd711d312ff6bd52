# SPDX-License-Identifier: Apache-2.0
"""The helpers of the package's tests serve here, too; programs that tests run find those of both."""

import os
import pathlib
import sys

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "python"))
os.environ["PYTHONPATH"] = os.pathsep.join(
    filter(None, [str(HERE), os.environ.get("PYTHONPATH", "")])
)
