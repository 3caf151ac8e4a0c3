"""Machado et al. 2002, Fig. 3: the ideal arm under fractional-order control (CF).

The stability depends on the measured force. The printed force (3) contains M x'', and x'' follows the torque without
delay. The gain of that loop is K_F M J_x H^-1 J_x^T. Fed back one sample late, the loop is unstable where this gain,
times the gain of the law for an alternating force (0.87), exceeds 1. It is stable if B x' + K x is fed back, or if the
loop is solved within each sample.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from apps.reproduce.machado_cases import (
    CF,
    FORCE,
    IDEAL,
    PD_PI,
    PERIOD,
    TERMS,
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
from devices.arm.servo.fractional import weights

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "ideal arm, control of fractional order (Machado et al. 2002, Fig. 3)"

_GAINS = {0.5: 0.1358, -0.2: 1.9328, 0.2: 0.4851}
"""Static gain of the truncated sum of (6), by order."""


def reproduce() -> Outcome:
    """Compare the response to 1 N for the three readings of the fed-back force."""
    plain, solved = response(experiment(IDEAL, CF)), response(experiment(IDEAL, CF, "solved"))
    other = response(experiment(IDEAL, PD_PI))
    static = FORCE / (1.0 + float(CF.force.weights(PERIOD).sum()))
    sampled = experiment(IDEAL, CF, "sampled")
    sideways = 1e3 * float(unheld(CF).rows["along"][-1])
    table = [
        *(_weights_row(order, gain) for order, gain in _GAINS.items()),
        *rows("B x' + K x fed back", plain, 4, 82, 324),
        error_row("B x' + K x fed back", static, plain, 1e-5),
        Row("B x' + K x fed back: motion along the surface", 1.1, plain.deviation, 0.11, "mm", "derived"),
        *rows("M x'' too, loop solved in the sample", solved, 6, 13, 119),
        error_row("M x'' too, loop solved in the sample", static, solved, 1e-5),
        Row("gain around the force loop through M x''", 3.05, feed_through(CF), 0.305, "", "derived"),
        Row("M x'' too, sampled: unstable (1 = yes)", 1, int(sampled.ran_away), 0.0, "", "derived"),
        Row("weight not held: y - y_d at the end", -1.35, sideways, 0.135, "mm", "derived"),
        Row("rise time, relative to PD/PI of Fig. 4", Bound(maximum=1.0), plain.rise / other.rise),
        Row("settling time, relative to PD/PI of Fig. 4", Bound(maximum=1.0), plain.settling / other.settling),
    ]
    return Outcome(table, _draw)


def _weights_row(order: float, gain: float) -> Row:
    found = float(np.sum(weights(order, TERMS)))
    return Row(f"sum of the weights c_0 .. c_17 of order {order:g}", gain, found, 5e-5, "", "derived")


def _draw(figure: Figure) -> None:
    plain = Curve("B x' + K x fed back", experiment(IDEAL, CF), BLUE)
    curves = [
        plain,
        Curve("M x'' too, loop solved", experiment(IDEAL, CF, "solved"), GREEN),
        Curve("M x'' too, sampled", experiment(IDEAL, CF, "sampled"), ORANGE),
        Curve("PD/PI (Fig. 4)", experiment(IDEAL, PD_PI), PALE),
    ]
    inside = Inside("torque beyond that at the end", "torque [N m]", added_torque(plain.run), plain, 1000.0)
    draw(figure, "Fig. 3: ideal arm under fractional-order control (CF); step of 1 N", curves, inside, 1000.0, 60.0)
