"""Simpler alternatives to models B and D with one step of delay (Kikuuwe et al. 2006, Fig. 12).

The paper warns of both. They have the same characteristic polynomial, z^2 - (2 - a - b) z + (1 - b) with a = T^2 K/M
and b = T B/M: the first while it slides, the second while it sticks, (63).

Both loops are implemented here without a device, because the step of delay between their parts is the effect to show.
"""

from __future__ import annotations

import numpy as np

from apps.reproduce.planar import Array
from haptics import MasslessImpedance, RigidAdmittance


def pulled_mass(body: RigidAdmittance, stiffness: float, damping: float, pull: Array) -> tuple[Array, Array]:
    """Simulate Fig. 12(a), the alternative of model B: a spring-damper and model A, one step late.

    Parameters
    ----------
    body : RigidAdmittance
        Body, stepped from its present state.
    stiffness, damping : float
        Parameters of the spring-damper [N/m], [N s/m].
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
    """Simulate Fig. 12(b) and (60), the alternative of model D: a free mass with model C one step late.

    Parameters
    ----------
    contact : MasslessImpedance
        Contact, stepped from its present state. Its present force acts on the mass in the first step.
    mass : float
        Mass [kg].
    velocity : float
        Initial velocity along x [m/s].
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
