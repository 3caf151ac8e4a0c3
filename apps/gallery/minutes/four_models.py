"""Models A, B, C and D with the same hand motion, and a classic law for comparison.

The hand makes the same two strokes on all models, with constant speed in the middle of each. There is no acceleration,
so the hand feels the level of the law, for every model, device and controller. The laws differ at rest: the law of the
last velocity (Kikuuwe et al. 2006, (6)) has only the forces F and -F, and switches between them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from apps.gallery.showing import Guide, Outcome, Scene, Showing, Tables, derived, write_path
from apps.reproduce.style import AMBER, BLUE, GREEN, INK, ORANGE, PINK, dress

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from haptics.records import Rows

TITLE = "models A, B, C and D on one hand motion, and a classic law beside them"

GUIDE = Guide(
    do="Move the handle to and fro at a constant speed, and hold it still in between.",
    feel="The same friction under all four models; the classic law buzzes when you hold it still.",
    see="Force of the hand on two strokes: four models, one level; and what each does at rest.",
)

FRICTION, SPEED = 4.0, 0.1
MODELS: dict[str, tuple[str, dict[str, Any], str]] = {
    "C": ("virtual-joystick", {"damping": 0.0}, BLUE),
    "B": ("virtual-joystick", {"damping": 0.0}, GREEN),
    "A": ("virtual-arm", {"servo": {"law": "flatness"}}, ORANGE),
    "D": ("virtual-arm", {"servo": {"law": "flatness"}}, PINK),
}
"""Device, its settings and plot colour by model. Model C is shown live.

The joystick has no damping, because the hand would feel it.
"""

CLASSIC = "explicit-coulomb"

KNOTS = np.array(
    [
        *([0.0, 0.0], [0.5, 0.0], [0.8, SPEED], [2.0, SPEED], [2.3, 0.0]),
        *([3.5, 0.0], [3.8, -SPEED], [5.0, -SPEED], [5.3, 0.0], [6.0, 0.0]),
    ]
)
"""Hand motion: time [s] and speed [m/s]."""

STROKES = ((1.2, 1.95, 1.0), (4.2, 4.95, -1.0))
"""Begin and end [s] of the intervals with constant speed, and their direction."""

REST = (2.8, 3.5)
"""Interval in which the hand rests [s]."""


def demonstrate(showing: Showing) -> Outcome:
    """Run the same hand motion with each model and with the classic law."""
    path = write_path(showing.folder / "two_strokes.csv", KNOTS, -0.075)
    runs: dict[str, Rows] = {}
    for number, model in enumerate((*MODELS, CLASSIC)):
        tables = _tables(model, path)
        recording = showing.show(tables) if number == 0 else showing.record_offline(tables, model)
        runs[model] = np.array(recording.rows)
    off = {model: abs(mean_hand_force(rows) / FRICTION - 1.0) for model, rows in runs.items()}
    rest = {model: rows[_between(rows, *REST)] for model, rows in runs.items()}
    shake = float(np.sqrt(np.mean(rest[CLASSIC]["friction_force"][:, 0] ** 2)))
    rows = [derived(f"{model}: felt over asked", mean_hand_force(runs[model]) / FRICTION, 0.01) for model in runs]
    for model in MODELS:
        rows.append(derived(f"{model}: share of ticks that stick at rest", float(rest[model]["sticking"].mean())))
    quantity = f"{CLASSIC}: its force at rest, rms, though the hand holds still"
    rows.append(derived(quantity, shake, 0.04, FRICTION, "N"))
    worst = 100.0 * max(off[model] for model in MODELS)
    scenes = [Scene("model C", runs["C"]), Scene("the law of the last velocity", runs[CLASSIC])]
    return Outcome(
        worst, 1.0, "%", "the force felt in sliding misses 4 N by at most", rows, lambda f: _draw(f, runs), scenes
    )


def mean_hand_force(rows: Rows) -> float:
    """Return the mean force of the hand along its motion at constant speed [N]."""
    parts = [sign * rows["hand_force"][_between(rows, begin, end), 0] for begin, end, sign in STROKES]
    return float(np.mean(np.concatenate(parts)))


def _between(rows: Rows, begin: float, end: float) -> NDArray[np.bool_]:
    return np.asarray((rows["time"] >= begin) & (rows["time"] < end))


def _tables(model: str, path: str) -> Tables:
    device, settings, _ = MODELS.get(model, MODELS["C"])
    return {
        "session": {"model": model, "duration": float(KNOTS[-1, 0])},
        "device": {"name": device, **settings},
        "hand": {"name": "recorded", "file": path, "stiffness": 800.0, "damping": 40.0},
        "law": {"name": "coulomb", "force": FRICTION},
    }


def _draw(figure: Figure, runs: dict[str, Rows]) -> None:
    above, below = figure.subplots(2, 1, sharex=True, sharey=True)
    courses = [(above, model, colour, f"{model}, {device}") for model, (device, _, colour) in MODELS.items()]
    for axes, model, colour, name in (*courses, (below, CLASSIC, AMBER, CLASSIC)):
        time, force = runs[model]["time"], runs[model]["friction_force"][:, 0]
        label = f"{name}: {mean_hand_force(runs[model]):.3f} N"
        axes.plot(time, force, color=colour, linewidth=1.1, label=label)
    for axes in (above, below):
        for level in (FRICTION, -FRICTION):
            axes.axhline(level, color=INK, linewidth=0.8, linestyle=":")
        for begin, end, _ in STROKES:
            axes.axvspan(begin, end, color="#E6E6E6", zorder=0)
        axes.legend(loc="upper right", fontsize=9)
    dress(above, "", "friction [N]", TITLE)
    dress(below, "time [s]", "friction [N]")
