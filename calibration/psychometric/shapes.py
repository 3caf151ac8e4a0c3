"""Psychometric functions P = guess + (1 - guess - lapse) F((u - threshold)/width).

u is the level or its logarithm. F is one of four sigmoids with a common scaling, so that their parameters can be
compared: F = 1/2 at the threshold, and F rises from 5 to 95 % within one width (as in psignifit: Schuett, Harmeling,
Macke and Wichmann 2016).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from statistics import NormalDist
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from calibration.psychometric.estimate import checked_probability
from haptics.errors import ConfigurationError
from haptics.jit import kernel

Array = NDArray[np.float64]
ShapeName = Literal["phi", "logistic", "weibull", "dprime"]
ScaleName = Literal["linear", "log"]

PHI, LOGISTIC, WEIBULL, DPRIME = range(4)

SHAPES: dict[str, int] = {"phi": PHI, "logistic": LOGISTIC, "weibull": WEIBULL, "dprime": DPRIME}
"""Sigmoids by name.

``phi``: the normal distribution function. ``weibull``: 1 - exp(-(x/a)^b). ``dprime``: 2 Phi((x/a)^b) - 1, which with
guess 1/2 is the proportion correct in two intervals if d' grows as level^b; b = 1 is an observer with constant noise.
"""

SCALES = ("linear", "log")

_NORMAL = NormalDist()

_LARGEST_LOG = 700.0
"""Largest logarithm of a float."""

HALF_DPRIME = _NORMAL.inv_cdf(0.75)
"""Value of (x/a)^b at F = 1/2."""

PHI_SPAN = 2.0 * _NORMAL.inv_cdf(0.95)
LOGISTIC_SPAN = 2.0 * math.log(19.0)
WEIBULL_SPAN = math.log(math.log(0.05) / math.log(0.95))
DPRIME_SPAN = math.log(_NORMAL.inv_cdf(0.975) / _NORMAL.inv_cdf(0.525))
"""Distance between F = 0.05 and F = 0.95 in the standard variable of each sigmoid."""

_SPANS = (PHI_SPAN, LOGISTIC_SPAN, WEIBULL_SPAN, DPRIME_SPAN)
_STEEPNESS = (
    PHI_SPAN / math.sqrt(2.0 * math.pi),
    0.25 * LOGISTIC_SPAN,
    0.5 * math.log(2.0) * WEIBULL_SPAN,
    2.0 * HALF_DPRIME * _NORMAL.pdf(HALF_DPRIME) * DPRIME_SPAN,
)
_INVERSE: tuple[Callable[[float], float], ...] = (
    _NORMAL.inv_cdf,
    lambda share: math.log(share / (1.0 - share)),
    lambda share: math.log(math.log1p(-share) / math.log(0.5)),
    lambda share: math.log(_NORMAL.inv_cdf(0.5 + 0.5 * share) / HALF_DPRIME),
)


@dataclass(frozen=True)
class Shape:
    """Sigmoid on a scale of levels.

    Attributes
    ----------
    name : str
        ``phi``, ``logistic``, ``weibull`` or ``dprime``.
    scale : str
        Argument of the sigmoid: ``linear`` for the level or ``log`` for its logarithm. A Weibull function of the level
        and the ``dprime`` function are always sigmoids of the logarithm.
    """

    name: ShapeName
    scale: ScaleName

    @property
    def code(self) -> int:
        """Number of the sigmoid in kernels."""
        return SHAPES[self.name]

    @property
    def exponent_span(self) -> float:
        """Product of the width and the exponent b of ``weibull`` and ``dprime``."""
        return _SPANS[self.code]

    def position(self, levels: Array) -> Array:
        """Return u: the levels or their logarithms, minus infinity for a level of 0."""
        if self.scale == "linear":
            return levels
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(levels))

    def level(self, position: float) -> float:
        """Return the level at u."""
        if self.scale == "linear":
            return position
        return math.exp(position) if position < _LARGEST_LOG else math.inf

    def reach(self, share: float) -> float:
        """Return (u - threshold)/width at which F equals `share`: the inverse of F."""
        share = checked_probability(share, "proportion, without what is guessed,")
        return _INVERSE[self.code](share) / _SPANS[self.code]

    @property
    def steepness(self) -> float:
        """Slope dF/du at the threshold, times the width."""
        return _STEEPNESS[self.code]


def make_shape(name: str, scale: str) -> Shape:
    """Return a sigmoid by name.

    Raises
    ------
    ConfigurationError
        If the name or the scale is unknown.
    """
    if name not in SHAPES:
        raise ConfigurationError(f"shape = {name!r}: must be one of {', '.join(SHAPES)}.")
    if scale not in SCALES:
        raise ConfigurationError(f"scale = {scale!r}: must be linear or log.")
    return Shape(name, "log" if name in {"weibull", "dprime"} else scale)  # type: ignore[arg-type]


# --- kernels ----------------------------------------------------------------------------------------------------------

SMALLEST = 1e-12
"""Minimum distance of probabilities from 0 and 1.

