"""Machado et al. 2002, Fig. 7: the arm with backlash under re-tuned fractional-order control.

The paper re-tunes both controllers because they were unstable with backlash. This is not reproduced: with the gains of
Table II the rotors cross their gaps and collide, yet the force settles, because the gravity compensation presses the
rotors to one end of their gaps. Without gravity compensation, in a horizontal plane, or with a gap of twice the width,
the rattling persists and the force oscillates by about 0.1 N, which may be the instability that the authors observed.
With the gains of Table IV the control torques stay below the gravity torques: the gaps never open, and the response is
that of an ideal arm. Only the ranking and the impacts can be compared.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from apps.reproduce.machado_cases import (
    CF,
    CF_RETUNED,
    LOOSE,
    PD_PI_HALVED,
    RESTITUTION,
    WEIGHTLESS,
    error_row,
    experiment,
    last_swing,
    response,
    rows,
    unstable_row,
)
from apps.reproduce.machado_picture import GAP, Curve, Inside, draw, rotor_ahead
from apps.reproduce.outcome import Bound, Outcome, Row
from apps.reproduce.style import BLUE, ORANGE, PALE
from devices.arm.mechanics.drive import collide

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "arm with backlash, re-tuned control of fractional order (Machado et al. 2002, Fig. 7)"


def reproduce() -> Outcome:
    """Compare the responses to 1 N with the gains of Tables II and IV, and check the impacts."""
    run, floating = experiment(LOOSE, CF), experiment(LOOSE, CF, links=WEIGHTLESS)
    first, retuned = response(run), response(experiment(LOOSE, CF_RETUNED))
    slower = response(experiment(LOOSE, PD_PI_HALVED))
    table = [
        *_impact_rows(),
        *rows("gains of Table II", first, 4, 82, 397),
        *rows("gains of Table IV", retuned, 32, 78, 989),
        error_row("gains of Table IV", 0.04, retuned, 0.004),
        unstable_row("II", run),
        Row("gains of Table II: swing of the force in the last 0.5 s", 0.0, last_swing(run), 1e-3, "N", "guard"),
        Row("the same without weight on the joints", Bound(minimum=0.02), last_swing(floating), 0.0, "N", "guard"),
        Row("settling time, relative to halved PD/PI", Bound(maximum=1.0), retuned.settling / slower.settling),
    ]
    return Outcome(table, _draw)


def _impact_rows() -> list[Row]:
    """Return the rows of the conservation laws of (11) for random inertias and speeds."""
    generator = np.random.default_rng(11)
    momentum = newton = 0.0
    for joint, motor, w, v in generator.uniform((0.1, 0.1, -1.0, -1.0), (10.0, 10.0, 1.0, 1.0), (1000, 4)).tolist():
        after, rotor = collide(joint, motor, RESTITUTION, w, v)
        momentum = max(momentum, abs(joint * (after - w) + motor * (rotor - v)))
        newton = max(newton, abs((rotor - after) + RESTITUTION * (v - w)))
    return [
        Row("impacts (11) with J_ii for J_i: momentum gained, worst of 1000", 0.0, momentum, 1e-14, "N m s"),
        Row("impacts (11) with J_ii for J_i: restitution missed, worst of 1000", 0.0, newton, 1e-14, "rad/s"),
    ]


def _draw(figure: Figure) -> None:
    first = Curve("CF of Table II", experiment(LOOSE, CF), ORANGE)
    curves = [
        Curve("CF of Table IV", experiment(LOOSE, CF_RETUNED), BLUE),
        first,
        Curve("PD/PI of Table IV, halved (Fig. 8)", experiment(LOOSE, PD_PI_HALVED), PALE),
    ]
    inside = Inside(GAP, "angle [µrad]", rotor_ahead(first.run), first, 600.0)
    title = "Fig. 7: backlash in the joints, fractional-order control (CF); step of 1 N"
    draw(figure, title, curves, inside, 1200.0, 300.0)
