"""A loop that rings because its force comes late, and the same loop with the passivity controller.

A bare handle of 0.2 kg, released after a push; model C on it, sticking; two milliseconds from a sample to its force.
Usage: ``python examples/passivity.py [PICTURE.png]``
"""

import sys
import tempfile
from pathlib import Path

import numpy as np

from devices import create_device
from haptics import Clock, Coulomb, MasslessImpedance, Servo, Trace
from haptics.design import Handle, stiffness_limit
from haptics.records import Status
from haptics.rendering.envelope import Limits

MASS, DELAY, STIFFNESS, DAMPING, PERIOD = 0.2, 2e-3, 6000.0, 10.0, 1e-3
PUSH = [[0.2, 0.0, 0.0], [0.21, 6.0, 0.0], [0.23, 6.0, 0.0], [0.24, 0.0, 0.0]]
BARE = {"mass": MASS, "damping": 0.0, "delay": DELAY, "hand": {"name": "scripted-force", "script": PUSH}}
BARE["substep"] = 1e-5  # of the plant [s]: errors of the integration must not change the energy noticeably
STIFFNESSES = np.geomspace(1500.0, 24000.0, 41)
BLUE, VERMILION, INK = "#0072B2", "#D55E00", "#222222"

RUNS = (("without the controller", VERMILION, "s-"), ("with the controller", BLUE, "o-"))
COURSES = (
    ("speed x [mm/s]", lambda rows: 1e3 * rows["velocity"][:, 0]),
    ("force x [N]", lambda rows: rows["command"][:, 0]),
    ("injected energy [uJ]", lambda rows: 1e6 * rows["injected_energy"]),
)


def session(stiffness, control, seconds=2.0):
    """Run the loop in simulated time and return its rows."""
    clock = Clock(PERIOD)
    joystick = create_device("virtual-joystick", BARE, clock=clock)
    limits = Limits.for_device(joystick.spec, {"passivity_control": control})
    element = MasslessImpedance(Coulomb(4.0), stiffness, DAMPING, PERIOD)
    with tempfile.TemporaryDirectory() as folder:
        trace = Trace.create(Path(folder) / "trace")
        Servo(joystick, element, trace, clock=clock, limits=limits).run(seconds)
        return trace.since(0)


def swing(rows):
    """Return by how much the handle still swings in the last half second [mm]."""
    return 1e3 * np.ptp(rows["position"][rows["time"] > rows["time"][-1] - 0.5, 0])


def draw(path, runs, swings, limit):
    """Draw speed, force and injected energy of both runs, and the remaining swing at every stiffness."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 9.5), dpi=110, facecolor="white", layout="constrained")
    FigureCanvasAgg(figure)
    grid = figure.add_gridspec(4, 2, height_ratios=(1, 1, 1, 1.25))
    for line in range(len(COURSES)):
        left = figure.add_subplot(grid[line, 0])
        draw_course(left, line, 0, runs[0])
        draw_course(figure.add_subplot(grid[line, 1], sharey=left), line, 1, runs[1])
    draw_swings(figure.add_subplot(grid[3, :]), swings, limit)
    figure.suptitle(
        f"model C, K = {STIFFNESS / 1e3:g} N/mm, B = {DAMPING:g} N s/m, {DELAY * 1e3:g} ms delay, "
        f"bare handle of {MASS:g} kg, counts of 0.01 mm",
        fontsize=12,
        color=INK,
    )
    figure.savefig(path)


def draw_course(axes, line, column, rows):
    """Draw one quantity of one run over time."""
    label, value = COURSES[line]
    name, colour, _ = RUNS[column]
    shown = (rows["time"] > 0.15) & (rows["time"] < 1.2)
    axes.plot(rows["time"][shown], value(rows)[shown], color=colour, linewidth=0.9)
    axes.axvspan(0.2, 0.24, color="#E6E6E6", zorder=0)
    axes.tick_params(labelleft=column == 0, labelbottom=line == 2)
    if line == 0:
        axes.set_title(name, fontsize=11, color=INK)
        axes.annotate("push", (0.195, 0.8), xycoords=("data", "axes fraction"), ha="right", fontsize=9)
    if line == 2:
        axes.set_yscale("log")
        axes.set_ylim(0.5, 5000)
        axes.set_yticks([1, 10, 100, 1000], ["1", "10", "100", "1000"])
        axes.set_xlabel("time [s]")
    if column == 0:
        axes.set_ylabel(label)
    style(axes)


def draw_swings(axes, swings, limit):
    """Draw the remaining swing [mm] over the stiffness, with the `limit` of stability [N/m]."""
    for (name, colour, marker), values in zip(RUNS, swings, strict=True):
        axes.loglog(STIFFNESSES / 1e3, values, marker, color=colour, markersize=4, label=name)
    bound = 0.55 * MASS / (DELAY + PERIOD) ** 2
    for place, words in ((limit, "without it stable up to"), (bound, "no constant damping holds more than")):
        axes.axvline(place / 1e3, color=INK, linewidth=1.0, linestyle="--")
        text = f"{words} {place / 1e3:.1f}  "
        axes.annotate(text, (place / 1e3, 0.95), xycoords=("data", "axes fraction"), ha="right", va="top")
    ticks = [1.5, 2, 3, 4, 6, 8, 10, 12, 16, 24]
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.set_xticks([], minor=True)
    axes.set_yticks([0.01, 0.1, 1], ["0.01", "0.1", "1"])
    axes.set_ylim(0.007, 5)
    axes.set_xlabel("stiffness of the coupling [N/mm]")
    axes.set_ylabel("swing left after 2 s [mm]")
    axes.legend(loc="lower right", frameon=False)
    style(axes)


def style(axes):
    """Give the axes the look of the project's pictures."""
    axes.grid(True, color="#E6E6E6", linewidth=0.6)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    axes.tick_params(labelsize=9)


if __name__ == "__main__":
    runs = [session(STIFFNESS, control) for control in (False, True)]
    for rows, name in zip(runs, ("without", "with"), strict=True):
        helped = np.mean(rows["status"] & Status.PASSIVITY != 0)
        print(
            f"{name} the controller: swings by {swing(rows):.2f} mm at the end, "
            f"at most {1e3 * rows['injected_energy'][500:].max():.3f} mJ injected after 0.5 s, "
            f"damped in {100 * helped:.0f} % of the ticks"
        )
    if len(sys.argv) > 1:
        swings = [[swing(session(stiffness, control)) for stiffness in STIFFNESSES] for control in (False, True)]
        draw(sys.argv[1], runs, swings, stiffness_limit(Handle(MASS, 0.0, DELAY), DAMPING, PERIOD))
