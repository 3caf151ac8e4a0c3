"""What a fault does to commands: they are cut, or change nothing."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from devices.faults.effects import Effect, Situation
from haptics.device import Causality, State, Vector


class Saturation(Effect):
    """Nothing beyond a `part` of the largest force passes, per axis: commands or, with a force sensor, its readings."""

    def __init__(self, situation: Situation, part: float) -> None:
        super().__init__(situation)
        self._limit = part * situation.spec.max_force
        self._senses = situation.spec.causality is Causality.ADMITTANCE

    def spoil(self, state: State, now: float) -> State:
        """Return the sample with what the sensor could show of the force."""
        return replace(state, force=self._clipped(state.force)) if self._senses else state

    def cut(self, command: Vector) -> Vector:
        """Return what the motors could do of the force."""
        return command if self._senses else self._clipped(command)

    def _clipped(self, vector: Vector) -> Vector:
        return np.clip(vector, -self._limit, self._limit)


class Ignored(Effect):
    """Commands change nothing any more: the device has been told the last one, and keeps to it."""

    _last: Vector | None = None

    def write(self, command: Vector, now: float) -> Vector:
        """Return the last command before the fault, or the first of all."""
        if self._last is None or not self.situation.covers(now):
            self._last = command.copy()
        return self._last
