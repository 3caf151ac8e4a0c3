"""Just noticeable differences of stiffness, damping and mass that are moved together, from one fraction.

Fu and others (TU Delft 2018) found that people who move an impedance to and fro at one frequency w tell a change of its
frequency response H = K - M w^2 + i B w by its size against that of H, whichever part it is in: the difference is told
where |dH| = c |H|. So a difference of the damping depends on the stiffness and the mass that are felt with it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from haptics.errors import ConfigurationError


@dataclass(frozen=True)
class ImpedanceDifferences:
    """What is just told of an impedance that is moved to and fro.

    Attributes
    ----------
    stiffness, damping, mass : float
        Each alone being changed [N/m], [N s/m], [kg].
    """

    stiffness: float
    damping: float
    mass: float


def impedance_differences(
    stiffness: float, damping: float, mass: float, frequency: float, fraction: float
) -> ImpedanceDifferences:
    """Return the differences that are just told.

    Parameters
    ----------
    stiffness, damping, mass : float
        The reference [N/m], [N s/m], [kg], at least 0 and not all of them 0.
    frequency : float
        Of the motion [Hz], greater than 0.
    fraction : float
        Of |H|, the Weber fraction of the force of a motion that is prescribed, greater than 0.

    Raises
    ------
    ConfigurationError
        If a value cannot be.
    """
    values = {"stiffness": stiffness, "damping": damping, "mass": mass}
    for name, value in values.items():
        if not 0.0 <= value < math.inf:
            raise ConfigurationError(f"{name} = {value!r}: must be a finite number of at least 0.")
    for name, value in (("frequency", frequency), ("fraction", fraction)):
        if not 0.0 < value < math.inf:
            raise ConfigurationError(f"{name} = {value!r}: must be a finite number greater than 0.")
    if not any(values.values()):
        raise ConfigurationError("stiffness, damping and mass are all 0: there is nothing to be felt.")
    w = 2.0 * math.pi * frequency
    told = fraction * math.hypot(stiffness - mass * w**2, damping * w)
    return ImpedanceDifferences(told, told / w, told / w**2)
