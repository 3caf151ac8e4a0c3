"""Conversion of identified friction to a law that an element can render or compensate."""

from __future__ import annotations

from typing import TYPE_CHECKING

from haptics.errors import ConfigurationError

if TYPE_CHECKING:
    from calibration.parameters.parameters import Found
    from haptics.friction.laws import Law


def law_of(found: Found, lever_arm: float) -> Law:
    """Return the law with the mean of both directions, forces in N and velocities in m/s.

    Parameters
    ----------
    found : Found
        Identified friction of a joint.
    lever_arm : float
        Distance from the axis at which it is felt [m]; 1 for a prismatic joint.

    Raises
    ------
    ConfigurationError
        If the lever arm is not greater than 0, or no supported law permits the levels.
    """
    from calibration.friction import MODELS
    from haptics.friction.laws import CoulombViscous, GaussianStribeck, Stribeck

    if not 0.0 < lever_arm < 1e6:
        raise ConfigurationError(f"lever_arm = {lever_arm!r}: must be a length greater than 0 m.")
    coulomb = _mean(found, "coulomb") / lever_arm
    viscosity = _mean(found, "viscosity") / lever_arm**2
    kind = MODELS[found.model].stribeck
    if kind == "none":
        return CoulombViscous(coulomb, viscosity)
    shape = {"exponential": Stribeck, "gaussian": GaussianStribeck}[kind]
    return shape(coulomb, _mean(found, "static") / lever_arm, found.values["stribeck_velocity"] * lever_arm, viscosity)


def _mean(found: Found, name: str) -> float:
    sides = [value for key, value in found.values.items() if key in {name, f"{name}_forward", f"{name}_backward"}]
    return sum(sides) / len(sides) if sides else 0.0  # a viscous joint has no level
