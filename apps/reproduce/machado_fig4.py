"""Machado et al. 2002, Fig. 4: the ideal arm under PD control of position and PI control of force."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from apps.reproduce.machado_cases import (
    CF,
    DURATION,
    FORCE,
    IDEAL,
    PD_PI,
    error_row,
    experiment,
    feed_through,
    response,
    rows,
    unheld,
)
from apps.reproduce.machado_picture import Curve, Inside, added_torque, draw
from apps.reproduce.outcome import Bound, Outcome, Row
from apps.reproduce.style import BLUE, GREEN, ORANGE, PALE

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "ideal arm, PD and PI control (Machado et al. 2002, Fig. 4)"


def reproduce() -> Outcome:
    """Compare the response to 1 N for the three readings of the fed-back force."""
    runs = {sensor: experiment(IDEAL, PD_PI, sensor) for sensor in ("elastic", "sampled", "solved")}
    plain, sampled, solved = (response(run) for run in runs.values())
    best = response(experiment(IDEAL, CF))
    # The integral part removes the error of the proportional part, 1/(1 + b_F), with the time constant (1 + b_F)/a_F.
    left = FORCE / 101.0 * math.exp(-(DURATION - 0.1) / (101.0 / 25.0))
    free = unheld(PD_PI)
    table = [
        *rows("B x' + K x fed back", plain, 16, 82, 667),
        error_row("B x' + K x fed back", left, plain, 1e-5),
        Row("B x' + K x fed back: motion along the surface", 0.032, plain.deviation, 0.0032, "mm", "derived"),
        *rows("M x'' too, sampled", sampled, 22, 61, 763),
        *rows("M x'' too, loop solved in the sample", solved, 24, 63, 868),
        Row("gain around the force loop through M x''", 0.31, feed_through(PD_PI), 0.031, "", "derived"),
        Row("weight not held: y - y_d at the end", -0.73, 1e3 * float(free.rows["along"][-1]), 0.073, "mm", "derived"),
        Row("weight not held: settling time", 2260.0, response(free).settling, 226.0, "ms", "derived"),
        error_row("weight not held", 0.10, response(free), 0.01),
        Row("rise time, relative to CF of Fig. 3", Bound(minimum=1.0), plain.rise / best.rise),
        Row("settling time, relative to CF of Fig. 3", Bound(minimum=1.0), plain.settling / best.settling),
    ]
    return Outcome(table, _draw)


def _draw(figure: Figure) -> None:
    plain = Curve("B x' + K x fed back", experiment(IDEAL, PD_PI), BLUE)
    curves = [
        plain,
        Curve("M x'' too, loop solved", experiment(IDEAL, PD_PI, "solved"), GREEN),
        Curve("M x'' too, sampled", experiment(IDEAL, PD_PI, "sampled"), ORANGE, ":"),
        Curve("CF (Fig. 3)", experiment(IDEAL, CF), PALE),
    ]
    inside = Inside("torque beyond that at the end", "torque [N m]", added_torque(plain.run), plain, 1000.0)
    draw(figure, "Fig. 4: ideal arm under PD and PI control; step of 1 N", curves, inside, 1000.0, 120.0)
