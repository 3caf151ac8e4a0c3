"""A row of blocks on a creeping floor: sticking blocks break loose in avalanches of all sizes.

Each block is joined to its neighbours and held by springs. Friction falls once a block slides, so that one that breaks
loose can take others along: the model of Burridge and Knopoff, a caricature of earthquakes. Every contact is a model-C
element (Kikuuwe et al. 2006, section IV-A).

Run with ``./run python examples/stick_slip_network.py`` or with the Python of your environment.
"""

import itertools

import numpy as np

from haptics import Stribeck
from haptics.elements.network import Network

BLOCKS, SECONDS, CREEP = 40, 60, (0.002, 0.0)

network = Network(period=1e-3)
floor = network.base()
blocks = [network.body(mass=1.0) for _ in range(BLOCKS)]
for block, roughness in zip(blocks, np.random.default_rng(1).uniform(0.7, 1.3, BLOCKS), strict=True):
    law = Stribeck(kinetic_force=3.0 * roughness, static_force=5.0 * roughness, stribeck_velocity=0.06)
    network.contact(block, floor, law, stiffness=2e4, damping=100.0)
    network.spring(block, network.wall, stiffness=150.0)
for left, right in itertools.pairwise(blocks):
    network.spring(left, right, stiffness=300.0)
print(f"in use of what the period allows of stiffness and damping: {network.stability_number:.0%}")

sizes = []
moved = np.zeros(BLOCKS, dtype=bool)
for _ in range(SECONDS * 1000):
    network.step([CREEP])
    slipping = ~network.sticking
    if moved.any() and not slipping.any():
        sizes.append(np.count_nonzero(moved))
        moved[:] = False
    moved |= slipping
print(f"{len(sizes)} avalanches of {min(sizes)} to {max(sizes)} blocks, half of them of at most {np.median(sizes):g}")
