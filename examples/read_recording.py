"""What a recording holds, and how to get at it with NumPy alone.

Usage: ``python examples/read_recording.py recordings/2026-...``
"""

import json
import sys
from pathlib import Path

import numpy as np

folder = Path(sys.argv[1])
about = json.loads((folder / "recording.json").read_text())
ticks = folder / "ticks.npy"
rows = np.load(ticks if ticks.exists() else folder / "ticks.npy.part", mmap_mode="r")

print(f"{about['device']['name']}, model {about['model']}, {about['rate_hz']:g} Hz, started {about['started']}")
for name, unit in about["columns"].items():
    print(f"  {name:<20} [{unit}]")
work = np.sum(rows["friction_force"] * rows["sliding_velocity"]) / about["rate_hz"]
print(f"{len(rows)} ticks; energy taken by the friction: {work:.4f} J")
