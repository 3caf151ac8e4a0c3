"""What the tests of walls share: shapes, handles moved along a path, masses under a force, energies."""

import itertools

import numpy as np
from numpy.typing import NDArray

from haptics import Causality, Coulomb, MasslessImpedance, RigidAdmittance, State
from haptics.records import NEUTRAL
from haptics.rendering.programs import SceneElement
from haptics.rendering.rendering import Rendering
from haptics.scenes import Circle, HalfPlane, Polygon, Scene
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


def bare(stiffness=6000.0):
    """Return an element without friction, so that only the wall is felt."""
    return MasslessImpedance(Coulomb(0.0), stiffness, 10.0)


def mass(kilograms=2.0, level=0.0):
    return RigidAdmittance(Coulomb(level), kilograms)


def among(element, walls):
    """Return the element on a scene of its law with walls, or the element itself without walls."""
    return SceneElement(element, Scene(element.law, walls=tuple(walls))) if walls else element


def dragged(path, walls, element=None, spec=IMPEDANCE, told=1.0):
    """Move a handle along `path`, (n, 2); return the rows and the stored energy of the walls in each tick [J].

    The device reports `told` times the velocity of the handle.
    """
    rendering = Rendering(among(element or bare(), walls), spec)
    velocity = told * np.diff(path, axis=0, prepend=path[:1]) / T
    rows, stored = np.repeat(NEUTRAL, len(path)), np.zeros(len(path))
    for k, position in enumerate(path):
        state = State(position=position, velocity=velocity[k])
        rendering.tick(state, 0.0, rows, k, (k, k * T, 0.0, 0))
        stored[k] = rendering.core["wall_stored"][0]
    return rows, stored


def pushed(forces, walls, element=None, spec=ADMITTANCE):
    """Push an ideal arm, which is where its reference is, with `forces`, (n, 2), from the origin on."""
    rendering, place = Rendering(among(element or mass(), walls), spec), np.zeros(2)
    rows, stored = np.repeat(NEUTRAL, len(forces)), np.zeros(len(forces))
    for k, force in enumerate(forces):
        state = State(position=place, velocity=np.zeros(2), force=force)
        place = rendering.tick(state, 0.0, rows, k, (k, k * T, 0.0, 0)).copy()
        stored[k] = rendering.core["wall_stored"][0]
    return rows, stored


def ramp(start, end, speed):
    """Return a straight way at a `speed` [m/s], (n, 2), from the tick after the start on."""
    start, end = np.array(start, float), np.array(end, float)
    ticks = max(round(float(np.hypot(*(end - start))) / (speed * T)), 1)
    return np.asarray(start + np.arange(1, ticks + 1)[:, None] / ticks * (end - start))


def along(*corners, speed=0.1):
    """Return a way through `corners`, (n, 2) [m]."""
    parts = [np.array([corners[0]], float)]
    parts += [ramp(a, b, speed) for a, b in itertools.pairwise(corners)]
    return np.concatenate(parts)


def wandering(numbers, seconds=0.3, size=0.02):
    """Return a smooth motion of a hand, (n, 2) [m], from sixteen numbers between -1 and 1."""
    t = np.arange(round(seconds / T)) * T
    amplitude = np.reshape(numbers[:8], (2, 4)) * size / np.arange(1, 5)
    phase = np.reshape(numbers[8:], (2, 4)) * np.pi
    waves = np.sin(2.0 * np.pi * 4.0 * np.arange(1, 5) * t[:, None, None] + phase)
    return np.asarray((amplitude * waves).sum(axis=2))
