"""Effects of faults on commands."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from devices.faults.effects import Effect, Situation
from haptics.device import Causality, State, Vector


class Saturation(Effect):
    """Clip commands, or readings of a force sensor, to a `part` of the largest force, per axis."""

    def __init__(self, situation: Situation, part: float) -> None:
        super().__init__(situation)
        self._limit = part * situation.spec.max_force
        self._senses = situation.spec.causality is Causality.ADMITTANCE

    def spoil(self, state: State, now: float) -> State:
        """Return the sample with the clipped force of the sensor."""
        return replace(state, force=self._clipped(state.force)) if self._senses else state

    def cut(self, command: Vector) -> Vector:
        """Return the clipped motor force."""
        return command if self._senses else self._clipped(command)

    def _clipped(self, vector: Vector) -> Vector:
        return np.clip(vector, -self._limit, self._limit)


class Ignored(Effect):
    """Ignore commands: the device keeps the last command before the fault."""

    _last: Vector | None = None

    def write(self, command: Vector, now: float) -> Vector:
        """Return the last command before the fault, or the first of all."""
        if self._last is None or not self.situation.covers(now):
            self._last = command.copy()
        return self._last
