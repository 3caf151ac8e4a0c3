"""Kikuuwe et al. 2006, section V-A, with every servo law: the rendering of model A by an arm.

The element computes the motion of a mass with friction exactly; the hand feels the response of the arm to it. The
joints have friction of about 10 N m, which is 25 N at the handle and four times the rendered friction, and elastic
gears. Stiff PID (the paper's choice) is compared with the feed-forwards of Weigand et al. 2020, rigid (27) and
flatness-based (20), with exact linearization, (12) to (15) there, and with the fractional-order law of Machado et al.
2002. All have the same bandwidth on the same arm with the same hand. The model-based laws use friction, inertia and
elasticity of the arm, but not its static friction, which no smooth law can represent.

The measures use the true position of the handle and the true force of the hand, which no sensor of the arm provides.
PID leaves an error of 0.2 mm, the torsion of the gears under friction, for any gains, because encoders on the motors do
not measure it.

The paper has none of these results. The perceived friction F, the break-away at F and the absence of motion at rest
follow from model A. The quality of a servo law does not, so those rows are guards. ``python -m
apps.reproduce.kikuuwe_servo`` writes tables of the servo laws, and of the comparison of PID and feed-forward under
errors of the arm model.
"""

from __future__ import annotations

import sys

from matplotlib.figure import Figure

from apps.reproduce.kikuuwe_arm import (
    CURVE,
    FRICTION,
    HANDLE,
    LAWS,
    MASS,
    REST,
    STRAIGHT,
    USUAL,
    Felt,
    Trial,
    experiment,
    ratios,
    remainder,
    trial_measures,
)
from apps.reproduce.outcome import Bound, Outcome, Row, derived, guard
from apps.reproduce.planar import norms
from apps.reproduce.style import BLUE, GREEN, INK, ORANGE, PALE, PINK, dress
from apps.reproduce.tour import MIDDLE

COLOURS = {"pid": ORANGE, "rigid": PINK, "flatness": BLUE, "fractional": GREEN, "linearising": PALE}
"""Colour of each law in the picture."""

ERROR = {"pid": 300.0, "rigid": 300.0, "flatness": 60.0, "fractional": 500.0, "linearising": 300.0}
"""Guard: upper bound of the rms tracking error [um]."""

UNEVENNESS = {"pid": 1.5, "rigid": 1.5, "flatness": 0.5, "fractional": 1.2, "linearising": 1.2}
"""Guard: upper bound of the rms residual force [N]."""

KNOCK = {"pid": 8.0, "rigid": 8.0, "flatness": 2.5, "fractional": 8.0, "linearising": 3.0}
"""Guard: upper bound of the largest residual force along the motion [N]."""


def reproduce() -> Outcome:
    """Compare all servo laws."""
    results = {law: trial_measures(experiment(law)) for law in LAWS}
    rows = [row for law, result in results.items() for row in _rows(law, result)]
    closer, smoother, weaker = ratios(results["pid"], results["flatness"])
    comparison = [
        guard("how many times smoother with flatness than with pid", Bound(minimum=2.0), smoother),
        guard("how many times weaker knocks are with flatness than with pid", Bound(minimum=2.0), weaker),
        guard("how many times closer with flatness than with pid", Bound(minimum=3.0), closer),
    ]
    return Outcome([*rows, *comparison], _draw)


def _rows(law: str, result: Felt) -> list[Row]:
    rms, largest, drift = (1e6 * length for length in (result.error_rms, result.error_max, result.drift))
    early = f"{law}: by how much the measured force misses F when the model breaks away"
    return [
        derived(f"{law}: friction felt on straight strokes", FRICTION, result.level, 0.02, "N"),
        derived(early, 0.0, result.early, 0.0, "N"),
        Row(f"{law}: drift of the reference at rest at {REST}", 0.0, 1e6 * result.reference_drift, 0.0, "um"),
        Row(f"{law}: drift of the handle at rest at {REST}", 0.0, drift, 1.0, "um"),
        guard(f"{law}: force of the hand when the handle breaks away", Bound(FRICTION, 7.5), result.breakaway, "N"),
        guard(f"{law}: angle of the friction felt to the motion", Bound(maximum=0.2), result.angle, "deg"),
        guard(f"{law}: force that is neither F nor M a, rms", Bound(maximum=UNEVENNESS[law]), result.unevenness, "N"),
        guard(f"{law}: largest of that force along the motion", Bound(maximum=KNOCK[law]), result.knock, "N"),
        guard(f"{law}: error of the handle, rms", Bound(maximum=ERROR[law]), rms, "um"),
        guard(f"{law}: error of the handle, largest", Bound(maximum=1e3), largest, "um"),
    ]


