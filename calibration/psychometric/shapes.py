"""Psychometric functions P = guess + (1 - guess - lapse) F((u - threshold)/width).

u is the level or its logarithm. F is one of four sigmoids with a common scaling, so that their parameters can be
compared: F = 1/2 at the threshold, and F rises from 5 to 95 % within one width (as in psignifit: Schuett, Harmeling,
Macke and Wichmann 2016).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from calibration.psychometric.estimate import checked_probability
from haptics.errors import ConfigurationError

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
        if self.code == PHI:
            return _NORMAL.inv_cdf(share) / PHI_SPAN
        if self.code == LOGISTIC:
            return math.log(share / (1.0 - share)) / LOGISTIC_SPAN
        if self.code == WEIBULL:
            return math.log(math.log1p(-share) / math.log(0.5)) / WEIBULL_SPAN
        return math.log(_NORMAL.inv_cdf(0.5 + 0.5 * share) / HALF_DPRIME) / DPRIME_SPAN

    @property
    def steepness(self) -> float:
        """Slope dF/du at the threshold, times the width."""
        if self.code == PHI:
            return PHI_SPAN / math.sqrt(2.0 * math.pi)
        if self.code == LOGISTIC:
            return 0.25 * LOGISTIC_SPAN
        if self.code == WEIBULL:
            return 0.5 * math.log(2.0) * WEIBULL_SPAN
        return 2.0 * HALF_DPRIME * _NORMAL.pdf(HALF_DPRIME) * DPRIME_SPAN


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
