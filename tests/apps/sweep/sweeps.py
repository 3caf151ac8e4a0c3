"""Sweep files for tests, and user-defined functions of a sweep."""

import os
import signal
from pathlib import Path

import numpy as np

SMALL = """\
[sweep]
duration = 0.4
settle = 0.1

[session]
model = "C"

[device]
name = "virtual-joystick"

[law]
name = "coulomb"
force = 2.0

[[axes]]
setting = "law.force"
values = [1.0, 2.0, 4.0]

[[axes]]
setting = "element.stiffness"
start = 1000.0
stop = 4000.0
count = 3
scale = "log"
"""


def written(folder, old="", new="", text=SMALL):
    """Write a sweep with `old`, which must be in it, replaced by `new`; return the file."""
    assert old in text
    path = folder / "sweep.toml"
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    return path


def largest_force(rows):
    """Return the largest command and the number of rows."""
    return {"largest_force_n": float(np.hypot(*rows["command"].T).max()), "rows": len(rows)}


def fails_at_four(rows):
    """Fail where the friction was 4 N."""
    force = float(np.hypot(*rows["friction_force"].T).max())
    if force > 3.0:
        raise ZeroDivisionError("unexpected")
    return force


def kills_its_worker_once(rows):
    """Kill its process at the first call, as the system does when memory runs out."""
    mark = Path(os.environ["HAPTICS_TEST_MARK"])
    if not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return float(len(rows))
