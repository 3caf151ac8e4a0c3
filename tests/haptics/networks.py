"""Random networks for the tests, and what they hold."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st

from haptics import (
    Coulomb,
    CoulombViscous,
    Stribeck,
)
from haptics.elements.network.network import Network
from haptics.elements.network.parts import NetworkResult

from .strategies import Array, Law, log_floats

LAWS: tuple[Law, ...] = (Coulomb(2.0), CoulombViscous(1.0, 3.0), Stribeck(1.0, 1.5, 0.05, 1.0))
FEW = settings(deadline=None, max_examples=6, derandomize=True)


@dataclass(frozen=True)
class Link:
    """A spring (law None) or contact between nodes 0 = wall, 1 = base, 2... = bodies."""

    first: int
    second: int
    stiffness: float
    damping: float
    law: Law | None = None


@dataclass(frozen=True)
class Plan:
    """What to build, so that it can be built in more than one way."""

    masses: tuple[float, ...]
    velocities: Array
    links: tuple[Link, ...]

    def build(self, turn: Array | None = None, order: Sequence[int] | None = None) -> Network:
        """Return the network, its velocities multiplied by `turn`, its bodies and links added in another `order`."""
        network = Network(1e-3)
        bodies = list(order) if order is not None else list(range(len(self.masses)))
        nodes = {0: network.wall, 1: network.base()}
        for i in bodies:
            start = self.velocities[i] if turn is None else turn @ self.velocities[i]
            nodes[i + 2] = network.body(self.masses[i], start)
        for link in self.links if order is None else self.links[::-1]:
            ends = nodes[link.first], nodes[link.second]
            if link.law is None:
                network.spring(*ends, link.stiffness, link.damping)
            else:
                network.contact(*ends, link.law, link.stiffness, link.damping)
        return network


@st.composite
def plans(draw: st.DrawFn, free: bool = False) -> Plan:
    """Draw a network of up to six bodies that stays well within the limit of stability; `free` of wall and base."""
    count = draw(st.integers(2, 6))
    seed = draw(st.integers(0, 2**32 - 1))
    generator = np.random.default_rng(seed)
    masses = tuple(draw(log_floats(0.2, 5.0)) for _ in range(count))
    lowest = 2 if free else 0
    links: list[Link] = []
    for k in range(draw(st.integers(3, 10))):
        first, second = generator.choice(np.arange(lowest, count + 2), 2, replace=False)
        law = LAWS[k % 3] if k % 2 else None
        stiffness = 10.0 ** (generator.uniform(1.0, 3.0) if law is None else generator.uniform(3.5, 4.2))
        links.append(Link(int(first), int(second), stiffness, 0.2 * float(np.sqrt(stiffness)), law))
    for body in range(2, count + 2):
        if not free:
            links.append(Link(body, 0, 3000.0, 12.0, LAWS[body % 3]))
    velocities = generator.uniform(-0.5, 0.5, (count, 2))
    return Plan(masses, velocities, tuple(links))


def energy(plan: Plan, result: NetworkResult) -> Array:
    """Kinetic energy and what springs and contacts hold [J] at every step."""
    masses = np.array(plan.masses)
    total = 0.5 * np.einsum("m,kmi->k", masses, result.body_velocity**2)
    place = {i + 2: result.body_position[:, i] for i in range(len(masses))}
    contact = 0
    for link in plan.links:
        if link.law is None:
            rest = np.zeros_like(result.body_position[:, 0])
            stretch = place.get(link.first, rest) - place.get(link.second, rest)
        else:
            stretch = result.displacement[:, contact]
            contact += 1
        total += 0.5 * link.stiffness * np.sum(np.square(stretch), axis=1)
    return np.asarray(total)


def both(result: NetworkResult, other: NetworkResult, compare: Callable[[Any, Any, str], None]) -> None:
    for field in fields(NetworkResult):
        compare(getattr(result, field.name), getattr(other, field.name), field.name)
