"""Kikuuwe et al. 2006, Fig. 17: the run of Fig. 16 over time, without drift of the arm.

The magnitude of this force and its fluctuation by 1 N or more are properties of the chosen hand.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from apps.reproduce.arm_tour import FRICTION, REST, experiment
from apps.reproduce.outcome import Bound, Outcome, Row
from apps.reproduce.planar import norms
from apps.reproduce.style import INK
from apps.reproduce.tour import Tour, draw_courses

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "model A on the virtual arm: position and force against time (Kikuuwe et al. 2006, Fig. 17)"


def reproduce() -> Outcome:
    """Evaluate the rest period."""
    run = experiment()
    rest = run.rows[run.rest(REST)]
    force = norms(rest["force"])
    reference = float(norms(np.ptp(rest["command"], axis=0)[None])[0] * 1e6)
    handle = float(norms(np.ptp(run.handle[run.rest(REST)], axis=0)[None])[0] * 1e6)
    rows = [
        Row(
            "rest at c: the measured force, tremor and noise included, stays below F",
            Bound(maximum=FRICTION),
            float(force.max()),
            0.0,
            "N",
        ),
        Row(
            "rest at c: the force fluctuates, peak to peak (hand chosen for it)",
            Bound(minimum=1.0),
            float(np.ptp(force)),
            0.0,
            "N",
            "guard",
        ),
        Row("rest at c: largest speed of model A", 0.0, float(norms(rest["sliding_velocity"]).max()), 0.0, "m/s"),
        Row("rest at c: drift of the position reference", 0.0, reference, 0.0, "um"),
        Row("rest at c: drift of the handle itself", 0.0, handle, 1.0, "um"),
        Row("rest at c: ticks that slide", 0, int(np.count_nonzero(rest["sticking"] == 0))),
    ]
    return Outcome(rows, lambda figure: _draw(figure, run))


def _draw(figure: Figure, run: Tour) -> None:
    draw_courses(figure, run, norms(run.rows["force"]), "|h|", FRICTION)
    figure.suptitle("Fig. 17: model A (F = 6 N, M = 2 kg) on the virtual arm; position and measured force", color=INK)