def _draw(figure: Figure) -> None:
    """Plot the handle error of every law, and the hand's force on every stroke for PID and flatness."""
    grid = figure.add_gridspec(2, 4, height_ratios=(1.2, 1.0))
    above = figure.add_subplot(grid[0, :])
    for law in ("fractional", "linearising", "rigid", "pid", "flatness"):
        run = experiment(law)
        error = norms(run.rows["command"][:-1] - run.handle[1:])
        above.plot(run.rows["time"][1:], 1e3 * error, color=COLOURS[law], linewidth=1.3, label=law)
    run = experiment()
    for stroke in (*STRAIGHT, CURVE):
        phase = run.phase(stroke)
        middle = phase.start + 0.5 * phase.duration
        above.text(middle, 1.02, stroke, transform=above.get_xaxis_transform(), ha="center", color=INK)
    dress(above, "time [s]", "error of the handle [mm]")
    above.set_ylim(bottom=0.0)
    above.set_xlim(0.0, float(run.rows["time"][-1]))
    above.legend(loc="center", bbox_to_anchor=(0.53, 0.8), fontsize=10, ncols=2)
    first = None
    for column, stroke in enumerate((*STRAIGHT, CURVE)):
        axes = figure.add_subplot(grid[1, column], sharey=first)
        for law in ("pid", "flatness"):
            run = experiment(law)
            ticks = run.ticks(stroke, MIDDLE)
            axes.plot(run.rows["time"][ticks], remainder(run, ticks), color=COLOURS[law], linewidth=1.2, label=law)
        axes.axhline(FRICTION, color=INK, linewidth=1.0, linestyle=":", label=f"F = {FRICTION:g} N")
        dress(axes, "time [s]", "", stroke)
        if first is None:
            first = axes
            axes.set_ylabel(f"hand's force along the\nmotion, less {MASS + HANDLE:g} kg a [N]")
            axes.legend(loc="upper right", fontsize=9)
        else:
            axes.tick_params(labelleft=False)
    figure.suptitle("Model A (F = 6 N, M = 2 kg) on the virtual arm: what servo laws make of it", color=INK)


# --- tables of ``docs/studies/servo_laws.md``, with the sensitivity to errors of the arm model -------------------

NAMES = {
    "pid": "PID",
    "rigid": "rigid feed-forward",
    "flatness": "flatness-based feed-forward",
    "fractional": "fractional order",
    "linearising": "exact linearisation, encoders also on the joints",
}
"""Names of the servo laws in the table."""


TRIALS: dict[str, Trial] = {
    "as above": USUAL,
    **{
        f"{name} believed 30 % too {word}": Trial(arm=((f"model_{name}", factor),))
        for name in ("friction", "stiffness", "inertia")
        for word, factor in (("low", 0.7), ("high", 1.3))
        if (name, word) != ("inertia", "low")
    },
    "F = 3 N": Trial(friction=3.0),
    "F = 10 N": Trial(friction=10.0),
    "M = 1.2 kg": Trial(mass=1.2),
    "M = 4 kg": Trial(mass=4.0),
    "bandwidth 25 Hz": Trial(servo=(("bandwidth", 25.0),)),
    "bandwidth 80 Hz": Trial(servo=(("bandwidth", 80.0),)),
    "hand at 0.09 m/s": Trial(hand=(("speed", 0.09),)),
    "hand at 0.3 m/s": Trial(hand=(("speed", 0.3),)),
    "hand half as stiff and damped": Trial(hand=(("stiffness", 300.0), ("damping", 20.0))),
    "hand twice as stiff": Trial(hand=(("stiffness", 1200.0),)),
}
"""Varied conditions by the name in the table; all others are as in the figures."""


def compared(trial: Trial) -> tuple[Felt, tuple[float, float, float]]:
    """Return the measures of flatness-based feed-forward, and its improvement over PID."""
    pid, flatness = (trial_measures(experiment(law, trial), trial) for law in ("pid", "flatness"))
    return flatness, ratios(pid, flatness)


def law_line(law: str) -> str:
    """Return the row of a servo law in Markdown, under the conditions of the figures."""
    result = trial_measures(experiment(law))
    error = f"{1e6 * result.error_rms:.0f} um ({1e6 * result.error_max:.0f} um)"
    numbers = f"{result.level:.3f} N | {result.unevenness:.2f} N | {result.knock:.1f} N | {result.breakaway:.1f} N"
    return f"| {NAMES[law]} | {error} | {numbers} |"


def trial_line(name: str) -> str:
    """Return the row of a trial in Markdown."""
    result, times = compared(TRIALS[name])
    felt_as = f"{1e6 * result.error_rms:.0f} um | {result.unevenness:.2f} N | {result.knock:.1f} N"
    return f"| {name} | {felt_as} | {times[0]:.1f} |"


def main() -> None:
    """Run all cases and write both tables."""
    lines = [
        "| servo law | error of the handle, rms (largest) | friction felt | force that is neither F nor M a, rms "
        "| hardest knock | handle breaks away at |",
        "|---|---|---|---|---|---|",
        *map(law_line, LAWS),
        "",
        "| flatness-based feed-forward | error, rms | force that is neither F nor M a, rms | hardest knock "
        "| times closer than PID |",
        "|---|---|---|---|---|",
        *map(trial_line, TRIALS),
    ]
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
