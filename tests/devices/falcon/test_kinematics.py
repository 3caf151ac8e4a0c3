"""Kinematics of the Falcon against an independent derivation: spheres, and derivatives of positions."""

import math

import numpy as np
import pytest

from devices.emulators.falcon import crank_angles
from devices.falcon.kinematics import (
    ANGLES,
    D_E,
    HALF,
    MIDDLE,
    OUTWARDS,
    RADIANS,
    SIDEWAYS,
    ZERO,
    A,
    B,
    find_torques,
    forward,
    inverse,
)

CLOSE = 1e-9


def workspace(count, seed=0, reach=1.0):
    """Random positions in the workspace."""
    return np.random.default_rng(seed).uniform(-reach, reach, (count, 3)) * HALF + MIDDLE


def dot(a, b):
    return (a * b).sum(axis=-1, keepdims=True)


def three_spheres(centres, radius):
    """Return the intersections (n, 3) of three spheres that are farther out along z, in closed form."""
    first, second, third = centres
    x = second - first
    d = np.sqrt(dot(x, x))
    x, other = x / d, third - first
    i = dot(x, other)
    y = other - i * x
    j = np.sqrt(dot(y, y))
    y /= j
    along, across = d / 2.0, (i * i + j * j) / (2.0 * j) - i / j * d / 2.0
    z = np.cross(x, y)
    up = np.sqrt(radius**2 - along**2 - across**2) * np.sign(z[:, 2:])
    return first + along * x + across * y + up * z


def by_spheres(theta):
    """Return the positions (n, 3) for crank angles (n, 3): where three spheres about the ends of the links intersect.

    The links next to a parallelogram have the direction of its leg, which depends on the position: a fixed point.
    """
    position = np.tile(MIDDLE, (len(theta), 1))
    up = np.array((0.0, 0.0, 1.0))
    for _ in range(60):
        centres = []
        for leg, angle in enumerate(ANGLES):
            outwards = np.array((math.cos(angle), math.sin(angle), 0.0))
            sideways = np.cross(up, outwards)
            elbow = A * (np.cos(theta[:, [leg]]) * outwards + np.sin(theta[:, [leg]]) * up)
            offset = OUTWARDS * outwards + SIDEWAYS * sideways
            link = position + offset - elbow
            link -= dot(link, sideways) * sideways
            centres.append(elbow - offset + D_E * link / np.sqrt(dot(link, link)))
        position = three_spheres(centres, B)
    return position


def test_forward_and_inverse_agree_with_three_spheres():
    places = workspace(10_000)
    theta = np.array([inverse(place) for place in places])
    assert np.abs(np.array([forward(angles) for angles in theta]) - places).max() < CLOSE
    assert np.abs(by_spheres(theta) - places).max() < CLOSE


def test_newton_converges_from_all_corners_and_edges_of_the_workspace():
    grid = np.stack(np.meshgrid(*3 * (np.linspace(-1.0, 1.0, 9),)), axis=-1).reshape(-1, 3)
    for place in grid * HALF + MIDDLE:
        found = forward(inverse(place))
        assert found is not None
        assert np.abs(found - place).max() < CLOSE


def test_angles_are_those_of_the_emulator():
    for place in workspace(500, seed=1):
        np.testing.assert_allclose(np.degrees(inverse(place)), crank_angles(place), atol=1e-9)


@pytest.mark.parametrize("place", [(0.11, 0.0, 0.12), (0.0, 0.0, 0.3), (0.0, 0.0, 0.001)])
def test_positions_out_of_reach_have_no_angles(place):
    assert np.isnan(inverse(np.array(place))).any()


@pytest.mark.parametrize("degrees", [(-90.0, 120.0, 35.0), (180.0, 0.0, -100.0), (math.nan, 35.0, 35.0)])
def test_angles_of_no_position_are_refused(degrees):
    assert forward(np.radians(degrees)) is None


def test_torques_do_the_work_of_the_force():
    rng = np.random.default_rng(2)
    torques = np.empty(3)
    for place in workspace(300, seed=3):
        theta, force, step = inverse(place), rng.normal(size=3), 1e-7 * rng.normal(size=3)
        assert find_torques(theta, place, force, torques)
        turned = inverse(place + step) - inverse(place - step)
        assert torques @ turned == pytest.approx(force @ (2.0 * step), rel=1e-5, abs=1e-13)


def test_encoder_resolution_is_that_of_the_data_sheet():
    """400 dots per inch are 63 um or less for each step of one encoder."""
    theta = np.full(3, ZERO)
    middle = forward(theta)
    for leg in range(3):
        moved = theta.copy()
        moved[leg] += RADIANS
        assert 20e-6 < np.linalg.norm(forward(moved) - middle) < 63e-6
