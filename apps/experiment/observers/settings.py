"""Settings of an observer (table ``observer`` of an experiment), and typical acuities of each axis."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from haptics.errors import ConfigurationError
from haptics.settings import bounded, check, documented, unrestricted

Z75 = 0.6744897501960817
"""75 % quantile of the standard normal distribution."""


@dataclass(frozen=True)
class Acuity:
    """Discrimination acuity on an axis.

    Attributes
    ----------
    weber : float
        Increment with 75 % correct in two intervals, relative to the reference.
    floor : float
        The same increment without a reference, in units of the axis.
    """

    weber: float
    floor: float

    def increment(self, reference: float) -> float:
        """Return the increment J with 75 % correct: J^2 = (weber x reference)^2 + floor^2."""
        return math.hypot(self.weber * reference, self.floor)


_FORCE, _VISCOSITY, _OTHER = Acuity(0.10, 0.05), Acuity(0.23, 1.0), Acuity(0.20, 0.0)
_COEFFICIENT = Acuity(0.18, 0.043)

USUAL: dict[str, Acuity] = {
    "law.force": _FORCE,
    "law.kinetic_force": _FORCE,
    "law.static_force": _FORCE,
    "law.viscosity": _VISCOSITY,
    "element.damping": _VISCOSITY,
    "element.stiffness": _OTHER,
    "element.mass": _OTHER,
    "wall.friction": _COEFFICIENT,
    "wall.stiffness": _OTHER,
}
"""Typical acuity of each axis.

Force 7 to 20 % (Pang, Tan and Durlach 1991: 7 %), viscosity 23 % (Jones, Hunter and Lafontaine 1997), stiffness and
mass about 20 % (Jones and Hunter 1990; Beauregard and Srinivasan). The floors of 0.05 N and 1 N s/m are assumptions of
this project. Friction coefficients: 0.056 on 0.2 and 0.150 on 0.8, the ends of the range in Provancher and Sylvester
(2009).
"""


@documented
@dataclass(frozen=True)
class ObserverSettings:
    """Table ``observer``: typical simulated observer, about which individuals are distributed."""

    level: int = bounded(1, minimum=1, maximum=2, doc="1: answers by what was asked; 2: by the force that was recorded")
    weber: Any = unrestricted(
        None, "a number greater than 0", doc="Weber fraction at 75 % correct; none: usual for the axis"
    )
    floor: Any = unrestricted(
        None, "a number of at least 0", doc="least increment at 75 %, in units of the axis; none: usual"
    )
    lapse: float = bounded(0.02, minimum=0.0, maximum=0.3, doc="share of wrong answers where nothing could be missed")
    spread: float = bounded(
        0.3, minimum=0.0, maximum=2.0, doc="standard deviation between people, as a share of the mean"
    )
    order_bias: float = bounded(
        0.0, minimum=-3.0, maximum=3.0, doc="preference for the second interval, in standard deviations of a comparison"
    )
    false_alarms: float = bounded(
        0.16, above=0.0, maximum=0.499, doc="share of yes, or different, where there is nothing; before lapses"
    )
    exponent: float = bounded(1.0, above=0.0, maximum=5.0, doc="exponent of magnitude estimates (Stevens)")
    estimate_spread: float = bounded(
        0.15, minimum=0.0, maximum=2.0, doc="standard deviation of the logarithm of magnitude estimates"
    )
    reaction_time: float = bounded(0.6, above=0.0, maximum=60.0, unit="s", doc="median reaction time")
    reaction_spread: float = bounded(
        0.3, minimum=0.0, maximum=2.0, doc="standard deviation of the logarithm of reaction times"
    )
    integration: float = bounded(
        0.5, above=0.0, maximum=10.0, unit="s", doc="level 2: time of sliding that goes into an estimate"
    )
    sampling: float = bounded(
        0.01, above=0.0, maximum=1.0, unit="s", doc="level 2: time between two samples of the force"
    )
    least_speed: float = bounded(
        0.02, minimum=0.0, maximum=1.0, unit="m/s", doc="level 2: slower motion is not sliding"
    )

    def __post_init__(self) -> None:
        check(self, "observer")
        for name, least in (("weber", math.ulp(0.0)), ("floor", 0.0)):
            value = getattr(self, name)
            number = isinstance(value, int | float) and not isinstance(value, bool)
            if value is not None and not (number and least <= value < math.inf):
                word = "greater than 0" if least else "of at least 0"
                raise ConfigurationError(f"observer.{name} = {value!r}: must be a number {word}.")

    def acuity(self, axis: str) -> Acuity:
        """Return the acuity of the typical observer.

        Raises
        ------
        ConfigurationError
            If the axis has no typical acuity and the settings contain none.
        """
        usual = USUAL.get(axis)
        if usual is None and self.weber is None:
            raise ConfigurationError(
                f"observer.weber is missing: no Weber fraction is usual for {axis}; give one, such as 0.2."
            )
        weber = self.weber if self.weber is not None else usual.weber if usual else 0.0
        floor = self.floor if self.floor is not None else usual.floor if usual else 0.0
        return Acuity(float(weber), float(floor))

    @property
    def log_spread(self) -> float:
        """Standard deviation of the logarithm of the acuity between observers."""
        return math.sqrt(math.log1p(self.spread**2))
