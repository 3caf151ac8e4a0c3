"""Kikuuwe et al. 2006, (63): stability and oscillation of a mass on a sticking model C.

In the plane of a = T^2 K/M and b = T B/M, the matrix of (63) has the trace 2 - a - b and the determinant 1 - b. It is
stable if and only if a + 2 b < 4, and its eigenvalues are between 0 and 1 if and only if (a + b)^2 >= 4 a, b < 1 and a
+ b < 2. The background of the picture and the rows use computed eigenvalues, the lines use these bounds.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh
from matplotlib.figure import Figure

from apps.reproduce.kikuuwe_fig13_14 import MASS, PERIOD, STIFFNESSES, critical_damping, mass_on_contact, pulled_mass
from apps.reproduce.outcome import Outcome, Row, derived
from apps.reproduce.planar import Array, along_x
from apps.reproduce.style import INK, ORANGE, SKY, dress
from haptics import Coulomb, MasslessImpedance, RigidAdmittance

LARGEST_A, LARGEST_B = 5.0, 2.5
DRAWS = 20000


def eigenvalues(a: Array, b: Array) -> Array:
    """Return the two eigenvalues of (63) for each a and b (n,), (n, 2) complex, per step."""
    # With e in units of T m, the matrix of (63) depends on a and b alone.
    matrix = np.array([[1.0 - a, 1.0 - b], [-a, 1.0 - b]])
    return np.asarray(np.linalg.eigvals(np.moveaxis(matrix, -1, 0)).astype(complex))


def seen_stable(values: Array) -> Array:
    """Return True where both eigenvalues (n, 2) are inside the unit circle."""
    return np.asarray(np.abs(values).max(axis=1) < 1.0)


def seen_quiet(values: Array) -> Array:
    """Return True where both eigenvalues (n, 2) are real and between 0 and 1."""
    real = np.abs(values.imag).max(axis=1) == 0.0
    return np.asarray(real & (values.real.min(axis=1) > 0.0) & (values.real.max(axis=1) < 1.0))


def reproduce() -> Outcome:
    """Compare the bounds with the eigenvalues and with the motion of the two alternatives."""
    generator = np.random.default_rng(63)
    a, b = generator.uniform(0.0, LARGEST_A, DRAWS), generator.uniform(0.0, LARGEST_B, DRAWS)
    # The nonoscillatory region is a small part of that plane, so half of the samples are drawn near it.
    a[::2], b[::2] = 10.0 ** generator.uniform(-4.0, 0.1, DRAWS // 2), generator.uniform(0.0, 1.1, DRAWS // 2)
    values = eigenvalues(a, b)
    stable = int(np.count_nonzero(seen_stable(values) != (a + 2.0 * b < 4.0)))
    is_quiet = ((a + b) ** 2 >= 4.0 * a) & (b < 1.0) & (a + b < 2.0)
    quiet = int(np.count_nonzero(seen_quiet(values) != is_quiet))
    exact = (2.0 * math.sqrt(2.0) - 2.0) ** 2
    rows = [
        derived(f"random (a, b) of {DRAWS} where a + 2 b < 4 and the eigenvalues disagree", 0, stable),
        derived(f"random (a, b) of {DRAWS} where the nonoscillatory bound is wrong", 0, quiet),
        Row("critical damping: nonoscillatory up to T^2 K/M", 0.25, _largest(seen_quiet), 1e-6),
        derived("critical damping: stable up to T^2 K/M, (2 sqrt 2 - 2)^2", exact, _largest(seen_stable), 1e-6),
    ]
    for stiffness, which, expected, tolerance in (
        (STIFFNESSES[1], 0, 0.0, 1e-9),
        (STIFFNESSES[1], 1, 0.75, 1e-9),
        (STIFFNESSES[2], 0, -1.13, 5e-3),
    ):
        found = np.sort(eigenvalues(*_coordinates(stiffness))[0].real)[which]
        description = f"K = {stiffness:.1e} N/m: {('smaller', 'larger')[which]} eigenvalue"
        rows.append(derived(description, expected, found, tolerance))
    soft = seen_quiet(eigenvalues(*_coordinates(STIFFNESSES[0])))
    rows.append(Row(f"K = {STIFFNESSES[0]:.1e} N/m: nonoscillatory (1 = yes)", 1, int(soft[0])))
    for description, error in _polynomial_errors(generator).items():
        where = f"Fig. {description}: trace and determinant seen in the motion, worst error"
        rows.append(derived(where, 0.0, error, 1e-6))
    return Outcome(rows, _draw)


def _largest(holds: Callable[[Array], Array]) -> float:
    """Return the largest a for which the eigenvalues of critical damping, b = 2 sqrt(a), have a property."""
    low, high = 1e-3, 4.0
    while high - low > 1e-9:
        middle = 0.5 * (low + high)
        a = np.array([middle])
        low, high = (middle, high) if holds(eigenvalues(a, 2.0 * np.sqrt(a)))[0] else (low, middle)
    return low


def _coordinates(stiffness: float) -> tuple[Array, Array]:
    """Return a and b of a critically damped coupling, each (1,)."""
    return np.array([PERIOD**2 * stiffness / MASS]), np.array([PERIOD * critical_damping(stiffness) / MASS])


def _polynomial_errors(generator: np.random.Generator) -> dict[str, float]:
    """Return the errors of the polynomial of (63), identified from the motion of Figs. 12(a) and (b)."""
    worst = {"12(a), sliding": 0.0, "12(b), sticking": 0.0}
    for a, b in generator.uniform(0.05, 1.2, (50, 2)):
        stiffness, damping = a * MASS / PERIOD**2, b * MASS / PERIOD
        body = RigidAdmittance(Coulomb(1.0), MASS, PERIOD)
        body.reset(velocity=(100.0, 0.0))
        slid = pulled_mass(body, stiffness, damping, along_x(np.full(6, 101.0)))[1][:, 0]
        contact = MasslessImpedance(Coulomb(1e9), stiffness, damping, PERIOD)
        held = mass_on_contact(contact, MASS, 1.0, 5)
        for description, sequence in (("12(a), sliding", np.diff(slid)), ("12(b), sticking", held)):
            s0, s1, s2, s3 = sequence[:4]  # of a recurrence with this trace and determinant
            found = np.linalg.solve([[s1, -s0], [s2, -s1]], [s2, s3])
            worst[description] = max(worst[description], float(np.abs(found - (2.0 - a - b, 1.0 - b)).max()))
    return worst


def _draw(figure: Figure) -> None:
    wide, near = figure.subplots(1, 2)
    background = _map(wide, LARGEST_A, LARGEST_B)
    figure.colorbar(background, ax=wide, label="largest |eigenvalue|, computed", extend="max", location="left")
    wide.set_title("the whole of it", fontsize=11, color=INK)
    _map(near, 1.2, 2.0)
    near.set_title("near the stiffnesses of Figs. 13 and 14", fontsize=11, color=INK)
    places = ((12, -14), (22, 8), (12, -10))
    for stiffness, place in zip(STIFFNESSES, places, strict=True):
        for axes in (wide, near):
            axes.plot(*_coordinates(stiffness), "o", color="white", markeredgecolor=INK, markersize=9, zorder=5)
        point = tuple(np.concatenate(_coordinates(stiffness)))
        words = f"K = {stiffness:.1e} N/m"
        near.annotate(words, point, place, textcoords="offset points", color="white", fontsize=10)
    near.legend(loc="lower right", fontsize=9.5, facecolor="#333333", labelcolor="white", framealpha=0.9)
    figure.suptitle("(63): a mass on model C in static friction; lines: exact bounds", color=INK)


def _map(axes: Axes, width: float, height: float) -> QuadMesh:
    """Plot the largest |eigenvalue| over the plane with the exact bounds, and return the background."""
    a, b = np.meshgrid(np.linspace(1e-6, width, 400), np.linspace(1e-6, height, 400))
    radius = np.abs(eigenvalues(a.ravel(), b.ravel())).max(axis=1).reshape(a.shape)
    background = axes.pcolormesh(a, b, radius, cmap="cividis", vmin=0.0, vmax=2.0, shading="nearest", rasterized=True)
    line = np.linspace(0.0, width, 400)
    axes.plot(line, 2.0 - line / 2.0, color=ORANGE, linewidth=2.2, label="a + 2 b = 4: stable below")
    root = np.linspace(0.0, 1.0, 400)
    border = np.concatenate((2.0 * np.sqrt(root) - root, np.ones(2)))
    axes.plot(
        np.concatenate((root, (1.0, 0.0))), border, color=SKY, linewidth=2.2, label="eigenvalues between 0 and 1 inside"
    )
    axes.plot(
        line, 2.0 * np.sqrt(line), color="white", linewidth=1.2, linestyle=":", label="b = 2 sqrt a: critical damping"
    )
    dress(axes, "a = T$^2$ K/M", "b = T B/M")
    axes.set(xlim=(0.0, width), ylim=(0.0, height))
    return background
