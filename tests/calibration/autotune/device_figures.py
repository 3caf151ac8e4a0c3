"""Accuracy of the tuning of hidden devices.

Run ``python -m tests.calibration.autotune.device_figures [KIND [FIRST [COUNT]]]``.
KIND is ``virtual`` (100 devices, with the truth of their arithmetic) or ``emulated`` (20 sticks behind their driver).
Prints a line for each device, then how often the interval of each parameter holds the truth, the relative error of the
boundary, and the largest distance of a handle from the middle.
"""

import sys
import time

import numpy as np

from haptics.errors import HapticError
from tests.calibration.autotune.hidden import StickTruth, Truth, tuned, tuned_stick

NEAR = 0.15
"""Permitted relative error of the boundary."""
HALF_WIDTH = 0.1
"""Half width of the workspace [m]."""

COUNTS = {"virtual": 100, "emulated": 20}


def outcome_of(kind, seed):
    """Tune a device of that kind."""
    return tuned(Truth.of(seed)) if kind == "virtual" else tuned_stick(StickTruth.of(seed))


def line(outcome):
    """Return a summary of one device."""
    truth, axis = outcome.truth, outcome.tuned.axes[0]
    assert axis.boundary is not None
    outside = ", ".join(name for name, inside in outcome.held.items() if not inside)
    words = [
        f"{truth.mass:.3f} kg {truth.damping:.2f} N s/m {truth.friction:.3f} N",
        f"{1e3 * axis.identified.fit.plant.delay:.2f} ms {1e6 * truth.resolution:.1f} um {truth.rate:.0f} Hz",
        f"boundary {outcome.ratio:.3f} {axis.boundary.doubt}".strip(),
        f"{len(axis.boundary.trials)} trials, {outcome.duration:.0f} s, {1e3 * outcome.farthest:.1f} mm",
    ]
    return "; ".join([*words, *([f"OUTSIDE: {outside}"] if outside else []), *axis.doubts])


def summary(found):
    """Return the table of all devices."""
    doubtful = np.array([bool(one.tuned.axes[0].doubts) for one in found])
    lines = [f"{len(found)} devices, {doubtful.sum()} doubtful"]
    for name in found[0].held:
        held = np.array([one.held[name] for one in found])
        lines.append(
            f"  {name:<11} inside its interval: {held.sum()}; outside and doubtful: {(doubtful & ~held).sum()}"
        )
    ratios = np.array([one.ratio for one in found])
    known = ratios[np.isfinite(ratios)]
    near = np.sum(np.abs(known - 1.0) <= NEAR)
    lines.append(f"  boundary    found: {len(known)} of {len(found)}; within {NEAR:.0%}: {near}")
    if len(known):
        lines.append(f"  found/true  {known.min():.3f} to {known.max():.3f}, median {np.median(known):.3f}")
    lines.append(f"  farthest    {1e3 * max(one.farthest for one in found):.1f} mm from the middle")
    return "\n".join(lines)


def main(arguments):
    """Print the table."""
    kind, *numbers = arguments or ["virtual"]
    first, count = (int(numbers[k]) if len(numbers) > k else default for k, default in ((0, 0), (1, COUNTS[kind])))
    found, failed = [], 0
    for seed in range(first, first + count):
        try:
            found.append(outcome_of(kind, seed))
            print(f"{seed}: {line(found[-1])} [{time.process_time():.0f} s]", flush=True)  # noqa: T201
        except HapticError as error:
            failed += 1
            print(f"{seed}: ENDED: {error}", flush=True)  # noqa: T201
    print(f"{summary(found)}\n  ended       by a bound of a motion: {failed}")  # noqa: T201


if __name__ == "__main__":
    main(sys.argv[1:])
