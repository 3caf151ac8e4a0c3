"""Kikuuwe et al. 2006, Figs. 9 to 11: stick-slip of two stacked blocks with model-C contacts.

The paper prints no numbers of these curves. The expected result is therefore the motion over rigid contacts, which the
compliant ones approximate. Both are computed here, for both readings of the caption. The bound on the difference in
position is a guard, because it follows from no equation.

The caption of Fig. 11 gives all numbers but not the arrangement of the parts. The ratio of the friction levels, 2 : 1,
equals the ratio of the normal loads if M2 is on M1 and M1 on a base. Two readings of the velocity u remain:

==========  ================================================================
``base``    the base moves at u; K1 and K2 hold the blocks to a wall
``ground``  the base rests; the far end of K1 moves at u
==========  ================================================================

`compliant` has model-C contacts, as in the paper. `rigid` is the reference: rigid contacts, with the set-valued law
solved exactly at every small step. It shares no code with the network.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Literal

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from apps.reproduce.outcome import Bound, Outcome, Row, derived, guard
from apps.reproduce.planar import Array, along_x
from apps.reproduce.style import BLUE, INK, ORANGE, PALE, dress
from haptics import Coulomb
from haptics.elements.network import Network

# --- stacked blocks ----------------------------------------------------------------------------------------------

Wiring = Literal["base", "ground"]
WIRINGS: tuple[Wiring, ...] = ("base", "ground")
MASSES, SPRINGS, FRICTION = (1.0, 1.0), (100.0, 200.0), (5.0, 2.5)
CONTACT_STIFFNESS, CONTACT_DAMPING = 3e4, 300.0

Pair = tuple[float, float]
Modes = tuple[int, int]
_MODES: tuple[Modes, ...] = tuple(itertools.product((0, 1, -1), repeat=2))  # type: ignore[arg-type]
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Motion:
    """Motion of the blocks along their line.

    Row k is the state after step k, column 0 the lower block.

    Attributes
    ----------
    time : (n,) float array
        Time [s].
    position, velocity : (n, 2) float array
        Positions and velocities of the blocks [m], [m/s].
    friction_force : (n, 2) float array
        Friction in the contact below each block [N], in the direction in which the block slides.
    sliding_velocity : (n, 2) float array
        Velocity of each block relative to the body below [m/s].
    sticking : (n, 2) bool array
        Whether the block sticks to the body below.
    """

    time: Array
    position: Array
    velocity: Array
    friction_force: Array
    sliding_velocity: Array
    sticking: NDArray[np.bool_]


def drive(time: Array) -> Array:
    """Return the velocity u of the base or of the far end of K1 [m/s]."""
    return np.asarray(0.5 * np.sin(5.0 * time))


def times(duration: float, period: float) -> Array:
    """Return the times of all steps [s], without the start."""
    return period * np.arange(1, round(duration / period) + 1, dtype=np.float64)


def network(
    wiring: Wiring, period: float = 1e-3, stiffness: float = CONTACT_STIFFNESS, damping: float = CONTACT_DAMPING
) -> Network:
    """Return the blocks as a network: bodies M1 and M2, their contacts in the same order, one driven base."""
    blocks = Network(period)
    driven, wall = blocks.base(), blocks.wall
    below, far_end = (driven, wall) if wiring == "base" else (wall, driven)
    lower, upper = (blocks.body(mass) for mass in MASSES)
    for block, end, spring in zip((lower, upper), (far_end, wall), SPRINGS, strict=True):
        blocks.spring(block, end, spring)
    for block, support, force in zip((lower, upper), (below, lower), FRICTION, strict=True):
        blocks.contact(block, support, Coulomb(force), stiffness, damping)
    return blocks


def compliant(blocks: Network, duration: float) -> Motion:
    """Simulate the blocks of `network` from rest with model-C contacts."""
    time = times(duration, blocks.period)
    run = blocks.simulate(len(time), along_x(drive(time))[:, None])
    return Motion(
        time,
        run.body_position[..., 0],
        run.body_velocity[..., 0],
        run.friction_force[..., 0],
        run.sliding_velocity[..., 0],
        run.sticking,
    )


# --- rigid contacts ---------------------------------------------------------------------------------------------


def _forces(modes: Modes, free: Pair, response: tuple[float, float, float], limits: Pair) -> Pair:
    """Return the friction forces [N] if each contact sticks (0) or slides forwards (1) or backwards (-1)."""
    a, b, c = response
    first, second = modes[0] * limits[0], modes[1] * limits[1]
    if modes == (0, 0):
        determinant = a * c - b * b
        return (c * free[0] - b * free[1]) / determinant, (a * free[1] - b * free[0]) / determinant
    if modes[0] == 0:
        return (free[0] - b * second) / a, second
    if modes[1] == 0:
        return first, (free[1] - b * first) / c
    return first, second


def rigid_friction(
    free: Pair, response: tuple[float, float, float], limits: Pair, guess: Modes = (0, 0)
) -> tuple[Pair, Modes]:
    """Solve two coupled contacts with Coulomb friction exactly by enumerating the modes of both.

    Parameters
    ----------
    free : pair
        Sliding velocities without friction [m/s].
    response : (a, b, c)
        Positive definite matrix ((a, b), (b, c)) by which forces reduce the velocities [m/(N s)].
    limits : pair
        Friction levels [N].
    guess : pair
        Modes to try first: 0 sticks, 1 and -1 slide forwards and backwards.

    Returns
    -------
    forces, modes
        The unique forces, and consistent modes.
    """
    a, b, c = response
    for modes in (guess, *_MODES):
        forces = _forces(modes, free, response, limits)
        velocities = free[0] - a * forces[0] - b * forces[1], free[1] - b * forces[0] - c * forces[1]
        if all(
            abs(force) <= limit + _ROUNDING if mode == 0 else velocity * mode >= -_ROUNDING
            for mode, force, limit, velocity in zip(modes, forces, limits, velocities, strict=True)
        ):
            return forces, modes
    raise ArithmeticError(f"no mode fits velocities {free} and response {response}")


def rigid(wiring: Wiring, duration: float, period: float = 2e-5) -> Motion:
    """Simulate the blocks from rest with rigid contacts, by implicit steps (Moreau's time stepping)."""
    (m1, m2), (k1, k2), T = MASSES, SPRINGS, period
    response = T / m1, -T / m1, T / m1 + T / m2
    time = times(duration, T)
    rows, sticking = np.zeros((len(time), 8)), np.zeros((len(time), 2), dtype=bool)
    x1 = x2 = v1 = v2 = far_end = 0.0
    modes: Modes = (0, 0)
    for k, u in enumerate(drive(time).tolist()):
        base = u if wiring == "base" else 0.0
        far_end += 0.0 if wiring == "base" else T * u
        w1, w2 = v1 - T * k1 * (x1 - far_end) / m1, v2 - T * k2 * x2 / m2
        (f1, f2), modes = rigid_friction((w1 - base, w2 - w1), response, FRICTION, modes)
        v1, v2 = w1 - T * (f1 - f2) / m1, w2 - T * f2 / m2
        x1, x2 = x1 + T * v1, x2 + T * v2
        rows[k] = x1, x2, v1, v2, f1, f2, v1 - base, v2 - v1
        sticking[k] = modes[0] == 0, modes[1] == 0
    return Motion(time, rows[:, 0:2], rows[:, 2:4], rows[:, 4:6], rows[:, 6:8], sticking)


def law_residual(motion: Motion) -> float:
    """Return the maximum violation [N] of ``f = F sgn(v)``, |f| <= F at rest.

    The law holds if and only if f equals f + v clipped to the friction levels, for any weight of v.
    """
    limits = np.array(FRICTION)
    held = np.clip(motion.friction_force + 1e3 * motion.sliding_velocity, -limits, limits)
    return float(np.abs(motion.friction_force - held).max())


# --- figure -------------------------------------------------------------------------------------------------------

Runs = dict[Wiring, tuple[Motion, Motion]]

DURATION = 6.0
_MILLI = 1e3
_BLOCKS = ("M1", "M2")
_LARGEST_RMS = (0.8, 0.4)
"""Guard of the rms difference in position [mm]: a few times the elastic displacement 5 N/(3e4 N/m) = 0.17 mm."""

_STIFF = (1e-4, 3e6, 3e3)
"""Period [s], stiffness [N/m] and damping [N s/m] of contacts that are nearly rigid."""

_LARGEST_RMS_STIFF = 0.1


def reproduce() -> Outcome:
    """Run both readings of the caption, with model-C contacts and with rigid ones."""
    runs: Runs = {}
    rows: list[Row] = []
    for wiring in WIRINGS:
        blocks = network(wiring)
        ours, reference = runs[wiring] = compliant(network(wiring), DURATION), rigid(wiring, DURATION)
        rms = rms_difference(ours, reference)
        off, stiff = law_residual(reference), rms_difference(compliant(network(wiring, *_STIFF), DURATION), reference)
        rows += [
            derived(f"{wiring}: distance of the rigid reference from the set-valued law", 0.0, off, 1e-9, "N"),
            derived(f"{wiring}: share of the limit of stability in use", Bound(0.0, 1.0), blocks.stability_number),
        ]
        for i, block in enumerate(_BLOCKS):
            extent, wanted = (_MILLI * float(np.ptp(run.position[:, i])) for run in (ours, reference))
            stuck, wanted_stuck = (100.0 * float(run.sticking[:, i].mean()) for run in (ours, reference))
            where, largest = f"{wiring}: {block}", np.abs(ours.friction_force[:, i]).max()
            rows += [
                guard(f"{where}, rms difference to rigid", Bound(0.0, _LARGEST_RMS[i]), rms[i], "mm"),
                guard(f"{where}, the same, 100 times as stiff", Bound(0.0, _LARGEST_RMS_STIFF), stiff[i], "mm"),
                derived(f"{where}, range of positions as rigid", wanted, extent, 1.0, "mm"),
                derived(f"{where}, time it sticks as rigid", wanted_stuck, stuck, 1.0, "%"),
                Row(f"{where}, largest friction below it", FRICTION[i], largest, 0.0, "N"),
            ]
            if wiring == "base":  # in the other reading, rigid contacts also stick briefly
                begins = (np.diff(run.sticking[:, i].astype(np.int8)) == 1 for run in (reference, ours))
                onsets, seen = (int(np.count_nonzero(begin)) for begin in begins)
                rows.append(derived(f"{where}, times it begins to stick as rigid", onsets, seen))
    return Outcome(rows, lambda figure: _draw(figure, runs))


def rms_difference(ours: Motion, reference: Motion) -> Array:
    """Return the root mean square difference in position of each block, (2,) [mm]."""
    difference = ours.position - _sampled(reference, ours).position
    return np.asarray(_MILLI * np.sqrt(np.mean(difference**2, axis=0)))


def _sampled(run: Motion, like: Motion) -> Motion:
    """Return the samples of `run` at the times of `like`."""
    every = round(len(run.time) / len(like.time))
    return Motion(*(getattr(run, name)[every - 1 :: every] for name in Motion.__dataclass_fields__))


def _draw(figure: Figure, runs: Runs) -> None:
    figure.set_size_inches(13, 8.5)
    axes = figure.subplots(3, 2, sharex=True, sharey="row")
    words = {"base": "the base moves at u", "ground": "u drives the spring of M1"}
    panels = (
        ("position", _MILLI, "position [mm]"),
        ("velocity", 1.0, "velocity [m/s]"),
        ("friction_force", 1.0, "friction f [N]"),
    )
    for column, (wiring, (ours, reference)) in zip(axes.T, runs.items(), strict=True):
        column[0].set_title(f'"{wiring}": {words[wiring]}', fontsize=12, color=INK)
        column[1].plot(ours.time, drive(ours.time), color=INK, linewidth=0.8, linestyle=":", label="u")
        sampled = _sampled(reference, ours)
        for panel, (name, scale, label) in zip(column, panels, strict=True):
            for i, (block, colour) in enumerate(zip(_BLOCKS, (BLUE, ORANGE), strict=True)):
                exact, model = scale * getattr(sampled, name)[:, i], scale * getattr(ours, name)[:, i]
                rigid_label = "_" if i else "rigid contacts"
                panel.plot(sampled.time, exact, color=PALE, alpha=0.55, linewidth=3.5, label=rigid_label)
                label_of_block = f"{block} and the contact below it, model C"
                panel.plot(ours.time, model, color=colour, linewidth=1.1, label=label_of_block)
            dress(panel, "", label)
        column[2].set_xlabel("time [s]")
    axes[0, 0].set_xlim(0.0, DURATION)
    handles, labels = axes[1, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), fontsize=10, frameon=False)
    figure.suptitle(
        "Fig. 11: M2 rubs on M1 (up to 2.5 N), M1 on the base (up to 5 N), springs hold both", fontsize=13, color=INK
    )
