"""Kikuuwe et al. 2006, Fig. 20: the run of Fig. 19 over time.

The joystick holds its position at rest. During the rest the handle yields elastically. The fixed end of the spring,
which is the measured position less the elastic displacement, must not move.

The force at rest depends on the hand, not on the model, if it is below the friction force. Grip, fluctuation,
tremor and seed of the hand were selected from about 140 runs so that the force is between 2.4 and 3.4 N, as in a
separate simulation of this figure. The two corresponding rows are guards, because they describe the experiment. With
the seeds 0 to 29 the force ranges from 2.2 to 3.6 N (an encoder count corresponds to 0.2 N), and every other row of
this figure and of Fig. 19 is met with each of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from apps.reproduce.kikuuwe_fig19 import REST, experiment
from apps.reproduce.kikuuwe_lag import FRICTION, STIFFNESS
from apps.reproduce.outcome import Bound, Outcome, Row
from apps.reproduce.planar import norms
from apps.reproduce.style import INK
from apps.reproduce.tour import Tour, draw_courses

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "model C on the virtual joystick: position and force against time (Kikuuwe et al. 2006, Fig. 20)"


def reproduce() -> Outcome:
    """Evaluate the rest period."""
    run = experiment()
    rest = run.rows[run.rest(REST)]
    force = norms(rest["command"])
    drift = float(norms(np.ptp(rest["proxy"], axis=0)[None])[0] * 1e6)
    halves = np.array_split(rest["position"] - rest["displacement"], 2)
    creep = float(norms((halves[1].mean(axis=0) - halves[0].mean(axis=0))[None])[0] * 1e6)
    wander = float(norms(np.ptp(rest["position"], axis=0)[None])[0])
    rows = [
        Row("rest at b: the commanded force stays below F", Bound(maximum=FRICTION), float(force.max()), 0.0, "N"),
        Row(
            "rest at b: least commanded force (hand chosen for it)",
            Bound(minimum=2.4),
            float(force.min()),
            0.0,
            "N",
            "guard",
        ),
        Row(
            "rest at b: largest commanded force (hand chosen for it)",
            Bound(maximum=3.4),
            float(force.max()),
            0.0,
            "N",
            "guard",
        ),
        Row("rest at b: drift of the point that is held", 0.0, drift, 1.0, "um"),
        Row("rest at b: from the first half to the second", 0.0, creep, 1.0, "um"),
        Row("rest at b: ticks that slide", 0, int(np.count_nonzero(rest["sticking"] == 0))),
        Row(
            "rest at b: the handle gives way by less than F/K",
            Bound(maximum=FRICTION / STIFFNESS),
            wander,
            0.0,
            "m",
            "derived",
        ),
    ]
    return Outcome(rows, lambda figure: _draw(figure, run))


def _draw(figure: Figure, run: Tour) -> None:
    draw_courses(figure, run, norms(run.rows["command"]), "|f|", FRICTION)
    figure.suptitle(
        "Fig. 20: model C (F = 4 N, K = 6000 N/m, B = 10 N s/m) on the virtual joystick; position and force", color=INK
    )
