"""Hysteresis loops: mean friction over position for both directions, and comparison of loops.

A recording contains many strokes of different speeds and lengths. Each branch is the mean over distance of all samples
that move in its direction, in bins of position. Two recordings of the same motion can be compared bin by bin.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from haptics.errors import ConfigurationError

Array = NDArray[np.float64]

BINS = 60
"""Number of bins over the range of positions that both recordings share."""

FEWEST_BINS = 10
"""Minimum number of bins that both branches of both recordings share."""

_FEWEST_SAMPLES = 3


@dataclass(frozen=True, eq=False)
class Motion:
    """Friction along a motion, one value per sample, (n,) each.

    Attributes
    ----------
    position : array
        Position [rad] or [m].
    velocity : array
        Velocity [rad/s] or [m/s].
    friction : array
        Friction with the sign of the velocity [N m] or [N].
    """

    position: Array
    velocity: Array
    friction: Array


@dataclass(frozen=True, eq=False)
class Loop:
    """Mean branches of a hysteresis loop, nan for bins with too few samples.

    Attributes
    ----------
    position : (BINS,) array
        Centres of the bins.
    forward, backward : (BINS,) array
        Mean friction while the position increases and decreases.
    """

    position: Array
    forward: Array
    backward: Array


@dataclass(frozen=True)
class Comparison:
    """Comparison of two loops over the same bins.

    Attributes
    ----------
    measured, rendered : Loop
        Compared loops.
    level : float
        Level of dry friction, half the mean distance of the measured branches.
    difference : float
        Rms difference of the branches, forward and backward, divided by the level.
    area_measured, area_rendered : float
        Areas enclosed over the common bins: work of a stroke in both directions [J].
    """

    measured: Loop
    rendered: Loop
    level: float
    difference: float
    area_measured: float
    area_rendered: float


def mean_loop(motion: Motion, edges: Array) -> Loop:
    """Return the mean branches of a motion in bins of position between the edges.

    Samples, which are evenly spaced in time, are weighted by their speed. The means are then over distance, and the
    area between the branches is the work of a mean stroke.
    """
    place = np.digitize(motion.position, edges) - 1
    count = len(edges) - 1
    branches = []
    for sign in (1.0, -1.0):
        chosen = (sign * motion.velocity > 0.0) & (place >= 0) & (place < count)
        speed, bins = np.abs(motion.velocity[chosen]), place[chosen]
        samples, way = np.bincount(bins, minlength=count), np.bincount(bins, weights=speed, minlength=count)
        total = np.bincount(bins, weights=speed * motion.friction[chosen], minlength=count)
        known = (samples >= _FEWEST_SAMPLES) & (way > 0.0)
        branches.append(np.where(known, total / np.where(known, way, 1.0), np.nan))
    return Loop(0.5 * (edges[1:] + edges[:-1]), *branches)


def compare_loops(measured: Motion, rendered: Motion) -> Comparison:
    """Compare the loops of two motions over the range of positions that they share.

    Raises
    ------
    ConfigurationError
        If they share fewer than `FEWEST_BINS` bins, or the measured loop encloses no area.
    """
    low = max(float(one.position.min()) for one in (measured, rendered))
    high = min(float(one.position.max()) for one in (measured, rendered))
    if not low < high:
        raise ConfigurationError("the motions of the recordings do not overlap; run with the recorded hand (--hand).")
    edges = np.linspace(low, high, BINS + 1)
    loops = [mean_loop(one, edges) for one in (measured, rendered)]
    both = np.isfinite([branch for loop in loops for branch in (loop.forward, loop.backward)]).all(axis=0)
    if both.sum() < FEWEST_BINS:
        raise ConfigurationError(
            f"the recordings share {both.sum()} of {BINS} positions in both directions, and need {FEWEST_BINS}: run "
            "longer, or with the recorded hand (--hand)."
        )
    widths = [loop.forward[both] - loop.backward[both] for loop in loops]
    level = 0.5 * float(widths[0].mean())
    if not level > 0.0:
        raise ConfigurationError("the measured loop encloses no work: check the sign of the torque or force.")
    errors = [(getattr(loops[1], side) - getattr(loops[0], side))[both] for side in ("forward", "backward")]
    areas = (float(edges[1] - edges[0]) * float(width.sum()) for width in widths)
    difference = float(np.sqrt(np.mean(np.square(errors)))) / level
    return Comparison(loops[0], loops[1], level, difference, *areas)
