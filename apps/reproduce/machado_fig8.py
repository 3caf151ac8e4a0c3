"""Machado et al. 2002, Fig. 8: the arm with backlash in its joints under re-tuned PD and PI control.

According to the text, the re-tuned PD/PI is slower. Table IV has half of a_P and b_P, but five times a_F and b_F: as
printed it is faster. With a_F and b_F halved too, ten times less than printed, it is slower.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from apps.reproduce.machado_cases import (
    CF_RETUNED,
    LOOSE,
    PD_PI,
    PD_PI_HALVED,
    PD_PI_PRINTED,
    experiment,
    response,
    rows,
    unstable_row,
)
from apps.reproduce.machado_picture import GAP, Curve, Inside, draw, rotor_ahead
from apps.reproduce.outcome import Bound, Outcome, Row
from apps.reproduce.style import BLUE, ORANGE, PALE, SKY

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "arm with backlash, re-tuned PD and PI control (Machado et al. 2002, Fig. 8)"


_SWING = 22.0
"""Half a period of the force oscillation with the gains of Table IV [ms]."""


def reproduce() -> Outcome:
    """Compare the responses to 1 N with the gains of Tables III and IV, as printed and halved."""
    first, printed, halved = (response(experiment(LOOSE, control)) for control in (PD_PI, PD_PI_PRINTED, PD_PI_HALVED))
    best = response(experiment(LOOSE, CF_RETUNED))
    table = [
        *rows("gains of Table III", first, 16, 83, 665),
        *rows("gains of Table IV as printed", printed, 7, 69, 146, _SWING),
        *rows("gains of Table IV, a_F and b_F a tenth", halved, 22, 86, 1467),
        unstable_row("III", experiment(LOOSE, PD_PI)),
        Row("a tenth: settling time, relative to Table III", Bound(minimum=1.0), halved.settling / first.settling),
        Row("a tenth: settling time, relative to CF of Fig. 7", Bound(minimum=1.0), halved.settling / best.settling),
    ]
    return Outcome(table, _draw)


def _draw(figure: Figure) -> None:
    printed = Curve("PD/PI of Table IV as printed", experiment(LOOSE, PD_PI_PRINTED), ORANGE)
    curves = [
        Curve("PD/PI of Table IV, a_F and b_F a tenth", experiment(LOOSE, PD_PI_HALVED), BLUE),
        printed,
        Curve("PD/PI of Table III", experiment(LOOSE, PD_PI), SKY, "--"),
        Curve("CF of Table IV (Fig. 7)", experiment(LOOSE, CF_RETUNED), PALE),
    ]
    inside = Inside(GAP, "angle [µrad]", rotor_ahead(printed.run), printed, 600.0)
    title = "Fig. 8: backlash in the joints, PD and PI control; step of 1 N"
    draw(figure, title, curves, inside, 1600.0, 300.0)
