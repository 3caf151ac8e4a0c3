"""Machado et al. 2002, Fig. 9: the arm with flexible joints under control of fractional order.

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

TITLE = "arm with flexible joints, control of fractional order (Machado et al. 2002, Fig. 9)"


def reproduce() -> Outcome:
    """Compare the response to 1 N with what it should be, and with the other controller."""
    found, other = response(experiment(YIELDING, CF)), response(experiment(YIELDING, PD_PI))
    table = [
        *rows("CF with flexible joints", found, 11, 4, 15),
        Row("rise time, relative to PD/PI of Fig. 10", Bound(maximum=1.0), found.rise / other.rise),
        Row("settling time, relative to PD/PI of Fig. 10", Bound(maximum=1.0), found.settling / other.settling),
    ]
    return Outcome(table, _draw)


def _draw(figure: Figure) -> None:
    own = Curve("CF, flexible joints", experiment(YIELDING, CF), BLUE)
    curves = [
        own,
        Curve("CF, ideal joints (Fig. 3)", experiment(IDEAL, CF), SKY, "--"),
        Curve("PD/PI, flexible joints (Fig. 10)", experiment(YIELDING, PD_PI), PALE),
    ]
    twist = own.run.rows["rotor"] - own.run.rows["angle"]
    inside = Inside("twist beyond that at the end", "angle [µrad]", 1e6 * (twist - twist[-1]), own, 30.0)
    draw(figure, "Fig. 9: flexible joints, fractional-order control (CF); step of 1 N", curves, inside, 400.0, 60.0)
