"""The smooth friction model of an arm's feed-forward, made of the law that a joint has or that was identified."""

from __future__ import annotations

from devices.arm.flatness.friction import AsymmetricFriction
from haptics.friction.law import Law

_STRIBECK = 0.8
"""A hyperbolic tangent this much slower is nearest to an exponential."""


def smooth_friction(forward: Law, backward: Law, part: float, smoothness: float) -> AsymmetricFriction:
    """Return a smooth friction that is near the laws of both directions, away from rest.

    Parameters
    ----------
    forward, backward : Law
        Torques [N m] at speeds [rad/s]: `Stribeck`, or another law that falls, or one that does not.
    part : float
        Share of the friction that the model has.
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
