"""Tables of servo laws in ``docs/reproduction.md``, with the sensitivity to model errors.

``python -m apps.reproduce.servo_sensitivity`` writes them to standard output.
"""

from __future__ import annotations

import sys

from apps.reproduce.arm_tour import LAWS, USUAL, Felt, Ratios, Trial, experiment, ratios, trial_measures

NAMES = {
    "pid": "PID",
    "rigid": "rigid feed-forward",
    "flatness": "flatness-based feed-forward",
    "fractional": "fractional order",
    "linearising": "exact linearisation, encoders also on the joints",
}
"""Names of the servo laws in the table."""


def _believed(name: str, per_cent: float) -> Trial:
    return Trial(arm=((f"model_{name}", per_cent / 100.0),))


TRIALS: dict[str, Trial] = {
    "as above": USUAL,
    "friction believed 30 % too low": _believed("friction", 70.0),
    "friction believed 20 % too low": _believed("friction", 80.0),
    "friction believed 10 % too low": _believed("friction", 90.0),
    "friction believed 10 % too high": _believed("friction", 110.0),
    "friction believed 20 % too high": _believed("friction", 120.0),
    "friction believed 30 % too high": _believed("friction", 130.0),
    "stiffness believed 30 % too low": _believed("stiffness", 70.0),
    "stiffness believed 15 % too low": _believed("stiffness", 85.0),
    "stiffness believed 30 % too high": _believed("stiffness", 130.0),
    "inertia believed 30 % too low": _believed("inertia", 70.0),
    "inertia believed 30 % too high": _believed("inertia", 130.0),
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


def of_law(law: str) -> Felt:
    """Return the measures of a servo law under the conditions of the figures."""
    return trial_measures(experiment(law))


def compared(trial: Trial) -> tuple[Felt, Ratios]:
    """Return the measures of flatness-based feed-forward, and its improvement over PID."""
    pid, flatness = (trial_measures(experiment(law, trial), trial) for law in ("pid", "flatness"))
    return flatness, ratios(pid, flatness)


def law_line(law: str, result: Felt) -> str:
    """Format the row of a servo law in Markdown."""
    error = f"{1e6 * result.error_rms:.0f} um ({1e6 * result.error_max:.0f} um)"
    numbers = f"{result.level:.3f} N | {result.unevenness:.2f} N | {result.knock:.1f} N | {result.breakaway:.1f} N"
    return f"| {NAMES[law]} | {error} | {numbers} |"


def trial_line(name: str, result: Felt, times: Ratios) -> str:
    """Format the row of a trial in Markdown."""
    felt_as = f"{1e6 * result.error_rms:.0f} um | {result.unevenness:.2f} N | {result.knock:.1f} N"
    return f"| {name} | {felt_as} | {times.closer:.1f} | {times.smoother:.1f} | {times.weaker:.1f} |"


def main() -> None:
    """Run all cases and write both tables."""
    lines = [
        "| servo law | error of the handle, rms (largest) | friction felt | force that is neither F nor M a, rms "
        "| hardest knock | handle breaks away at |",
        "|---|---|---|---|---|---|",
        *(law_line(law, of_law(law)) for law in LAWS),
        "",
        "| flatness-based feed-forward | error, rms | force that is neither F nor M a, rms | hardest knock "
        "| times closer than PID | times smoother | knocks times weaker |",
        "|---|---|---|---|---|---|---|",
        *(trial_line(name, *compared(trial)) for name, trial in TRIALS.items()),
    ]
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
