"""Accuracy of the tuning of hidden devices.

Run ``python -m tests.calibration.autotune.device_figures [KIND]``.
KIND is ``virtual`` (100 devices, with the truth of their arithmetic) or ``emulated`` (20 sticks behind their driver).
Prints the found over the true boundary of each device and its doubts, then how often the interval of each parameter
holds the truth, the relative error of the boundary, and the largest distance of a handle from the middle.
"""

import sys

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
    (kind,) = arguments or ["virtual"]
    found, failed = [], 0
    for seed in range(COUNTS[kind]):
        try:
            found.append(outcome_of(kind, seed))
            print(f"{seed}: boundary {found[-1].ratio:.3f} {found[-1].tuned.axes[0].doubts}", flush=True)  # noqa: T201
        except HapticError as error:
            failed += 1
            print(f"{seed}: ENDED: {error}", flush=True)  # noqa: T201
    print(f"{summary(found)}\n  ended       by a bound of a motion: {failed}")  # noqa: T201


if __name__ == "__main__":
    main(sys.argv[1:])
