"""Kernels and records for one tick of a network of masses, springs and model-C contacts.

`haptics.elements.network.network` defines the class and documents the computation.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from haptics.elements.kernels import PARAMETER_FIELDS, STATE_FIELDS, step_element
from haptics.jit import kernel
from haptics.records import Rows

WALL = 0
BASE = 1
BODY = 2

_ENDS: list[tuple[Any, ...]] = [("first", "<i8"), ("second", "<i8")]

NODE = np.dtype(
    [
        ("kind", "<i8"),
        ("inverse_mass", "<f8"),
        ("velocity", "<f8", (2,)),
        ("position", "<f8", (2,)),
        ("load", "<f8", (2,)),
    ]
)
"""A body, a base or the wall; `load` is the force [N] of springs and contacts that accelerates it."""

SPRING = np.dtype([*_ENDS, ("stiffness", "<f8"), ("damping", "<f8"), ("relaxed", "<f8", (2,))])
"""A spring and damper; `relaxed` is the relaxed position of the first end relative to the second [m]."""

CONTACT = np.dtype([*PARAMETER_FIELDS, *STATE_FIELDS, *_ENDS])
"""A model-C element between two nodes; it starts with the fields of an element record."""

BODY_ROW = np.dtype([("body_velocity", "<f8", (2,)), ("body_position", "<f8", (2,))])
"""Recorded state of a body at one step."""

CONTACT_ROW = np.dtype(
    [
        ("friction_force", "<f8", (2,)),
        ("displacement", "<f8", (2,)),
        ("sliding_velocity", "<f8", (2,)),
        ("sticking", "?"),
    ]
)
"""Recorded state of a contact at one step."""


@kernel
def _pull_springs(springs: Rows, nodes: Rows) -> None:
    for i in range(len(springs)):
        s = springs[i]
        a, b = nodes[s.first], nodes[s.second]
        for j in range(2):
            stretch = a.position[j] - b.position[j] - s.relaxed[j]
            force = s.stiffness * stretch + s.damping * (a.velocity[j] - b.velocity[j])
            a.load[j] -= force
            b.load[j] += force


@kernel
def _move(nodes: Rows, T: float, motion: Any, push: Any) -> None:
    """Advance bodies by (60), with the load of the last tick, and bases as prescribed; reset all loads."""
    body, base = 0, 0
    for i in range(len(nodes)):
        n = nodes[i]
        for j in range(2):
            if n.kind == BODY:
                n.velocity[j] += T * n.inverse_mass * (push[body, j] + n.load[j])
            elif n.kind == BASE:
                n.velocity[j] = motion[base, j]
            n.position[j] += T * n.velocity[j]
            n.load[j] = 0.0
        if n.kind == BODY:
            body += 1
        elif n.kind == BASE:
            base += 1


@kernel
def _rub(contacts: Rows, nodes: Rows) -> None:
    """Step every contact under the relative velocity u of its two ends; (38)."""
    for i in range(len(contacts)):
        c = contacts[i]
        a, b = nodes[c.first], nodes[c.second]
        step_element(c, a.velocity[0] - b.velocity[0], a.velocity[1] - b.velocity[1])
        for j in range(2):
            a.load[j] -= c.friction_force[j]
            b.load[j] += c.friction_force[j]


@kernel
def step_network(nodes: Rows, springs: Rows, contacts: Rows, T: float, motion: Any, push: Any) -> None:
    """Advance a network by one period under `motion` (bases, 2) [m/s] and `push` (bodies, 2) [N].

    The springs act first, at the old positions, and the contacts last, at the new velocities.
    """
    _pull_springs(springs, nodes)
    _move(nodes, T, motion, push)
    _rub(contacts, nodes)


@kernel
def _record(nodes: Rows, contacts: Rows, bodies: Any, frictions: Any) -> None:
    """Copy the present state to one row of the results."""
    body = 0
    for i in range(len(nodes)):
        if nodes[i].kind == BODY:
            r = bodies[body]
            for j in range(2):
                r.body_velocity[j] = nodes[i].velocity[j]
                r.body_position[j] = nodes[i].position[j]
            body += 1
    for i in range(len(contacts)):
        r, c = frictions[i], contacts[i]
        r.sticking = c.sticking != 0
        for j in range(2):
            r.friction_force[j] = c.friction_force[j]
            r.displacement[j] = c.displacement[j]
            r.sliding_velocity[j] = c.sliding_velocity[j]


@kernel
def run_network(
    nodes: Rows, springs: Rows, contacts: Rows, T: float, motions: Any, pushes: Any, bodies: Rows, frictions: Rows
) -> None:
    """Advance a network by n periods, filling `bodies` (n, bodies) and `frictions` (n, contacts).

    `motions` (n, bases, 2) and `pushes` (n, bodies, 2) may have a single row, for constant inputs.
    """
    for k in range(len(bodies)):
        motion, push = motions[min(k, len(motions) - 1)], pushes[min(k, len(pushes) - 1)]
        step_network(nodes, springs, contacts, T, motion, push)
        _record(nodes, contacts, bodies[k], frictions[k])
