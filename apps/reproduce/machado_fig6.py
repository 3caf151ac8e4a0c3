"""Machado et al. 2002, Fig. 6: the arm with joint friction under PD and PI control."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apps.reproduce.machado_cases import (
    CF,
    IDEAL,
    PD_PI,
    RUBBING,
    error_row,
    experiment,
    response,
    rows,
)
from apps.reproduce.machado_picture import Curve, Inside, draw
from apps.reproduce.outcome import Bound, Outcome, Row
from apps.reproduce.style import BLUE, PALE, SKY

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "arm with friction in its joints, PD and PI control (Machado et al. 2002, Fig. 6)"


def reproduce() -> Outcome:
    """Compare the response to 1 N with the expected values and with CF."""
    found, best = response(experiment(RUBBING, PD_PI)), response(experiment(RUBBING, CF))
    table = [
        *rows("PD/PI with friction", found, 16, 80, 347),
        error_row("PD/PI with friction", 0.0197, found, 0.00197),
        Row("rise time, relative to CF of Fig. 5", Bound(minimum=1.0), found.rise / best.rise),
        Row("settling time, relative to CF of Fig. 5", Bound(minimum=1.0), found.settling / best.settling),
    ]
    return Outcome(table, _draw)


def _draw(figure: Figure) -> None:
    own = Curve("PD/PI with friction", experiment(RUBBING, PD_PI), BLUE)
    curves = [
        own,
        Curve("PD/PI, ideal joints (Fig. 4)", experiment(IDEAL, PD_PI), SKY, "--"),
        Curve("CF with friction (Fig. 5)", experiment(RUBBING, CF), PALE),
    ]
    inside = Inside("friction", "torque [N m]", own.run.rows["friction"], own, 600.0)
    draw(figure, "Fig. 6: friction in the joints, PD and PI control; step of 1 N", curves, inside, 600.0, 120.0)
