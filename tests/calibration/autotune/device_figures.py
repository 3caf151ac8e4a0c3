"""How well hidden devices are tuned: ``python -m tests.calibration.autotune.device_figures [FIRST [COUNT]]``.

A line for each device, and at the end how often the interval of each parameter holds the truth, how near the boundary
is, and how far any handle was moved.
"""

import sys
import time
from collections.abc import Iterable, Iterator

import numpy as np

from tests.calibration.autotune.hidden import Outcome, Truth, tuned

NEAR = 0.15
"""The boundary is to be within this part of the true one."""
HALF_WIDTH, HALF_HEIGHT = 0.1, 0.08
"""Of the workspace [m]."""


def outcomes(seeds: Iterable[int]) -> Iterator[Outcome]:
    """Tune one device after the other."""
    for seed in seeds:
        yield tuned(Truth.of(seed))


def line(outcome: Outcome) -> str:
    """Return what became of a device in a line."""
    truth, axis = outcome.truth, outcome.tuned.axes[0]
    boundary = axis.boundary
    outside = ", ".join(name for name, inside in outcome.held.items() if not inside)
    words = [
        f"{truth.mass:.3f} kg {truth.damping:.2f} N s/m {truth.friction:.3f} N",
        f"{1e3 * truth.numbers['delay']:.2f} ms {1e6 * truth.resolution:.1f} um {truth.rate:.0f} Hz",
        f"boundary {outcome.ratio:.3f}"
        if outcome.ratio == outcome.ratio
        else f"no boundary: {boundary and boundary.doubt}",
        f"{len(boundary.trials) if boundary else 0} trials, {outcome.duration:.0f} s, {1e3 * outcome.farthest:.1f} mm",
    ]
    return "; ".join([*words, *([f"OUTSIDE: {outside}"] if outside else []), *axis.doubts])


def summary(found: list[Outcome]) -> str:
    """Return the table of all devices."""
    lines = [f"{len(found)} devices"]
    for name in found[0].held:
        count = sum(one.held[name] for one in found)
        doubted = sum(one.held[name] or bool(one.tuned.axes[0].doubts) for one in found)
        lines.append(f"  {name:<11} inside its interval: {count}; or doubtful in words: {doubted}")
    ratios = np.array([one.ratio for one in found])
    known = ratios[np.isfinite(ratios)]
    near = int(np.sum(np.abs(known - 1.0) <= NEAR))
    lines.append(
        f"  boundary    found: {len(known)}; within {NEAR:.0%}: {near}; said not to be seen: {len(found) - len(known)}"
    )
    if len(known):
        lines.append(f"  found/true  {known.min():.3f} to {known.max():.3f}, median {np.median(known):.3f}")
    lines.append(f"  farthest    {1e3 * max(one.farthest for one in found):.1f} mm from the middle")
    return "\n".join(lines)


def main(arguments: list[str]) -> None:
    """Print the table."""
    first, count = (int(arguments[k]) if len(arguments) > k else default for k, default in ((0, 0), (1, 100)))
    found = []
    for seed, outcome in zip(range(first, first + count), outcomes(range(first, first + count)), strict=True):
        found.append(outcome)
        print(f"{seed}: {line(outcome)} [{time.process_time():.0f} s]", flush=True)  # noqa: T201
    print(summary(found))  # noqa: T201


if __name__ == "__main__":
    main(sys.argv[1:])
