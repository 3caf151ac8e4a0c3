"""Benchmark ``network``: number of contacts that one processor core simulates in a tick of 1 ms.

The network is a chain of blocks on a base that moves in a circle, as in models of earthquakes (Burridge and Knopoff
1967). Every block has a contact with the base, a spring to the wall and a spring to the next block. The friction forces
vary, so that about half of the contacts slide at any time. A tick is one call of
`haptics.elements.network.Network.step`. The reference is the same number of model-C contacts in C, without
blocks and springs, driven by the same base.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from apps.bench.outcome import Progress, table_of
from apps.bench.workload import PERIOD, NoReference, Reference, compare, empty_results, measure, nanoseconds
from apps.shared.command import Answer
from haptics.elements.models import MasslessImpedance
from haptics.elements.network import Network
from haptics.friction.laws import Coulomb

TICK = 1e-3
"""Permitted duration of a tick [s]."""

_FIRST, _MOST = 10_000, 100_000
"""Number of contacts of the first trial network, and maximum number."""

_TRIAL_ROUNDS = 50

_MASS, _STIFFNESS, _DAMPING = 0.1, 6000.0, 10.0
_WALL_SPRING, _CHAIN_SPRING = 730.0, 100.0
_SPEED, _TURN_TIME = 0.2, 0.2
_FRICTION = (2.0, 6.0)
_SETTLING = 300
"""Ticks until the influence of the initial state has decayed."""


_COLUMNS = {
    "contacts": "contacts",
    "tick_us": "tick us",
    "contacts_per_tick": "contacts in 1 ms",
    "ns_per_step": "ns/contact",
    "reference_ns_per_step": "C ns/contact",
    "ratio": "ratio",
    "spread": "spread",
}


def run(progress: Progress) -> Answer:
    """Measure a network whose tick takes about 1 ms.

    Its size is found by iteration, because the time per contact depends on the caches.
    """
    count = _FIRST
    for done in (0.0, 0.25, 0.5):
        progress(done, f"{count} contacts")
        tick = float(np.median(measure([network_tick(friction_forces(count))], _TRIAL_ROUNDS)))
        count = min(max(round(count * TICK / tick), 1), _MOST)
    progress(0.75, f"{count} contacts")
    forces = friction_forces(count)
    candidates = [network_tick(forces)]
    try:
        reference = Reference()
        candidates.append(contacts_tick(forces, reference))
        remark = f"C: {reference.compiler}"
    except NoReference as error:
        remark = f"no ratio to C: {error}"
    times = measure(candidates).T
    tick = float(np.median(times[0]))
    row = {
        "element": "C",
        "law": "coulomb",
        "contacts": count,
        "tick_us": tick * 1e6,
        "contacts_per_tick": round(count * TICK / tick),
        "ns_per_step": nanoseconds(times[0], count),
        **dict.fromkeys(("reference_ns_per_step", "ratio", "spread")),
    }
    if len(times) > 1:
        row |= {"reference_ns_per_step": nanoseconds(times[1], count), **compare(times[0], times[1])}
    return Answer({"reference": remark, "rows": [row]}, f"{table_of(_COLUMNS, [row])}\n{remark}")


def friction_forces(count: int) -> NDArray[np.float64]:
    """Return friction forces, (count,) [N], equal in every call."""
    return np.random.default_rng(1).uniform(*_FRICTION, count)


def network_tick(forces: NDArray[np.float64]) -> Callable[[], None]:
    """Return a function that advances a chain of blocks by one period.

    The chain has one block per friction force in `forces` [N].
    """
    network = Network(PERIOD)
    base = network.base()
    blocks = [network.body(_MASS) for _ in forces]
    for block, force in zip(blocks, forces, strict=True):
        network.contact(base, block, Coulomb(float(force)), _STIFFNESS, _DAMPING)
        network.spring(block, network.wall, _WALL_SPRING)
    for first, second in itertools.pairwise(blocks):
        network.spring(first, second, _CHAIN_SPRING)
    velocities = _base_motion()
    for _ in range(_SETTLING):
        network.step(next(velocities))
    return lambda: network.step(next(velocities))


def contacts_tick(forces: NDArray[np.float64], reference: Reference) -> Callable[[], None]:
    """Return a function that advances a model-C contact in C for each of `forces` [N] by one period."""
    record = reference.record(MasslessImpedance(Coulomb(1.0), _STIFFNESS, _DAMPING, PERIOD))
    elements = np.repeat(record, len(forces))
    elements["law"][:, 0] = forces
    velocity = np.zeros((1, 2))
    step = reference.loop("contacts", elements, velocity, empty_results(len(forces)))
    velocities = _base_motion()

    def tick() -> None:
        velocity[:] = next(velocities)
        step()

    return tick


def _base_motion() -> Iterator[NDArray[np.float64]]:
    """Yield the velocity of the base, (1, 2) [m/s], tick by tick without end."""
    angle = 2.0 * np.pi * np.arange(0.0, 1.0, PERIOD / _TURN_TIME)
    return itertools.cycle(_SPEED * np.stack((np.cos(angle), np.sin(angle)), axis=1)[:, None])
