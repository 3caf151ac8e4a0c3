"""Machado et al. 2002, Fig. 10: the arm with flexible joints under PD and PI control.

Rotor and joint are two masses on a spring (12a), (12b); in the second the inertia of the links, without the rotors,
belongs where J is printed, and the force of the surface is missing. The damping of 10 kN m s/rad is on the rotors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from apps.reproduce.machado_cases import (
    CF,
    IDEAL,
    PD_PI,
    YIELDING,
    experiment,
    response,
    rows,
)
from apps.reproduce.machado_picture import Curve, Inside, draw
from apps.reproduce.outcome import Bound, Outcome, Row
from apps.reproduce.style import BLUE, PALE, SKY

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "arm with flexible joints, PD and PI control (Machado et al. 2002, Fig. 10)"


def reproduce() -> Outcome:
    """Compare the response to 1 N with what it should be, and with the other controller."""
    found, other = response(experiment(YIELDING, PD_PI)), response(experiment(YIELDING, CF))
    table = [
        *rows("PD/PI with flexible joints", found, 261, 1, 346),
        Row("rise time, relative to CF of Fig. 9", Bound(minimum=1.0), found.rise / other.rise),
        Row("settling time, relative to CF of Fig. 9", Bound(minimum=1.0), found.settling / other.settling),
    ]
    return Outcome(table, _draw)


def _draw(figure: Figure) -> None:
    own = Curve("PD/PI, flexible joints", experiment(YIELDING, PD_PI), BLUE)
    curves = [
        own,
        Curve("PD/PI, ideal joints (Fig. 4)", experiment(IDEAL, PD_PI), SKY, "--"),
        Curve("CF, flexible joints (Fig. 9)", experiment(YIELDING, CF), PALE),
    ]
    twist = own.run.rows["rotor"] - own.run.rows["angle"]
    inside = Inside("twist beyond that at the end", "angle [µrad]", 1e6 * (twist - twist[-1]), own, 30.0)
    draw(figure, "Fig. 10: flexible joints, PD and PI control; step of 1 N", curves, inside, 1000.0, 120.0)
