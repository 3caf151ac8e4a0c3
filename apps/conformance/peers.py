"""Re-implementations of published friction renderers, with the force and stiffness of the suite.

They are implemented from formulas published by their authors and show the behaviour of a formula on the plant of this
suite. They are not the products, which run on other hardware, in other loops and with other settings.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from apps.conformance.cells import FRICTION, STIFFNESS

Pair = tuple[float, float]
Formula = Callable[[Any, Any], Pair]
"""``formula(position, velocity) -> force`` on the handle; all are pairs."""

REGULARISATION = 0.01
"""Half width of the ramp of the regularised sign around zero speed [m/s]."""

RAMP_SPEED = 0.25
"""Speed at the end of OpenFFBoard's ramp [m/s]: a quarter of a full-scale speed of 1 m/s."""

RAMP_FILTER_FREQUENCY, RAMP_FILTER_QUALITY = 50.0, 0.2
"""Frequency [Hz] and quality factor of OpenFFBoard's low-pass filter for friction."""


def sign(period: float) -> Formula:
    """Return Coulomb's law as a sign function: -F v/|v|, zero at rest."""

    def formula(_: Any, velocity: Any) -> Pair:
        speed = math.hypot(velocity[0], velocity[1])
        gain = -FRICTION / speed if speed > 0.0 else 0.0
        return gain * velocity[0], gain * velocity[1]

    return formula


def regularised_sign(period: float) -> Formula:
    """Return the sign with a linear ramp up to `REGULARISATION`, as in games and physics engines."""

    def formula(_: Any, velocity: Any) -> Pair:
        gain = -FRICTION / max(math.hypot(velocity[0], velocity[1]), REGULARISATION)
        return gain * velocity[0], gain * velocity[1]

    return formula


def chai3d_stick_slip(period: float) -> Formula:
    """Return the effect ``cEffectStickSlip`` of CHAI3D 3.3: a spring to an anchor that jumps to the tool.

    When the spring would exceed the maximum force, the anchor jumps to the tool and the force of that tick is zero.
    """
    anchor: list[float] = []

    def formula(position: Any, _: Any) -> Pair:
        if not anchor:
            anchor.extend(position)
        x, y = anchor[0] - position[0], anchor[1] - position[1]
        if STIFFNESS * math.hypot(x, y) > FRICTION:
            anchor[:] = position
            return 0.0, 0.0
        return STIFFNESS * x, STIFFNESS * y

    return formula


def proxy(period: float) -> Formula:
    """Return proxy friction (Ruspini et al. 1997; CHAI3D, HAPI): an undamped spring to a dragged point.

    Static and kinetic friction are equal. The formula is model C with zero damping.
    """
    anchor: list[float] = []

    def formula(position: Any, _: Any) -> Pair:
        if not anchor:
            anchor.extend(position)
        x, y = anchor[0] - position[0], anchor[1] - position[1]
        reach, longest = math.hypot(x, y), FRICTION / STIFFNESS
        if reach > longest:
            x, y = x * longest / reach, y * longest / reach
            anchor[:] = position[0] + x, position[1] + y
        return STIFFNESS * x, STIFFNESS * y

    return formula


def _low_pass(frequency: float, quality: float, period: float) -> Callable[[float], float]:
    """Return a second-order low-pass filter, discretized by the bilinear transform."""
    k = math.tan(math.pi * frequency * period)
    norm = 1.0 + k / quality + k * k
    gain, b1, b2 = k * k / norm, 2.0 * (k * k - 1.0) / norm, (1.0 - k / quality + k * k) / norm
    memory = [0.0, 0.0]

    def process(x: float) -> float:
        y = gain * x + memory[0]
        memory[0] = 2.0 * gain * x - b1 * y + memory[1]
        memory[1] = gain * x - b2 * y
        return y

    return process


def openffboard_ramp(period: float) -> Formula:
    """Return the friction effect of OpenFFBoard.

    It is half a sine wave up to `RAMP_SPEED`, per axis, with a low-pass filter.
    """
    filters = [_low_pass(RAMP_FILTER_FREQUENCY, RAMP_FILTER_QUALITY, period) for _ in range(2)]

    def formula(_: Any, velocity: Any) -> Pair:
        forces = []
        for process, v in zip(filters, velocity, strict=True):
            rise = 0.5 * (1.0 - math.cos(math.pi * min(abs(v) / RAMP_SPEED, 1.0)))
            forces.append(process(-math.copysign(FRICTION * rise, v)))
        return forces[0], forces[1]

    return formula


PEERS: dict[str, Callable[[float], Formula]] = {
    "peer-sign": sign,
    "peer-regularised-sign": regularised_sign,
    "peer-chai3d-stick-slip": chai3d_stick_slip,
    "peer-proxy": proxy,
    "peer-openffboard-ramp": openffboard_ramp,
}
"""Re-implemented renderers by their names in the results."""
