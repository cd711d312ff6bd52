# SPDX-License-Identifier: Apache-2.0
"""``python -m spyre_alloc COMMAND``."""

import sys

USAGE = """\
usage: python -m spyre_alloc compare [--torch] [--threads N] [--seconds S] [--capacity C]
                                     [--json FILE]

  compare   run one workload under memory pressure on both strategies and compare them;
            --torch: train with PyTorch on the device spyre
"""


def main(arguments):
    if arguments and arguments[0] == "compare":
        from .compare import main as compare

        return compare(arguments[1:])
    asked = bool(arguments) and arguments[0] in ("-h", "--help")
    print(USAGE, end="", file=sys.stdout if asked else sys.stderr)
    return 0 if asked else 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
