"""Run the command ``haptics`` with ``python -m apps``."""

import sys

from apps.cli import run_process

if __name__ == "__main__":
    sys.exit(run_process())
