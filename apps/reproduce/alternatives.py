"""The alternatives to models B and D that Kikuuwe et al. 2006 warn of (Fig. 12): simpler parts, one step of delay more.

Both obey the same characteristic polynomial, z^2 - (2 - a - b) z + (1 - b) with a = T^2 K/M and b = T B/M: the first
while it slides, the second while it sticks, (63).

Their loops are their own: no device comes into them, and the step of delay between their parts is what they show.
"""

from __future__ import annotations

import numpy as np

from apps.reproduce.planar import Array
from haptics import MasslessImpedance, RigidAdmittance


def pulled_mass(body: RigidAdmittance, stiffness: float, damping: float, pull: Array) -> tuple[Array, Array]:
    """Compute Fig. 12(a), the alternative of model B: a spring-damper in front of model A, which it sees one step late.

    Parameters
    ----------
    body : RigidAdmittance
        Is stepped from its present state on.
    stiffness, damping : float
        Of the spring-damper [N/m], [N s/m].
    pull : (n, 2) array
        Velocity of its other end [m/s].

    Returns
    -------
    force, velocity : (n, 2) arrays
        Force of the spring-damper [N] and velocity of the body [m/s] at every step.
    """
    stretch, velocity = np.zeros(2), body.velocity
    forces, velocities = np.empty_like(pull), np.empty_like(pull)
    for k, u in enumerate(pull):
        relative = u - velocity
        stretch = stretch + body.period * relative
        forces[k] = stiffness * stretch + damping * relative
        velocities[k] = velocity = body.step(forces[k])
    return forces, velocities


def mass_on_contact(contact: MasslessImpedance, mass: float, velocity: float, count: int) -> Array:
    """Compute Fig. 12(b) and (60), the alternative of model D: a free mass that feels model C one step late.

    Parameters
    ----------
    contact : MasslessImpedance
        Is stepped from its present state on; the mass begins with its present force.
    mass : float
        The mass [kg].
    velocity : float
        What it begins with, along x [m/s].
    count : int
        Number of steps n.

    Returns
    -------
    (n,) array
        Velocity along x after every step [m/s].
    """
    u, friction = np.array((velocity, 0.0)), contact.friction_force
    speeds = np.empty(count)
    for k in range(count):
        u = u - contact.period / mass * friction
        friction = contact.step(u)
        speeds[k] = u[0]
    return speeds
