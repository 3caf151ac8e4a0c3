"""Holding: a contact does not creep under a force below its friction for a minute.

In model A, sticking is a velocity of exactly zero. A very high viscosity, the oldest substitute (Martins and Oden
1983), creeps at ``threshold h / F`` under a hand force h. This speed follows from its definition and is the prediction
here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from apps.gallery.showing import Guide, Outcome, Scene, Showing, Tables, derived
from apps.reproduce.style import BLUE, INK, ORANGE, dress

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from haptics.records import Rows

TITLE = "it holds: 3.5 N on a friction of 4 N for a minute"

GUIDE = Guide(
    do="Lean on the handle with less than 4 N and wait.",
    feel="It stands like a wall, for as long as you like; with more than 4 N it slides.",
    see="Where the contact is, under the exact law and under a very high viscosity, which creeps away.",
)

FORCE, FRICTION = 3.5, 4.0
THRESHOLD = 0.0015
"""Speed at which the viscous force reaches the friction [m/s].

The simulation is free of oscillation only if `T F < 2 M threshold`.
"""

BEGIN, RISE, SETTLED = 0.5, 1.0, 2.0
"""Start of the push, duration of its rise, and time until the evaluation begins [s]."""


def demonstrate(showing: Showing) -> Outcome:
    """Push on the exact law and on the viscous ramp for a minute."""
    duration = 6.0 if showing.brief else 60.0
    exact = np.array(showing.show(_tables("A", {}, duration)).rows)
    ramp = np.array(
        showing.record_offline(_tables("viscous-ramp", {"threshold": THRESHOLD}, duration), "viscous_ramp").rows
    )
    held, crept = (rows[rows["time"] > BEGIN + RISE + SETTLED] for rows in (exact, ramp))
    moved = 1e6 * float(np.linalg.norm(held["proxy"] - held["proxy"][0], axis=1).max())
    speed = float(np.polyfit(crept["time"], crept["proxy"][:, 0], 1)[0])  # least-squares line
    rows = [
        derived("share of ticks that stick", float(held["sticking"].mean())),
        derived("force of the hand", float(held["hand_force"][:, 0].mean()), 1e-3, FORCE, "N"),
        derived("creep of the viscous ramp over the predicted one", speed / creep(), 0.02),
    ]
    sentence = f"the contact moves in {duration:.0f} s by"
    scenes = [Scene("exact law (model A)", exact), Scene("very high viscosity", ramp)]
    return Outcome(moved, 0.0, "um", sentence, rows, lambda figure: _draw(figure, exact, ramp), scenes)


def creep() -> float:
    """Return the predicted creep speed of the viscous ramp [m/s].

    Its viscosity is ``F / threshold``.
    """
    return THRESHOLD * FORCE / FRICTION


def _tables(model: str, element: dict[str, float], duration: float) -> Tables:
    return {
        "session": {"model": model, "duration": duration},
        "device": {"name": "virtual-arm"},
        "hand": {"name": "scripted-force", "script": [[BEGIN, 0.0, 0.0], [BEGIN + RISE, FORCE, 0.0]]},
        "law": {"name": "coulomb", "force": FRICTION},
        "element": element,
    }


def _draw(figure: Figure, exact: Rows, ramp: Rows) -> None:
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=(2.0, 1.0))
    start = ramp["proxy"][0, 0]
    above.plot(ramp["time"], 1e3 * (ramp["proxy"][:, 0] - start), color=ORANGE, linewidth=1.6, label="viscous ramp")
    begin = BEGIN + RISE
    time = np.array([begin, exact["time"][-1]])
    offset = 1e3 * float(np.interp(begin, ramp["time"], ramp["proxy"][:, 0] - start))
    predicted = offset + 1e3 * creep() * (time - begin)
    above.plot(time, predicted, color=INK, linestyle=":", label=f"predicted: {1e3 * creep():.2f} mm/s")
    above.plot(exact["time"], 1e3 * (exact["proxy"][:, 0] - exact["proxy"][0, 0]), color=BLUE, linewidth=2.0, label="A")
    above.legend(loc="upper left")
    dress(above, "", "place of the contact [mm]", TITLE)
    below.plot(exact["time"], exact["hand_force"][:, 0], color=BLUE, linewidth=1.2, label="hand")
    below.axhline(FRICTION, color=INK, linewidth=1.0, linestyle="--", label="friction")
    below.legend(loc="lower right")
    below.set_ylim(0.0, 1.2 * FRICTION)
    dress(below, "time [s]", "force [N]")
