"""Motions of hands, written as CSV files for the hand ``recorded``."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

_EVERY = 0.02
"""Sampling period of a path [s]."""


def write_path(file: Path, times: NDArray[np.float64], x: NDArray[np.float64]) -> str:
    """Write a motion along x, shape (n,) [m], at `times`, shape (n,) [s], and return the file name."""
    file.parent.mkdir(parents=True, exist_ok=True)
    lines = [f"{t:.6f},{place:.9f},0\n" for t, place in zip(times, x, strict=True)]
    file.write_text("t,x,y\n" + "".join(lines), encoding="utf-8")
    return str(file)


def by_speeds(knots: NDArray[np.float64], begin: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return times [s] and positions [m], shape (n,), of a motion with speeds interpolated at `knots`.

    Parameters
    ----------
    knots : (m, 2) array
        Time [s] and speed [m/s].
    begin : float
        Initial position [m].
    """
    times = np.arange(0.0, knots[-1, 0] + 0.5 * _EVERY, _EVERY)
    speed = np.interp(times, knots[:, 0], knots[:, 1])
    places = begin + np.concatenate(([0.0], np.cumsum(0.5 * _EVERY * (speed[1:] + speed[:-1]))))
    return times, places
