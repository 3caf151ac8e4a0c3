"""How well hidden devices are tuned: ``python -m tests.calibration.autotune.device_figures [KIND [FIRST [COUNT]]]``.

KIND is ``virtual`` (100, with the truth of their own arithmetic) or ``emulated`` (20 sticks behind their driver).
A line for each device, and at the end how often the interval of each parameter holds the truth, how near the boundary
is, and how far any handle was moved.
"""

import sys
import time
from collections.abc import Iterable, Iterator

import numpy as np

from haptics.errors import HapticError
from tests.calibration.autotune.emulated import StickTruth, tuned_stick
from tests.calibration.autotune.hidden import Outcome, Truth, tuned

NEAR = 0.15
"""The boundary is to be within this part of the true one."""
HALF_WIDTH = 0.1
"""Of the workspace [m]."""

COUNTS = {"virtual": 100, "emulated": 20}


def outcome_of(kind: str, seed: int) -> Outcome:
    """Tune a device of that kind."""
    return tuned(Truth.of(seed)) if kind == "virtual" else tuned_stick(StickTruth.of(seed))


def outcomes(kind: str, seeds: Iterable[int]) -> Iterator[Outcome]:
    """Tune one device after the other."""
    for seed in seeds:
        yield outcome_of(kind, seed)


def line(outcome: Outcome) -> str:
    """Return what became of a device in a line."""
    truth, axis = outcome.truth, outcome.tuned.axes[0]
    boundary = axis.boundary
    assert boundary is not None
    outside = ", ".join(name for name, inside in outcome.held.items() if not inside)
    words = [
        f"{truth.mass:.3f} kg {truth.damping:.2f} N s/m {truth.friction:.3f} N",
        f"{1e3 * axis.identified.fit.plant.delay:.2f} ms {1e6 * truth.resolution:.1f} um {truth.rate:.0f} Hz",
        f"boundary {outcome.ratio:.3f}" if outcome.ratio == outcome.ratio else f"no boundary: {boundary.doubt}",
        f"expected {boundary.expected / (boundary.stiffness or np.nan):.2f} of it",
        f"{len(boundary.trials)} trials, {outcome.duration:.0f} s, {1e3 * outcome.farthest:.1f} mm",
    ]
    return "; ".join([*words, *([f"OUTSIDE: {outside}"] if outside else []), *axis.doubts])


def summary(found: list[Outcome]) -> str:
    """Return the table of all devices."""
    lines = [f"{len(found)} devices"]
    for name in found[0].held:
        count = sum(one.held[name] for one in found)
        told = sum(bool(one.tuned.axes[0].doubts) and not one.held[name] for one in found)
        lines.append(f"  {name:<11} inside its interval: {count}; outside, but doubtful in words: {told}")
    ratios = np.array([one.ratio for one in found])
    known = ratios[np.isfinite(ratios)]
    near = int(np.sum(np.abs(known - 1.0) <= NEAR))
    unseen = len(found) - len(known)
    lines.append(f"  boundary    found: {len(known)}; within {NEAR:.0%}: {near}; said not to be seen: {unseen}")
    if len(known):
        lines.append(f"  found/true  {known.min():.3f} to {known.max():.3f}, median {np.median(known):.3f}")
    lines.append(f"  doubtful    {sum(bool(one.tuned.axes[0].doubts) for one in found)}")
    lines.append(f"  farthest    {1e3 * max(one.farthest for one in found):.1f} mm from the middle")
    return "\n".join(lines)


def main(arguments: list[str]) -> None:
    """Print the table."""
    kind, *numbers = arguments or ["virtual"]
    first, count = (int(numbers[k]) if len(numbers) > k else default for k, default in ((0, 0), (1, COUNTS[kind])))
    found, failed = [], 0
    for seed in range(first, first + count):
        try:
            outcome = outcome_of(kind, seed)
        except HapticError as error:
            failed += 1
            print(f"{seed}: ENDED: {error}", flush=True)  # noqa: T201
            continue
        found.append(outcome)
        print(f"{seed}: {line(outcome)} [{time.process_time():.0f} s]", flush=True)  # noqa: T201
    print(f"{summary(found)}\n  ended       by a bound of a motion: {failed}")  # noqa: T201


if __name__ == "__main__":
    main(sys.argv[1:])
