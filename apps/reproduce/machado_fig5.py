"""Machado et al. 2002, Fig. 5: the arm with joint friction under fractional-order control (CF).

The printed friction (10) pushes: a joint at rest gets the torque F_H, without a sign. Here the friction is set-valued:
at rest it balances any torque up to F_H. The final force then depends on where the joints stick. Its error is bounded
by the force that the static friction can hold against the force loop.
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
    """Compare the response to 1 N with the expected values and with PD/PI."""
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
