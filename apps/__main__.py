"""``python -m apps`` is the command ``haptics``."""

import sys

from apps.cli import main

if __name__ == "__main__":
    sys.exit(main())
