"""What the tests of walls share: shapes, handles moved along a path, masses under a force, energies."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from haptics import Coulomb, MasslessImpedance, RigidAdmittance
from haptics.device import Causality, DeviceSpec, State
from haptics.elements.models import Element
from haptics.records import NEUTRAL, Rows
from haptics.rendering.on_scene import OnScene
from haptics.rendering.rendering import Rendering
from haptics.scenes import Circle, HalfPlane, Polygon, Scene, Wall
from tests.haptics.doubles import make_spec

Floats = NDArray[np.float64]

T = 1e-3
FLOOR = HalfPlane((0.0, 0.0), (0.0, 1.0))
SLOPE = HalfPlane((0.005, 0.0), (0.6, 0.8))
PEG = Circle((0.01, 0.0), 0.02)
BLOCK = Polygon(((-0.02, -0.01), (0.02, -0.01), (0.02, 0.01), (-0.02, 0.01)))
NOTCH = Polygon(((-0.03, -0.03), (0.03, -0.03), (0.03, 0.0), (0.0, 0.0), (0.0, 0.03), (-0.03, 0.03)))
SHAPES = {"half-plane": SLOPE, "circle": PEG, "block": BLOCK, "notch": NOTCH}

IMPEDANCE = make_spec(max_force=200.0, max_force_rate=1e6)
ADMITTANCE = make_spec(Causality.ADMITTANCE, max_acceleration=1e5)


def bare(stiffness: float = 6000.0) -> MasslessImpedance:
    """Return an element without friction of its own: what is felt is the wall."""
    return MasslessImpedance(Coulomb(0.0), stiffness, 10.0)


def mass(kilograms: float = 2.0, level: float = 0.0) -> RigidAdmittance:
    return RigidAdmittance(Coulomb(level), kilograms)


def among(element: Element, walls: Sequence[Wall]) -> Element | OnScene:
    """Return an element among walls, on ground of its own law; without walls it is as it is."""
    return OnScene(element, Scene(element.law, walls=tuple(walls))) if walls else element


def dragged(
    path: Floats,
    walls: Sequence[Wall],
    element: Element | None = None,
    spec: DeviceSpec = IMPEDANCE,
    told: float = 1.0,
) -> tuple[Rows, Floats]:
    """Move a handle along `path`, (n, 2); return the rows and what the walls store in each tick [J].

    The device says `told` times the velocity that the handle has.
    """
    velocity = told * np.diff(path, axis=0, prepend=path[:1]) / T
    states = [State(position=x, velocity=v) for x, v in zip(path, velocity, strict=True)]
    return _rendered(Rendering(among(element or bare(), walls), spec), states)


def pushed(
    forces: Floats, walls: Sequence[Wall], element: Element | None = None, spec: DeviceSpec = ADMITTANCE
) -> tuple[Rows, Floats]:
    """Push an ideal arm, which is where its reference is, with `forces`, (n, 2), from the origin on."""
    rendering, place = Rendering(among(element or mass(), walls), spec), np.zeros(2)
    rows, stored = np.repeat(NEUTRAL, len(forces)), np.zeros(len(forces))
    for k, force in enumerate(forces):
        state = State(position=place, velocity=np.zeros(2), force=force)
        place = rendering.tick(state, 0.0, rows, k, (k, k * T, 0.0, 0)).copy()
        stored[k] = rendering.core["wall_stored"][0]
    return rows, stored


def _rendered(rendering: Rendering, states: list[State]) -> tuple[Rows, Floats]:
    rows, stored = np.repeat(NEUTRAL, len(states)), np.zeros(len(states))
    for k, state in enumerate(states):
        rendering.tick(state, 0.0, rows, k, (k, k * T, 0.0, 0))
        stored[k] = rendering.core["wall_stored"][0]
    return rows, stored


def ramp(start: Any, end: Any, speed: float) -> Floats:
    """Return a straight way at a `speed` [m/s], (n, 2), from the tick after the start on."""
    start, end = np.array(start, float), np.array(end, float)
    ticks = max(round(float(np.hypot(*(end - start))) / (speed * T)), 1)
    return np.asarray(start + np.arange(1, ticks + 1)[:, None] / ticks * (end - start))


def along(*corners: Any, speed: float = 0.1) -> Floats:
    """Return a way through `corners`, (n, 2) [m]."""
    parts = [np.array([corners[0]], float)]
    parts += [ramp(a, b, speed) for a, b in itertools.pairwise(corners)]
    return np.concatenate(parts)


def wandering(numbers: Sequence[float], seconds: float = 0.3, size: float = 0.02) -> Floats:
    """Return a smooth motion of a hand, (n, 2) [m], from sixteen numbers between -1 and 1."""
    t = np.arange(round(seconds / T)) * T
    amplitude = np.reshape(numbers[:8], (2, 4)) * size / np.arange(1, 5)
    phase = np.reshape(numbers[8:], (2, 4)) * np.pi
    waves = np.sin(2.0 * np.pi * 4.0 * np.arange(1, 5) * t[:, None, None] + phase)
    return np.asarray((amplitude * waves).sum(axis=2))
