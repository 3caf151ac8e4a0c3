"""Encoder and damping: predictable force noise of a damper due to encoder quantization.

The hand moves the handle to and fro while the contact sticks. The handle crosses several counts in a tick, so that the
quantization error is white and uniformly distributed over a count q, with a variance of q^2/12 (Bennett 1948). A
sticking contact computes ``f = K x + B (x_k - x_{k-1}) / T``, so that the standard deviation of its force noise is
``q / sqrt(12) * hypot(K + B/T, B/T)``. The speed of the motion varies, because a constant number of counts per tick
would not be uniformly distributed.

The noise is measured as the difference from the same run with a perfect encoder.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from apps.gallery.showing import Guide, Outcome, Scene, Showing, Tables, derived, write_path
from apps.reproduce.style import BLUE, INK, ORANGE, dress

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from haptics.records import Rows

TITLE = "encoder and damping: what the counts of an encoder make of a damper"

GUIDE = Guide(
    do="Move the handle to and fro within what the contact yields.",
    feel="With four times the damping the same encoder buzzes almost four times as much.",
    see="The noise of the force for two dampers and two encoders, beside what was predicted.",
)

FRICTION, STIFFNESS, PERIOD = 9.0, 1000.0, 1e-3
SMALL, LARGE = 10.0, 40.0
"""Damping of the contact [N s/m]."""

COUNT = 10e-6
"""Resolution of the encoder [m]."""

AMPLITUDE, FREQUENCY, SETTLED = 0.005, 2.0, 1.0
"""Amplitude [m] and frequency [Hz] of the motion, and the start of the evaluation [s]."""

Cell = tuple[float, float]
"""Damping of the contact [N s/m] and resolution of the encoder [m]."""

CELLS: tuple[Cell, ...] = ((LARGE, COUNT), (SMALL, COUNT), (SMALL, 2.0 * COUNT))


def demonstrate(showing: Showing) -> Outcome:
    """Run all combinations of damping and resolution, and a perfect encoder for each damping."""
    duration = 3.0 if showing.brief else 10.0
    times = np.arange(0.0, duration, 0.005)
    speeds = math.tau * FREQUENCY * AMPLITUDE * np.cos(math.tau * FREQUENCY * times) * np.minimum(times / 0.5, 1.0)
    path = write_path(showing.folder / "to_and_fro.csv", np.column_stack((times, speeds)), 0.0)
    runs: dict[Cell, Rows] = {}
    for number, (damping, count) in enumerate((*CELLS, (LARGE, 0.0), (SMALL, 0.0))):
        tables = _tables(path, duration, damping, count)
        recording = (
            showing.show(tables) if number == 0 else showing.record_offline(tables, f"{damping:g}_{1e6 * count:g}um")
        )
        runs[damping, count] = np.array(recording.rows)
    noises = {cell: _noise(runs[cell], runs[cell[0], 0.0]) for cell in CELLS}
    found = {cell: float(noise.std()) for cell, noise in noises.items()}
    fine, coarse, firm = (SMALL, COUNT), (SMALL, 2.0 * COUNT), (LARGE, COUNT)
    ratio, expected = found[firm] / found[fine], predicted(firm) / predicted(fine)
    rows = [derived("noise with twice the count over that with one", found[coarse] / found[fine], 0.2, 2.0)]
    for cell in CELLS:
        quantity = f"noise with {cell[0]:g} N s/m and {1e6 * cell[1]:g} um over the predicted one"
        rows.append(derived(quantity, found[cell] / predicted(cell), 0.1))
    stuck = min(float(runs[cell]["sticking"].mean()) for cell in CELLS)
    rows.append(derived("share of ticks that stick", stuck))
    return Outcome(
        100.0 * abs(ratio / expected - 1.0),
        10.0,
        "%",
        f"the noise rises {ratio:.2f} times; predicted {expected:.2f} times, which is off by",
        rows,
        lambda figure: _draw(figure, runs[firm]["time"], noises, found),
        [Scene(f"damper of {damping:g} N s/m", runs[damping, COUNT]) for damping in (SMALL, LARGE)],
        {"noise_n": {f"{damping:g} N s/m, {1e6 * count:g} um": found[damping, count] for damping, count in CELLS}},
    )


def predicted(cell: Cell) -> float:
    """Return the predicted standard deviation of the force noise [N]."""
    damping, count = cell
    return count / math.sqrt(12.0) * math.hypot(STIFFNESS + damping / PERIOD, damping / PERIOD)


def _noise(rows: Rows, perfect: Rows) -> np.ndarray:
    """Return the force noise of the encoder, shape (n,) [N], at the ticks that both runs contain."""
    _, one, other = np.intersect1d(rows["tick"], perfect["tick"], return_indices=True)
    late = rows["time"][one] > SETTLED
    return np.asarray((rows["command"][one] - perfect["command"][other])[late, 0])


def _tables(path: str, duration: float, damping: float, count: float) -> Tables:
    return {
        "session": {"model": "C", "duration": duration},
        "device": {
            "name": "virtual-joystick",
            "damping": 0.0,
            "resolution": count,
            "velocity_estimator": "difference",
        },
        "hand": {"name": "recorded", "file": path, "centre": False, "stiffness": 3000.0, "damping": 40.0},
        "law": {"name": "coulomb", "force": FRICTION},
        "element": {"stiffness": STIFFNESS, "damping": damping},
    }


def _draw(figure: Figure, times: np.ndarray, noises: dict[Cell, np.ndarray], found: dict[Cell, float]) -> None:
    left, right = figure.subplots(1, 2, width_ratios=(1.6, 1.0))
    for damping, colour in ((LARGE, ORANGE), (SMALL, BLUE)):
        noise = noises[damping, COUNT][:300]
        left.plot(
            1e3 * np.arange(len(noise)) * PERIOD, 1e3 * noise, color=colour, linewidth=0.9, label=f"{damping:g} N s/m"
        )
    left.legend(loc="upper right")
    dress(left, "time [ms]", "noise of the force [mN]", f"encoder of {1e6 * COUNT:g} um")
    names = [f"{damping:g} N s/m\n{1e6 * count:g} um" for damping, count in CELLS]
    right.bar(names, [1e3 * found[cell] for cell in CELLS], color=[ORANGE, BLUE, BLUE], width=0.5, label="measured")
    right.plot(names, [1e3 * predicted(cell) for cell in CELLS], "D", color=INK, markersize=8, label="predicted")
    right.legend(loc="upper right")
    dress(right, "", "standard deviation [mN]", "measured and predicted")
