"""Delay: a stiff contact oscillates above a predictable stiffness if its force is delayed.

The prediction is the largest eigenvalue of the sampled loop of handle and sticking contact (`haptics.design`), a
matrix that shares no code with the simulation. The measurement is a bisection: a tap on a bare handle, and a check
whether the oscillation after it grows. Above that stiffness, the passivity observer measures the energy that the loop
injects, and the passivity controller dissipates it (Hannaford and Ryu 2002).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from apps.gallery.showing import Guide, Outcome, Scene, Showing, Tables, derived, offline_rows
from apps.reproduce.outcome import Bound, Row
from apps.reproduce.style import BLUE, INK, ORANGE, dress
from haptics import Coulomb, MasslessImpedance
from haptics.design import Handle, stiffness_limit

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from haptics.records import Rows

TITLE = "delay: a late force rings from a predicted stiffness on, and a controller takes the energy out"

GUIDE = Guide(
    do="Tap the handle and let it go.",
    feel="Two milliseconds of delay: the stiff contact rings by itself; with the controller it comes to rest.",
    see="What is left of a tap at every stiffness, the predicted limit, and the energy that the loop injects.",
)

FRICTION, DAMPING, PERIOD = 4.0, 10.0, 1e-3
MASS, DELAY, STIFFNESS = 0.2, 2e-3, 6000.0
PUSH = [[0.2, 0.0, 0.0], [0.21, 6.0, 0.0], [0.23, 6.0, 0.0], [0.24, 0.0, 0.0]]
TAP = [[0.0, 0.0, 0.0], [0.01, 0.05, 0.0], [0.03, 0.05, 0.0], [0.04, 0.0, 0.0]]
"""Hand forces, time [s] and force [N]: a push for the demonstration, and a tap without slip."""

BARE: dict[str, Any] = {"mass": MASS, "damping": 0.0, "delay": DELAY, "substep": 1e-5}
"""Settings of the handle. The small substep keeps the energy error of the integration negligible."""

SWEPT = np.geomspace(0.75, 1.12, 13)
"""Stiffnesses in the picture, relative to the predicted limit."""

_DIGITS = 2e-3


def demonstrate(showing: Showing) -> Outcome:
    """Measure the stability limit, and show an unstable contact with and without the passivity controller."""
    duration = 1.5 if showing.brief else 3.0
    rings = np.array(showing.show(_tables(duration, control=False)).rows)
    calm = np.array(showing.record_offline(_tables(duration, control=True), "controlled").rows)
    predicted = stiffness_limit(Handle(MASS, 0.0, DELAY), DAMPING, PERIOD)
    low, high = 500.0, 50_000.0
    while high / low > 1.0 + _DIGITS:  # bisection
        middle = math.sqrt(low * high)
        low, high = (low, middle) if _growth(middle) > 1.0 else (middle, high)
    found = math.sqrt(low * high)
    swings = (_swing(rings), _swing(calm))
    energies = tuple(1e3 * float(rows["injected_energy"].max()) for rows in (rings, calm))
    rows = [
        derived("stiffness from which it rings over the predicted one", found / predicted, 0.1),
        Row("swing at the end without the controller", Bound(minimum=0.5), swings[0], unit="mm", source="guard"),
        Row("swing at the end with it", Bound(maximum=0.1), swings[1], unit="mm", source="guard"),
        Row("energy injected with it over that without", Bound(maximum=0.2), energies[1] / energies[0], source="guard"),
    ]
    tested = [(predicted * share, _growth(predicted * share)) for share in SWEPT]
    off = 100.0 * abs(found / predicted - 1.0)
    return Outcome(
        off,
        10.0,
        "%",
        f"it rings from {found:.0f} N/m on; predicted {predicted:.0f} N/m, which is off by",
        rows,
        lambda figure: _draw(figure, rings, calm, tested, predicted),
        [Scene("without the controller", rings), Scene("with the controller", calm)],
        {"injected_mj": {"without": energies[0], "with": energies[1]}},
    )


def _growth(stiffness: float) -> float:
    """Return the ratio of the oscillation amplitudes late and early in a run of one second."""
    settings = {**BARE, "resolution": 0.0, "velocity_estimator": "difference"}
    hand = {"name": "scripted-force", "script": TAP}
    element = MasslessImpedance(Coulomb(FRICTION), stiffness, DAMPING, PERIOD)
    place = offline_rows("virtual-joystick", {**settings, "hand": hand}, element, 1.0)["position"][:, 0]
    early, late = place[200:500], place[-300:]
    return float(np.ptp(late) / max(float(np.ptp(early)), 1e-30))


def _tables(duration: float, *, control: bool) -> Tables:
    return {
        "session": {"model": "C", "duration": duration},
        "device": {"name": "virtual-joystick", **BARE},
        "hand": {"name": "scripted-force", "script": PUSH},
        "law": {"name": "coulomb", "force": FRICTION},
        "element": {"stiffness": STIFFNESS, "damping": DAMPING},
        "envelope": {"passivity_control": control},
    }


def _swing(rows: Rows) -> float:
    """Return the peak-to-peak motion of the handle in the last half second [mm]."""
    return 1e3 * float(np.ptp(rows["position"][-500:, 0]))


def _draw(figure: Figure, rings: Rows, calm: Rows, tested: list[tuple[float, float]], predicted: float) -> None:
    grid = figure.add_gridspec(2, 2)
    place, energy, limit = (figure.add_subplot(grid[k]) for k in ((0, 0), (1, 0), (slice(None), 1)))
    for rows, colour, label in ((rings, ORANGE, "without the controller"), (calm, BLUE, "with it")):
        place.plot(rows["time"], 1e3 * rows["position"][:, 0], color=colour, linewidth=0.9, label=label)
        energy.semilogy(rows["time"], 1e3 * np.maximum(rows["injected_energy"], 1e-7), color=colour, linewidth=1.0)
    late = 1e3 * rings["position"][rings["time"] > 0.3, 0]
    place.set_ylim(float(late.min()) - 1.0, float(late.max()) + 2.0)
    place.legend(loc="upper right", fontsize=9)
    dress(place, "", "handle [mm]", f"{STIFFNESS / 1e3:g} N/mm, {1e3 * DELAY:g} ms late")
    dress(energy, "time [s]", "injected energy [mJ]")
    stiffnesses, growths = np.array(tested).T
    limit.semilogy(stiffnesses / 1e3, growths, "o-", color=ORANGE, markersize=4, label="growth of the swing, measured")
    limit.axhline(1.0, color=INK, linewidth=0.8)
    limit.axvline(predicted / 1e3, color=INK, linestyle="--", label=f"predicted limit {predicted / 1e3:.2f} N/mm")
    limit.legend(loc="upper left", fontsize=9)
    dress(limit, "stiffness [N/mm]", "swing at the end over that in the middle", "where it begins to ring")
