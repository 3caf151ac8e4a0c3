"""Posterior of a psychometric function on a coarse grid, then on a fine one in the relevant region."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from calibration.psychometric.data import Responses
from calibration.psychometric.estimate import Estimate, Kind, interval_of
from calibration.psychometric.kernels import add_log_likelihood, predicted
from calibration.psychometric.priors import Box, Prior, RatePrior, make_box, span_of
from calibration.psychometric.shapes import Shape

Array = NDArray[np.float64]

COARSE = (41, 21, 8)
"""Numbers of thresholds, widths and rates of the coarse grid, which only locates the region."""

FINE = (61, 31, 9)
"""Numbers of grid points of the reported posterior.

Steps are a tenth of the interval, with interpolation between them.
"""

_PRESSING = 0.05
"""Relative marginal density at the end of a grid above which the grid limits the posterior.

The density of the slope alone, whose prior is normal, is below this value.
"""

_NEGLIGIBLE = 1e-5
_SMALL = 0.4
"""The grid is recomputed in a smaller region if the posterior fills less than this fraction of it."""


@dataclass(frozen=True)
class Posterior:
    """Posterior masses on a grid of parameters.

    Attributes
    ----------
    shape, prior, box
        Function, prior, and region of the parameters.
    thresholds, widths : (m,) and (w,) float arrays
        Grid in units of u: levels or logarithms of levels.
    nuisances : (k, 3) float array
        Lapse rate, guess rate and overdispersion.
    mass : (m, w, k) float array
        Masses with sum 1.
    """

    shape: Shape
    prior: Prior
    box: Box
    thresholds: Array
    widths: Array
    nuisances: Array
    mass: Array

    @cached_property
    def plane(self) -> Array:
        """Marginal masses of thresholds and widths (m, w)."""
        return np.asarray(self.mass.sum(axis=2))

    @cached_property
    def best(self) -> tuple[float, float, Array]:
        """Threshold, width and nuisances (3,) of the cell with the largest mass."""
        i, j, k = np.unravel_index(int(np.argmax(self.mass)), self.mass.shape)
        return float(self.thresholds[i]), float(self.widths[j]), self.nuisances[k]

    def of_plane(self, values: Array, probability: float, kind: Kind) -> Estimate:
        """Return the estimate of a quantity (m, w) that depends on threshold and width."""
        found = interval_of(values, self.plane, probability, "median" if kind == "map" else kind)
        if kind != "map":
            return found
        i, j, _ = np.unravel_index(int(np.argmax(self.mass)), self.mass.shape)
        value = float(values[i, j])
        return Estimate(value, min(found.low, value), max(found.high, value), probability)

    def of_rate(self, column: int, probability: float, kind: Kind) -> Estimate:
        """Return the estimate of the lapse rate (0), guess rate (1) or overdispersion (2)."""
        return interval_of(self.nuisances[:, column], self.mass.sum(axis=(0, 1)), probability, kind)

    def positions_at(self, share: float) -> Array:
        """Return u at which F equals `share`, for each threshold and width (m, w)."""
        return np.asarray(self.thresholds[:, None] + self.shape.reach(share) * self.widths)

    def predictions(self, positions: Array, bins: int = 2000) -> tuple[Array, Array]:
        """Return the cumulative posterior distribution of P at the positions (n, bins) and its mean (n,)."""
        histogram, mean = np.zeros((len(positions), bins)), np.zeros(len(positions))
        keep = self.mass.sum(axis=2) > 1e-7  # negligible cells do not affect the plotted lines
        rows, columns = np.flatnonzero(keep.any(axis=1)), np.flatnonzero(keep.any(axis=0))
        mass = self.mass[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
        predicted(
            histogram,
            mean,
            self.shape.code,
            positions,
            self.thresholds[rows[0] : rows[-1] + 1],
            self.widths[columns[0] : columns[-1] + 1],
            self.nuisances,
            mass / mass.sum(),
        )
        return np.cumsum(histogram, axis=1), mean


def find_posterior(shape: Shape, answers: Responses, prior: Prior) -> tuple[Posterior, list[str]]:
    """Return the posterior, and warnings about parameters at the end of their ranges."""
    positions = shape.position(answers.levels)
    box = make_box(shape, positions, prior.width)
    ends = (*box.thresholds, *box.log_widths)
    coarse = _on_grid(shape, answers, prior, box, ends, COARSE)
    fine = _on_grid(shape, answers, prior, box, _region(coarse), FINE, _lapses_within(coarse))
    region = _region(fine)
    if region[1] - region[0] < _SMALL * np.ptp(fine.thresholds) or region[3] - region[2] < _SMALL * np.ptp(
        np.log(fine.widths)
    ):
        fine = _on_grid(shape, answers, prior, box, region, FINE, _lapses_within(coarse))
    return fine, _pressing(coarse)


def _region(found: Posterior) -> tuple[float, float, float, float]:
    """Return the ranges of threshold and log width that contain nearly all of a posterior."""
    by_width = span_of(np.log(found.widths), found.plane.sum(axis=0))
    return (*span_of(found.thresholds, found.plane.sum(axis=1)), *by_width)


def _lapses_within(coarse: Posterior) -> tuple[float, float] | None:
    """Return the range of lapse rates with nearly all of a posterior; None if the rate is fixed."""
    if not isinstance(coarse.prior.lapse, RatePrior):
        return None
    edges = coarse.prior.lapse.edges(COARSE[2])
    cells = coarse.mass.sum(axis=(0, 1)).reshape(COARSE[2], -1).sum(axis=1)
    kept = np.flatnonzero(cells > _NEGLIGIBLE)
    return float(edges[max(kept[0] - 1, 0)]), float(edges[min(kept[-1] + 2, COARSE[2])])


def _on_grid(
    shape: Shape,
    answers: Responses,
    prior: Prior,
    box: Box,
    ends: tuple[float, float, float, float],
    counts: tuple[int, int, int],
    lapses_within: tuple[float, float] | None = None,
) -> Posterior:
    thresholds = np.linspace(ends[0], ends[1], counts[0])
    widths = np.exp(np.linspace(ends[2], ends[3], counts[1]))
    nuisances, log_mass = prior.nuisances(counts[2], lapses_within)
    total = np.ascontiguousarray(box.log_prior(thresholds, widths)[:, :, None] + log_mass)
    positions = shape.position(answers.levels)
    add_log_likelihood(total, shape.code, positions, answers.correct, answers.wrong, thresholds, widths, nuisances)
    mass = np.exp(total - total.max())
    return Posterior(shape, prior, box, thresholds, widths, nuisances, mass / mass.sum())


def _pressing(coarse: Posterior) -> list[str]:
    notes, (lowest, highest) = [], coarse.box.flat
    marginal = coarse.plane.sum(axis=1) / coarse.plane.sum(axis=1).max()
    for word, beyond in (("below", coarse.thresholds < lowest), ("above", coarse.thresholds > highest)):
        if marginal[beyond].max() > _PRESSING:
            notes.append(f"The threshold may lie far {word} the tested levels: the data do not limit it there.")
    slopes = coarse.plane.sum(axis=0) / coarse.plane.sum(axis=0).max()
    ends = [word for word, share in (("steeper", slopes[0]), ("flatter", slopes[-1])) if share > _PRESSING]
    if ends:
        which = " and ".join(ends)
        notes.append(f"The function may be {which} than considered: its prior limits the slope, not the data.")
    rates = coarse.mass.sum(axis=(0, 1))
    if len(coarse.nuisances) > 1 and coarse.nuisances[int(np.argmax(rates)), 0] == coarse.nuisances[:, 0].max():
        notes.append("The lapses may be more frequent than considered: look at the catch trials.")
    return notes
