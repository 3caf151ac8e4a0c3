"""Settings of a friction fit."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from haptics.errors import ConfigurationError
from haptics.settings import bounded, check, choice, documented, flag, unrestricted


@documented
@dataclass(frozen=True)
class FitSettings:
    """Settings of a friction fit."""

    dead_band: float | None = unrestricted(
        None,
        "a number of at least 0",
        doc="samples not faster than this are left out: near rest friction is no function of the velocity, and "
        "noise makes its sign uncertain; if not given 1 % of the top speed, but at least four standard "
        "deviations of the noise",
    )
    loss: str = choice(
        "square", ("square", "huber", "tukey"), doc="loss function; huber or tukey where some samples are wrong"
    )
    unbounded: bool = flag(
        False,
        doc="whether levels and viscosities may be negative, and static levels less than the Coulomb levels",
    )
    common_offset: bool = flag(
        False, doc="whether all recordings have the same offset; otherwise each has an offset of its own"
    )
    slowest_fall: float = bounded(
        1.0,
        above=0.0,
        maximum=1.0,
        doc="largest Stribeck velocity that is searched, as a share of the top speed",
    )
    fit_inertia: bool = flag(False, doc="whether the inertia is to be found too; needs accelerations")
    confidence: float = bounded(0.95, above=0.0, maximum=0.9999, doc="confidence level of the intervals")
    correct_bias: bool = flag(True, doc="whether the effect of noise in the velocity on the parameters is undone")

    def __post_init__(self) -> None:
        check(self)
        if self.dead_band is not None and not 0.0 <= self.dead_band < np.inf:
            raise ConfigurationError(f"dead_band {self.dead_band}: must be a finite number of at least 0")
