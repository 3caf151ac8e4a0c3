"""Figures of a device by the rows of a session: ages, delay, step of the position, friction, speed and force."""

from __future__ import annotations

import math

import numpy as np

PERIOD = 1e-3
"""Of a session [s]."""

GENTLE = 0.005
"""Speed of the hand with which one step of an encoder is told from the next [m/s]."""

MOVES = 0.8 * GENTLE
"""A handle that is slower may have nothing new to say for some ticks [m/s]."""

TOLD = 1e-9
"""What differs by less is the same position [m]."""


def ages(rows: np.ndarray) -> tuple[float, float]:
    """Return how old samples of a moving handle were: median, and the hundredth part that was older [s]."""
    moves = np.linalg.norm(rows["velocity"], axis=1) > MOVES
    found = rows["sample_age"][moves & np.isfinite(rows["sample_age"])]
    middle, most = np.percentile(found, (50, 99)) if len(found) else (math.nan, math.nan)
    return float(middle), float(most)


def hand_over(rows: np.ndarray) -> float:
    """Return the median time from taking a sample until the force made of it was the device's [s]."""
    found = rows["sample_age"] + rows["write_time"]
    return float(np.median(found[np.isfinite(found)]))


def step(rows: np.ndarray) -> float:
    """Return the step of the position along the axis that moves most: the median of what it moves when it does [m]."""
    moves = np.abs(np.diff(rows["position"], axis=0))
    along = moves[:, int(np.argmax(moves.sum(axis=0)))]
    told = along[along > TOLD]
    return float(np.median(told)) if len(told) else math.nan


def residual(rows: np.ndarray, friction: float) -> float:
    """Return what the hand has to do more than `friction` while it slides slowly [N]; nan if nobody knows its force."""
    speeds = np.linalg.norm(rows["velocity"], axis=1)
    slides = (rows["sticking"] == 0) & (speeds > 0.5 * GENTLE) & np.isfinite(rows["hand_force"]).all(axis=1)
    if slides.sum() < 100:
        return math.nan
    along = np.sum(rows["hand_force"][slides] * rows["velocity"][slides], axis=1) / speeds[slides]
    return float(np.median(along) - friction)


def fastest(rows: np.ndarray) -> float:
    """Return the greatest speed of the reference [m/s]."""
    return float(np.linalg.norm(np.diff(rows["command"], axis=0), axis=1).max() / PERIOD)


def strongest(rows: np.ndarray) -> float:
    """Return the greatest force that was commanded [N]."""
    return float(np.linalg.norm(rows["command"], axis=1).max())
