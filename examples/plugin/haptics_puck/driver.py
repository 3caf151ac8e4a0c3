"""The driver: a data sheet and four methods around the maker's library."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from devices.common.settings import VelocitySettings
from devices.common.velocity import VelocityEstimator
from haptics import Clock, DeviceFault, DeviceOpenError, DeviceSpec, State, WallClock
from haptics.settings import bounded, build
from haptics_puck import PUCK, maker


@dataclass(frozen=True)
class PuckSettings(VelocitySettings, section="device"):
    """Settings of the puck, in addition to `VelocitySettings`.

    Attributes
    ----------
    strength : float
        Fraction of the magnets' force that may be used.
    """

    strength: float = bounded(1.0, above=0.0, maximum=1.0, doc="fraction of the magnets' force that may be used")


class Puck:
    """A puck on an air table.

    Parameters
    ----------
    settings : mapping, optional
        Those of `PuckSettings`.
    clock : Clock, optional
        The run's clock; without one, time since it was built counts.
    """

    def __init__(self, settings: Mapping[str, Any] | None = None, *, clock: Clock | None = None) -> None:
        self.settings = build(PuckSettings, settings or {}, "device")
        self._clock = clock or WallClock(1e-3)
        self._velocity = VelocityEstimator(maker.COUNT, self._clock.period, self.settings)
        self._table: maker.Table | None = None

    @property
    def spec(self) -> DeviceSpec:
        """The data sheet."""
        force = self.settings.strength * maker.STRONGEST
        return DeviceSpec(
            name=PUCK.name,
            causality=PUCK.causality,
            identity="the only table",
            rate_min=100.0,
            rate_max=1000.0,
            workspace_min=(-0.1, -0.1),
            workspace_max=(0.1, 0.1),
            max_force=force,
            max_force_rate=10_000.0,
            max_speed=1.0,
            max_acceleration=force / maker.MASS,
            max_sample_age=10e-3,
            position_resolution=maker.COUNT,
            mass=maker.MASS,
        )

    def open(self) -> None:
        """Connect; nothing happens if it is open."""
        if self._table is None:
            self._velocity.reset()
            self._velocity.update(-self._clock.period, 0.0, 0.0)  # which compiles it, before it must be quick
            self._velocity.reset()
            self._table = maker.Table()

    def read(self) -> State:
        """Return where the puck is now."""
        x, y = (count * maker.COUNT for count in self._connected().counts())
        now = self._clock.elapsed()
        return State(now, np.array((x, y)), self._velocity.update(now, x, y).copy())

    def write(self, command: np.ndarray) -> None:
        """Push the puck, (2,) [N]."""
        table = self._connected()
        if not np.isfinite(command).all():
            raise DeviceFault(f"{PUCK.name} was given the command {command}: it must be finite.")
        table.push(*command.tolist())

    def close(self) -> None:
        """Switch the magnets off and disconnect; nothing happens if it is not open."""
        table, self._table = self._table, None
        if table is not None:
            table.disconnect()

    def _connected(self) -> maker.Table:
        if self._table is None:
            raise DeviceOpenError(f"{PUCK.name} is not open: call open() first.")
        return self._table
