"""Experiments for tests, as text that may be changed."""

from __future__ import annotations

from pathlib import Path

WEBER = """\
[experiment]
name = "weber"
task = "discrimination"
seed = 7

[session]
model = "C"

[device]
name = "virtual-joystick"

[hand]
points = [[-0.03, 0.0], [0.03, 0.0]]
rest_force = 0.0
rest_grip = 1.0
rest = 0.4

[law]
name = "coulomb"

[stimulus]
axis = "law.force"

[[conditions]]
name = "1 N"
reference = 1.0

[[conditions]]
name = "2 N"
reference = 2.0
procedure = { most_trials = 3 }

[procedure]
kind = "staircase"
start = 0.5
minimum = 0.02
maximum = 2.0
reversals = 20
most_trials = 4

[catch]
easy = 0.2

[trials]
block = 5

[exploration]
start = [-0.03, 0.0]
strokes = 2
least_speed = 0.025
greatest_speed = 0.2

[response]
keys = { "1" = ["1", "left"], "2" = ["2", "right"] }
"""


def changed(folder: Path, old: str = "", new: str = "", text: str = WEBER) -> Path:
    """Write the experiment with `old`, which must be in it, replaced by `new`; return the file."""
    assert old in text
    path = folder / "weber.toml"
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    return path
