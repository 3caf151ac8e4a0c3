"""Machado et al. 2002, Figs. 9 and 10: the arm with flexible joints, comparison of both controllers.

Rotor and joint are two masses coupled by a spring, (12a), (12b). In (12b), J should be the inertia of the links without
the rotors, and the contact force is missing. The damping of 10 kN m s/rad acts on the rotors.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from apps.reproduce.machado_cases import CF, IDEAL, PD_PI, YIELDING, experiment, response, rows
from apps.reproduce.machado_picture import Curve, Inside, draw
from apps.reproduce.outcome import Bound, Outcome, Row
from apps.reproduce.style import BLUE, PALE, SKY
from devices.arm.hybrid import Hybrid

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Shown:
    """Controller of a figure.

    Attributes
    ----------
    law : Hybrid
        Controller.
    name : str
        Label.
    figure, ideal : int
        Figures of the paper with this controller on flexible and on ideal joints.
    """

    law: Hybrid
    name: str
    figure: int
    ideal: int


FRACTIONAL = Shown(CF, "CF", 9, 3)
CLASSIC = Shown(PD_PI, "PD/PI", 10, 4)


def compare(own: Shown, other: Shown, paper: tuple[float, float, float], ratio: Bound) -> list[Row]:
    """Compare the response to 1 N with the `paper` (rise, overshoot, settling) and with `other`."""
    found, beside = response(experiment(YIELDING, own.law)), response(experiment(YIELDING, other.law))
    relative = f"relative to {other.name} of Fig. {other.figure}"
    return [
        *rows(f"{own.name} with flexible joints", found, *paper),
        Row(f"rise time, {relative}", ratio, found.rise / beside.rise),
        Row(f"settling time, {relative}", ratio, found.settling / beside.settling),
    ]


def outcome(own: Shown, other: Shown, table: list[Row], heading: str, spans: tuple[float, float]) -> Outcome:
    """Return the outcome with its picture.

    `spans` are the lengths of the long and the short time axis [ms].
    """

    def drawn(figure: Figure) -> None:
        curve = Curve(f"{own.name}, flexible joints", experiment(YIELDING, own.law), BLUE)
        curves = [
            curve,
            Curve(f"{own.name}, ideal joints (Fig. {own.ideal})", experiment(IDEAL, own.law), SKY, "--"),
            Curve(f"{other.name}, flexible joints (Fig. {other.figure})", experiment(YIELDING, other.law), PALE),
        ]
        twist = curve.run.rows["rotor"] - curve.run.rows["angle"]
        inside = Inside("twist beyond that at the end", "angle [µrad]", 1e6 * (twist - twist[-1]), curve, 30.0)
        draw(figure, f"Fig. {own.figure}: {heading}; step of 1 N", curves, inside, *spans)

    return Outcome(table, drawn)
