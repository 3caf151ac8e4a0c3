"""Kikuuwe et al. 2006, Figs. 4 and 5: friction laws and their implicit counterparts.

The equations are (16), (23), (25), (53) and (55).

The element's solution is compared with a solution without closed form: the sliding speed s of ``s + Z g(s) = |x|`` by
bisection to the last digit.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from matplotlib.figure import Figure

from apps.reproduce.outcome import Bound, Outcome, Row, derived
from apps.reproduce.planar import Array, norms
from apps.reproduce.style import BLUE, INK, ORANGE, PALE, dress
from haptics import Coulomb, CoulombViscous, Law, Stribeck

LAWS = 60
POINTS = 200
EXACT = 3e-14

TINY = 1e-300
"""Speed [m/s] that represents the limit of vanishing speed, because the level is undefined at zero speed."""


def level(law: Law, speed: Array) -> Array:
    """Return the level g(s) (n,) [N] of `law` at speeds (n,) [m/s] greater than 0."""
    return norms(law(np.column_stack((speed, np.zeros(len(speed))))))


def bisected(law: Law, reach: Array, mobility: float) -> Array:
    """Return |Phi_Z| (n,) [N] for arguments of norm `reach` (n,) [m/s], by bisection where they slide."""
    sticks = reach <= mobility * law.breakaway_force
    low, high = np.zeros(len(reach)), np.where(sticks, 0.0, reach)
    while True:
        middle = 0.5 * (low + high)
        if np.all((middle == low) | (middle == high)):
            return np.where(sticks, reach / mobility, level(law, np.maximum(high, TINY)))
        short = middle + mobility * level(law, np.maximum(middle, TINY)) < reach
        low, high = np.where(short, middle, low), np.where(short, high, middle)


def drawn(kind: str, generator: np.random.Generator) -> Iterator[tuple[Law, float, Array]]:
    """Yield random laws of a `kind`, with a mobility Z and arguments x (n, 2) from stick to fast slip."""
    for _ in range(LAWS):
        force, viscosity, fall, speed = 10.0 ** generator.uniform((-1.0, -1.0, -1.0, -2.0), (1.5, 1.5, 1.0, 0.0))
        law: Law = Coulomb(force)
        if kind == "viscous":
            law = CoulombViscous(force, viscosity)
        elif kind == "Stribeck":
            law = Stribeck(force, force + fall, speed)
        mobility = min(10.0 ** generator.uniform(-4.0, 0.0), 0.9 * law.mobility_limit)
        reach = mobility * law.breakaway_force * 10.0 ** generator.uniform(-1.0, 2.0, POINTS)
        angle = generator.uniform(-np.pi, np.pi, POINTS)
        yield law, mobility, reach[:, None] * np.column_stack((np.cos(angle), np.sin(angle)))


def reproduce() -> Outcome:
    """Check solution, inclusion and nonexpansiveness for random laws, mobilities and arguments."""
    generator = np.random.default_rng(16)
    rows: list[Row] = []
    for kind, equation in (("Coulomb", "(23), (53)"), ("viscous", "(25), (55)"), ("Stribeck", "Lambert's W")):
        distance, inclusion, turned, growth = 0.0, 0.0, 0.0, 0.0
        for law, mobility, x in drawn(kind, generator):
            force, reach = law.implicit(x, mobility), norms(x)
            size = norms(force)
            distance = max(distance, float(np.max(np.abs(size / bisected(law, reach, mobility) - 1.0))))
            slides = reach > mobility * law.breakaway_force
            speed = np.maximum(reach - mobility * size, TINY)
            residual = np.where(slides, size - level(law, speed), np.maximum(size - law.breakaway_force, 0.0))
            inclusion = max(inclusion, float(np.max(np.abs(residual) / size)))
            cross = np.abs(force[:, 0] * x[:, 1] - force[:, 1] * x[:, 0]) / (size * reach)
            turned = max(turned, float(cross.max()))
            growth = max(growth, float(np.max(mobility * norms(np.diff(force, axis=0)) / norms(np.diff(x, axis=0)))))
        rows += [
            derived(f"{kind} {equation}: largest relative distance from bisection", 0.0, distance, EXACT),
            Row(f"{kind}: largest residual of f = Phi(x - Z f), relative to f", 0.0, inclusion, EXACT),
            Row(f"{kind}: largest angle between f and x", 0.0, turned, 1e-15, "rad"),
        ]
        if kind != "Stribeck":  # the counterpart of a decreasing law may be steeper than 1/Z
            bound = Bound(maximum=1.0)
            rows.append(derived(f"{kind}: nonexpansive, largest Z |df|/|dx|", bound, growth, 1e-12))
    return Outcome(rows, _draw)


def _draw(figure: Figure) -> None:
    figure.set_size_inches(14.0, 5.5)
    laws: dict[str, Law] = {
        "Coulomb, F = 4 N": Coulomb(4.0),
        "with viscosity, D = 8 N s/m": CoulombViscous(4.0, 8.0),
        "Stribeck, 4 to 5 N over 0.1 m/s": Stribeck(4.0, 5.0, 0.1),
    }
    for axes, (title, law) in zip(figure.subplots(1, 3, sharey=True), laws.items(), strict=True):
        mobility = 1.0 / 16.0
        half = np.linspace(0.0, 0.8, 801)[1:]
        right, left = level(law, half), -level(law, half)[::-1]
        axes.plot(np.r_[-half[::-1], half], np.r_[left, right], color=BLUE, linewidth=1.8, label="law $\\Phi$(v)")
        x = np.linspace(-0.8, 0.8, 1601)
        counterpart = law.implicit(np.column_stack((x, np.zeros(len(x)))), mobility)[:, 0]
        axes.plot(x, counterpart, color=ORANGE, linewidth=1.8, linestyle="--", label="counterpart $\\Phi_Z$(x)")
        axes.plot(x, x / mobility, color=PALE, linewidth=0.9, linestyle=":", label="x/Z: sticking")
        axes.set_ylim(-12.0, 12.0)
        dress(axes, "v, x [m/s]", "friction force [N]", legend="lower right")
        axes.set_title(title, fontsize=11, color=INK)
    figure.suptitle("Figs. 4, 5: a friction law and its implicit counterpart, Z = 1/16 m/(N s)", color=INK)
