"""Hands that move over scenes: rows of ticks, with the energy that went into the element in each."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from haptics.device import Causality
from haptics.elements.models import Element
from haptics.elements.tables import element_class
from haptics.friction.law import Law
from haptics.records import NEUTRAL, Rows
from haptics.rendering.on_scene import OnScene
from haptics.rendering.programs import Program
from haptics.rendering.rendering import Rendering
from tests.haptics.changing import ELEMENTS
from tests.haptics.doubles import make_spec

PERIOD = 1e-3
Floats = NDArray[np.float64]


def element_of(model: str, law: Law, **changes: float) -> Element:
    return element_class(model)(law=law, period=PERIOD, **{**ELEMENTS[model], **changes})  # type: ignore[arg-type]


def rendering_of(program: Program) -> Rendering:
    wide = {"workspace_min": (-9.0, -9.0), "workspace_max": (9.0, 9.0), "max_force": 1e3, "max_force_rate": 1e7}
    most = {"max_acceleration": 1e6, "max_speed": 10.0, "max_energy": 1e6, "plausible_speed": 100.0}
    return Rendering(program, make_spec(program.causality, **wide, **most))


def moved(program: Program, path: Floats) -> Rows:
    """The rows of an impedance whose end effector is led along a path, (n, 2) [m], one place a tick."""
    rows = np.repeat(NEUTRAL, len(path))
    rows["tick"] = np.arange(len(path))
    rows["position"] = path
    rows["velocity"][1:] = np.diff(path, axis=0) / PERIOD
    return rendering_of(program).again(rows)


def pulled(program: Program, start: tuple[float, float], target: Floats, gain: float = 400.0) -> Rows:
    """The rows of an admittance that a hand leads with velocities `target`, (n, 2) [m/s], as well as it can."""
    rendering, rows = rendering_of(program), np.repeat(NEUTRAL, len(target))
    rows["tick"], rows["position"] = np.arange(len(target)), start
    for k in range(len(target)):
        one = rows[k : k + 1]
        if k:
            before = rows[k - 1]
            one["position"] = before["proxy"]
            speed = (before["proxy"] - (rows["proxy"][k - 2] if k > 1 else start)) / PERIOD
            one["force"] = before["friction_force"] + gain * (target[k] - speed)
        rows[k : k + 1] = rendering.again(one)
    return rows


def velocity_of_reference(rows: Rows) -> Floats:
    """Velocity of an admittance's reference in every tick but the first, (n - 1, 2) [m/s]."""
    return np.diff(rows["proxy"], axis=0) / PERIOD


def dissipated(element: Element, rows: Rows) -> Floats:
    """What left the element as heat in every tick but the first, (n - 1,) [J]: what went in, less what is stored."""
    if element.causality is Causality.IMPEDANCE:
        power = (-rows["command_unlimited"] * rows["velocity"]).sum(axis=1)[1:]
        moving = rows["sliding_velocity"]
    else:
        speed = np.vstack((np.zeros((1, 2)), velocity_of_reference(rows)))
        power = (rows["force"] * speed).sum(axis=1)[1:]
        moving = speed
    stiffness, mass = getattr(element, "stiffness", 0.0), getattr(element, "mass", 0.0)
    stored = 0.5 * stiffness * (rows["displacement"] ** 2).sum(axis=1) + 0.5 * mass * (moving**2).sum(axis=1)
    return PERIOD * power - np.diff(stored)


def cross(program: OnScene, speed: float, reach: float) -> Rows:
    """The rows of a crossing of the line x = 0 at a constant speed [m/s], its sign the direction; from -reach on."""
    way = np.sign(speed)
    count = int(2.0 * reach / abs(speed) / PERIOD)
    if program.causality is Causality.IMPEDANCE:
        x = -way * reach + speed * PERIOD * np.arange(count)
        return moved(program, np.stack((x, np.zeros(count)), axis=1))
    return pulled(program, (-way * reach, 0.0), np.tile((speed, 0.0), (count, 1)))


def steps_at_the_border(program: OnScene, rows: Rows, speed: float) -> tuple[float, float]:
    """The largest change of the friction force, and of the output, per tick: shares of dF v T / border.

    The speed is that of the hand for an impedance, and of the reference, which is the proxy, for an admittance. The
    ticks are those in which the proxy slides on near the border, whose full width is 1.5 borders, and a while after.
    """
    proxy = rows["proxy"][:, 0] * np.sign(speed)
    width = 1.5 * program.surface.border
    goes_on = rows["sliding_velocity"][:, 0] * np.sign(speed) > 0.0
    near = (proxy[:-2] > -width) & (proxy[:-2] < 2.0 * width) & goes_on[1:-1] & goes_on[2:]
    steps = np.abs(np.diff(rows["friction_force"][:, 0]))[1:][near]
    outputs = np.abs(np.diff(rows["command_unlimited"][:, 0]))[1:][near]
    difference = 5.0
    if program.causality is Causality.IMPEDANCE:
        bound = difference * abs(speed) * PERIOD / program.scene.border
        return float(steps.max() / bound), float(outputs.max() / bound)
    ways = np.abs(np.diff(rows["proxy"][:, 0]))
    bounds = difference * ways[:-1][near] / program.scene.border
    return float((steps / np.maximum(bounds, 1e-12)).max()), float(
        steps.max() / (difference * abs(speed) * PERIOD / program.scene.border)
    )
