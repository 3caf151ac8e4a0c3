"""Smooth friction model of the arm's feed-forward, from the true or identified law of a joint."""

from __future__ import annotations

from devices.arm.flatness.friction import AsymmetricFriction
from haptics.friction.laws import Law

_STRIBECK = 0.8
"""Ratio of the decay rates at which a hyperbolic tangent best approximates an exponential."""


def smooth_friction(forward: Law, backward: Law, part: float, smoothness: float) -> AsymmetricFriction:
    """Return a smooth friction law that approximates the laws of both directions away from rest.

    Parameters
    ----------
    forward, backward : Law
        Torques [N m] at speeds [rad/s]: `Stribeck` or another law, falling with speed or not.
    part : float
        Factor on the friction of the model.
    smoothness : float
        Steepness at rest [s/rad].
    """
    laws, half = (forward, backward), 0.5 * part
    static = sum(law.breakaway_force for law in laws)
    kinetic, back = (float(getattr(law, "kinetic_force", law.breakaway_force)) for law in laws)
    falls = next((law for law in laws if hasattr(law, "stribeck_velocity")), None)
    return AsymmetricFriction(
        coulomb=half * static,
        viscosity=half * sum(law.slopes[1] for law in laws),
        steepness=smoothness,
        offset=half * (kinetic - back),
        second_coulomb=half * (kinetic + back - static),
        second_steepness=0.0 if falls is None else _STRIBECK / falls.stribeck_velocity,
    )