A response that is impossible under some parameters then makes them improbable instead of giving nan.
"""

_ROOT_HALF = math.sqrt(0.5)
_LOG_2 = math.log(2.0)
_FARTHEST = 700.0
"""Maximum argument of exp in double precision."""


@kernel
def sigmoid(shape: int, t: float) -> float:
    """Return F at t = (u - threshold)/width (`calibration.psychometric.shapes`)."""
    if shape == PHI:
        return 0.5 * math.erfc(-PHI_SPAN * t * _ROOT_HALF)
    if shape == LOGISTIC:
        return 1.0 / (1.0 + math.exp(min(-LOGISTIC_SPAN * t, _FARTHEST)))
    if shape == WEIBULL:
        return -math.expm1(-_LOG_2 * math.exp(min(WEIBULL_SPAN * t, _FARTHEST)))
    return math.erf(HALF_DPRIME * _ROOT_HALF * math.exp(min(DPRIME_SPAN * t, _FARTHEST)))


@kernel
def clamped(p: float) -> float:
    """Return a probability at least `SMALLEST` away from 0 and 1."""
    return min(max(p, SMALLEST), 1.0 - SMALLEST)


@kernel
def log_beta(a: float, b: float) -> float:
    """Return the logarithm of the beta function."""
    return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)


@kernel
def log_answers(p: float, right: float, wrong: float, overdispersion: float) -> float:
    """Return the log probability of right and wrong responses, without the binomial coefficient.

    With an overdispersion eta above 0 the proportion itself varies between blocks: it follows Beta(p v, (1 - p) v) with
    v = 1/eta^2 - 1 (beta-binomial; Schuett et al. 2016).
    """
    p = clamped(p)
    if overdispersion == 0.0:
        return right * math.log(p) + wrong * math.log1p(-p)
    v = 1.0 / (overdispersion * overdispersion) - 1.0
    a, b = p * v, (1.0 - p) * v
    return log_beta(right + a, wrong + b) - log_beta(a, b)


@kernel
def add_log_likelihood(
    total: Array,
    shape: int,
    positions: Array,
    right: Array,
    wrong: Array,
    thresholds: Array,
    widths: Array,
    nuisances: Array,
) -> None:
    """Add the log likelihood of all responses to `total` (thresholds, widths, nuisances).

    `nuisances` (k, 3) contains lapse rate, guess rate and overdispersion of each of k combinations.
    """
    for i in range(len(thresholds)):
        for j in range(len(widths)):
            for row in range(len(positions)):
                f = sigmoid(shape, (positions[row] - thresholds[i]) / widths[j])
                for k in range(len(nuisances)):
                    lapse, guess = nuisances[k, 0], nuisances[k, 1]
                    p = guess + (1.0 - guess - lapse) * f
                    total[i, j, k] += log_answers(p, right[row], wrong[row], nuisances[k, 2])


@kernel
def fill_tables(
    log_right: Array,
    log_wrong: Array,
    shape: int,
    positions: Array,
    thresholds: Array,
    widths: Array,
    nuisances: Array,
) -> None:
    """Fill the log probabilities of a right and a wrong response (levels, cells).

    Cells are numbered as in `add_log_likelihood`, with the nuisances varying fastest.
    """
    count = len(nuisances)
    for row in range(len(positions)):
        for i in range(len(thresholds)):
            for j in range(len(widths)):
                f = sigmoid(shape, (positions[row] - thresholds[i]) / widths[j])
                for k in range(count):
                    lapse, guess = nuisances[k, 0], nuisances[k, 1]
                    p = clamped(guess + (1.0 - guess - lapse) * f)
                    cell = (i * len(widths) + j) * count + k
                    log_right[row, cell] = math.log(p)
                    log_wrong[row, cell] = math.log1p(-p)


@kernel
def add_from_tables(total: Array, log_right: Array, log_wrong: Array, right: Array, wrong: Array) -> None:
    """Add the log likelihood of responses to `total` (cells), from the tables of `fill_tables`."""
    for row in range(len(right)):
        if right[row] != 0.0:
            for cell in range(len(total)):
                total[cell] += right[row] * log_right[row, cell]
        if wrong[row] != 0.0:
            for cell in range(len(total)):
                total[cell] += wrong[row] * log_wrong[row, cell]


@kernel
def best_log_likelihoods(log_right: Array, log_wrong: Array, right: Array, wrong: Array) -> Array:
    """Return the largest log likelihood on the grid of each of several data sets (sets, levels)."""
    best = np.empty(len(right))
    total = np.empty(log_right.shape[1])
    for one in range(len(right)):
        total[:] = 0.0
        add_from_tables(total, log_right, log_wrong, right[one], wrong[one])
        best[one] = total.max()
    return best


@kernel
def predicted(
    histogram: Array,
    mean: Array,
    shape: int,
    positions: Array,
    thresholds: Array,
    widths: Array,
    nuisances: Array,
    mass: Array,
) -> None:
    """Compute the posterior distribution of P in even bins (positions, bins), and its mean."""
    bins = histogram.shape[1]
    for row in range(len(positions)):
        for i in range(len(thresholds)):
            for j in range(len(widths)):
                f = sigmoid(shape, (positions[row] - thresholds[i]) / widths[j])
                for k in range(len(nuisances)):
                    lapse, guess = nuisances[k, 0], nuisances[k, 1]
                    p = guess + (1.0 - guess - lapse) * f
                    histogram[row, min(int(p * bins), bins - 1)] += mass[i, j, k]
                    mean[row] += p * mass[i, j, k]
