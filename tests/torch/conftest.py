# SPDX-License-Identifier: Apache-2.0
"""The helpers of the package's tests serve here, too."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "python"))
