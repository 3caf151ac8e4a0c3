"""A handle without the virtual joystick's compiled kernels, which a kernel of its own would have to compile first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import numpy as np

from haptics.clock import Clock


class LightJoystick:
    """A mass with viscous friction between four walls that nobody holds; a read lets a frame go by."""

    def __init__(self, settings: Mapping[str, Any], *, clock: Clock) -> None:
        self._mass, self._damping, self._period = settings["mass"], settings["damping"], clock.period
        self._half = settings["half_width"], settings["half_height"]
        self._place, self._speed, self._force = [0.0, 0.0], [0.0, 0.0], [0.0, 0.0]
        self.hand = None
        self.hand_force = np.zeros(2)

    def open(self) -> None:
        """Nothing has to be opened."""

    def stay_on_x(self) -> None:
        """Nothing pushes the handle of a wheel off it here."""

    @property
    def handle(self) -> Any:
        return np.array(self._place)

    @property
    def handle_velocity(self) -> Any:
        return np.array(self._speed)

    def write(self, force: Any) -> None:
        self._force = [float(force[0]), float(force[1])]

    def read(self) -> SimpleNamespace:
        for axis in range(2):
            push = self._force[axis] - self._damping * self._speed[axis]
            self._speed[axis] += push / self._mass * self._period
            wanted = self._place[axis] + self._speed[axis] * self._period
            self._place[axis] = max(-self._half[axis], min(self._half[axis], wanted))
            if self._place[axis] != wanted:
                self._speed[axis] = 0.0
        return SimpleNamespace(buttons=0)


@contextmanager
def light_handles() -> Iterator[None]:
    """Put such a handle behind every stick that is made meanwhile."""
    with patch("devices.emulators.pid.plant.VirtualJoystick", LightJoystick):
        yield
