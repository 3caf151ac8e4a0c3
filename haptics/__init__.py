"""Friction elements at 1 kHz, the device interface, the servo and the trace.

This layer depends on NumPy and numba only. It contains no driver, no window and no foreign file format. Its public
names are imported on first use, so that commands without computation start without numba.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path

from haptics.lazy import public_names

__all__, __getattr__, __dir__ = public_names(__name__, __file__)


def main() -> int:
    """Run the command ``haptics`` of an installed package and return its exit status.

    The project installs four top-level packages. Two of their names are common enough to collide with other projects,
    so the command first checks that all of them come from the same installation.
    """
    place = Path(__file__).parents[1]
    for name in ("devices", "calibration", "apps"):
        found = importlib.util.find_spec(name)
        home = Path(found.origin).parents[1] if found is not None and found.origin else None
        if home != place:
            there = "is missing" if home is None else f"comes from another project ({home / name})"
            print(  # noqa: T201
                f"haptics: the package {name!r} {there}, but should lie in {place}. Install haptics in a "
                "virtual environment of its own.",
                file=sys.stderr,
            )
            return 2
    return int(importlib.import_module("apps.cli").run_process())
