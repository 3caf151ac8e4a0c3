"""Load of the emulated drive: two flywheels; an arm may replace them."""

from __future__ import annotations

import math
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from devices.emulators.odrive.control_kernels import AXIS, STEP, iterate
from haptics.jit import kernel

Pair = tuple[float, float]

_TURN = math.tau

WHEELS = np.dtype(
    [
        ("angle", "<f8", (2,)),
        ("speed", "<f8", (2,)),
        ("load", "<f8", (2,)),
        ("per_torque", "<f8"),
        ("decay", "<f8"),
    ]
)
"""Record of two flywheels: angles [turn], speeds [turn/s], loads [N m], acceleration per torque [turn/(N m s^2)],
inverse time constant of their friction [1/s].
"""


class Plant(Protocol):
    """Two shafts that torques turn."""

    @property
    def angles(self) -> Pair:
        """Angles of the motors' shafts [turn]."""
        ...

    @property
    def speeds(self) -> Pair:
        """Speeds of the motors' shafts [turn/s]."""
        ...

    def run(self, axes: NDArray[Any], count: int) -> None:
        """Simulate `count` control iterations of both axes, (2,) array of `AXIS`, and of the load."""
        ...


@kernel
def _run(axes: Any, wheels: Any, count: int) -> None:
    """Iterate both axes, then apply their torques for a step; friction is implicit and never adds energy."""
    w = wheels[0]
    damped = 1.0 / (1.0 + w.decay * STEP)
    push = w.per_torque * STEP
    for _ in range(count):
        iterate(axes[0], w.angle[0])
        iterate(axes[1], w.angle[1])
        for i in range(2):
            w.speed[i] = (w.speed[i] + push * (axes[i].torque + w.load[i])) * damped
            w.angle[i] += STEP * w.speed[i]


class Flywheels:
    """Two inertias with viscous friction and additional loads.

    Parameters
    ----------
    inertia : float
        Inertia of each [kg m^2].
    friction : float
        Torque per speed [N m s/rad].
    """

    def __init__(self, inertia: float = 2e-4, friction: float = 1e-4) -> None:
        self._record = np.zeros(1, WHEELS)
        self._record["per_torque"] = 1.0 / (inertia * _TURN)
        self._record["decay"] = friction / inertia
        _run(np.zeros(2, AXIS), self._record.copy(), 0)  # compiled in advance

    @property
    def angles(self) -> Pair:
        """Angles of the shafts [turn]."""
        return self._pair("angle")

    @angles.setter
    def angles(self, values: Pair) -> None:
        self._record["angle"] = values

    @property
    def speeds(self) -> Pair:
        """Speeds of the shafts [turn/s]."""
        return self._pair("speed")

    @speeds.setter
    def speeds(self, values: Pair) -> None:
        self._record["speed"] = values

    @property
    def loads(self) -> Pair:
        """Torques in addition to the motor torques [N m]."""
        return self._pair("load")

    @loads.setter
    def loads(self, values: Pair) -> None:
        self._record["load"] = values

    def _pair(self, field: str) -> Pair:
        first, second = self._record[field][0].tolist()
        return first, second

    def run(self, axes: NDArray[Any], count: int) -> None:
        """Simulate `count` control iterations; see `Plant`."""
        _run(axes, self._record, count)
