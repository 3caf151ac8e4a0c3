"""Machado et al. 2002, Fig. 5: the arm with friction in its joints under control of fractional order (CF).

Friction (10) as it is printed pushes: a joint at rest gets the torque F_H, without a sign. Here it is set-valued: up
to F_H at rest, whatever is needed to hold. Where the force then stays depends on where the joints stick; what is
missing of it is within what their friction can hold against the force loop.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from apps.reproduce.machado_cases import (
    CF,
    FORCE,
    HOLDING,
    IDEAL,
    LINKS,
    PD_PI,
    PERIOD,
    RUBBING,
    START,
    experiment,
    response,
    rows,
    settled_speed,
)
from apps.reproduce.machado_picture import Curve, Inside, draw
from apps.reproduce.outcome import Bound, Outcome, Row
from apps.reproduce.style import BLUE, PALE, SKY

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "arm with friction in its joints, control of fractional order (Machado et al. 2002, Fig. 5)"


def reproduce() -> Outcome:
    """Compare the response to 1 N with what it should be, and with PD/PI."""
    run = experiment(RUBBING, CF)
    found, other = response(run), response(experiment(RUBBING, PD_PI))
    gain = float(CF.force.weights(PERIOD).sum())
    band = (FORCE + HOLDING / abs(float(LINKS.terms(START)["jacobian"][0, 0, 0]))) / (1.0 + gain)
    table = [
        *rows("CF with friction", found, 4, 81, 260),
        Row("CF with friction: force missing at the end", Bound(-band, band), found.error, 0.0, "N", "derived"),
        Row("speed of the joints in the last 0.2 s", 0.0, settled_speed(run), 0.0, "rad/s", "derived"),
        Row("rise time, relative to PD/PI of Fig. 6", Bound(maximum=1.0), found.rise / other.rise),
        Row("settling time, relative to PD/PI of Fig. 6", Bound(maximum=1.0), found.settling / other.settling),
        Row("force missing, relative to PD/PI of Fig. 6", Bound(-1.0, 1.0), found.error / other.error),
    ]
    return Outcome(table, _draw)


def _draw(figure: Figure) -> None:
    own = Curve("CF with friction", experiment(RUBBING, CF), BLUE)
    curves = [
        own,
        Curve("CF, ideal joints (Fig. 3)", experiment(IDEAL, CF), SKY, "--"),
        Curve("PD/PI with friction (Fig. 6)", experiment(RUBBING, PD_PI), PALE),
    ]
    inside = Inside("friction", "torque [N m]", own.run.rows["friction"], own, 600.0)
    draw(
        figure,
        "Fig. 5: friction in the joints, fractional-order control (CF); step of 1 N",
        curves,
        inside,
        600.0,
        60.0,
    )
