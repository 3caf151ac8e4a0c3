"""How to fit a friction model."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from haptics.errors import ConfigurationError
from haptics.settings import bounded, check, choice, free


@dataclass(frozen=True)
class FitSettings:
    """How to fit.

    Attributes
    ----------
    dead_band : float, optional
        Samples not faster than this are left out: near rest friction is no function of the velocity, and noise makes
        its sign uncertain. By default 1 % of the top speed, but at least four standard deviations of the noise.
    loss : str
        ``"square"``, or ``"huber"`` or ``"tukey"`` where some samples are wrong.
    physical : bool
        Whether levels are kept from being negative and static levels from lying below Coulomb's.
    fit_inertia : bool
        Whether the inertia is to be found too; needs accelerations.
    confidence : float
        How often the intervals are to hold the truth.
    correct_bias : bool
        Whether what noise on the velocity does to the parameters is undone.
    """

    dead_band: float | None = free(None, "a number of at least 0", doc="speed up to which samples are left out")
    loss: str = choice("square", ("square", "huber", "tukey"), doc="what far residuals count for")
    physical: bool = False
    fit_inertia: bool = False
    confidence: float = bounded(0.95, above=0.0, maximum=0.9999, doc="how often intervals hold the truth")
    correct_bias: bool = True

    def __post_init__(self) -> None:
        check(self)
        if self.dead_band is not None and not 0.0 <= self.dead_band < np.inf:
            raise ConfigurationError(f"dead_band {self.dead_band}: must be a finite number of at least 0")
