"""Weigand et al. 2020, Fig. 9: gear torque, and its oscillation with the rigid feed-forward.

The amplitude of about 1500 N m depends on the motion and on the inertia of the link. Neither is printed; both were
chosen after seeing results, so that row is a guard.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from apps.reproduce import weigand
from apps.reproduce.outcome import Bound, Outcome, Row
from apps.reproduce.style import BLUE, INK, ORANGE, PALE, dress
from apps.reproduce.weigand import FLAT, HELD, RIGID, oscillation, run

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "oscillation of the torque in the gearbox (Weigand et al. 2020, Fig. 9)"


def reproduce() -> Outcome:
    """Simulate both feed-forwards and compare the gear torques."""
    rows = [
        Row("flatness-based: torque beyond the motion's", 0.0, oscillation(run(FLAT)), 1e-2, "N m"),
        Row(
            "rigid: torque beyond the motion's (about 1500 N m)",
            Bound(1000.0, 2500.0),
            oscillation(run(RIGID)),
            0.0,
            "N m",
            "guard",
        ),
        Row(
            "flatness-based, held for 0.8 ms: torque beyond the motion's",
            Bound(maximum=50.0),
            oscillation(run(FLAT, circumstances=HELD)),
            0.0,
            "N m",
            "guard",
        ),
    ]
    return Outcome(rows, _draw)


def _draw(figure: Figure) -> None:
    top, bottom = figure.subplots(2, 1, sharex=True)
    flat, rigid = run(FLAT), run(RIGID)
    show = slice(None, None, 10)
    time = flat.time[show]
    top.plot(time, rigid.gear_torque[show], color=ORANGE, linewidth=1.0, label="rigid (R-FF)")
    top.plot(time, flat.gear_torque[show], color=BLUE, linewidth=1.6, label="flatness-based (FB-FF)")
    top.legend(fontsize=10, loc="upper right")
    dress(top, "", "torque in the gearbox [N m]", "what the link is driven with")
    for result, colour, width in ((rigid, ORANGE, 1.0), (flat, BLUE, 1.6)):
        beyond = result.gear_torque - result.reference_gear_torque
        bottom.plot(time, beyond[show], color=colour, linewidth=width)
    bottom.axhline(0.0, color=PALE, linewidth=0.6)
    bottom.set_xlim(0.0, time[-1])
    dress(bottom, "time [s]", "torque beyond it [N m]", "less what the motion itself asks for")
    figure.suptitle(f"Fig. 9: torque in the gearbox of joint 1 ({weigand.TURN:g} degrees and back)", color=INK)
