"""Small real devices for the servo's tests: they keep what they were told, and can be told to fail."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from haptics.clock import Clock
from haptics.device import Causality, DeviceSpec, State
from haptics.errors import DeviceFault

Vector = NDArray[np.float64]


def make_spec(causality: Causality = Causality.IMPEDANCE, **changes: object) -> DeviceSpec:
    facts: dict[str, object] = {
        "name": "bench",
        "causality": causality,
        "identity": "bench 1",
        "rate_min": 100.0,
        "rate_max": 4000.0,
        "workspace_min": (-0.1, -0.1),
        "workspace_max": (0.1, 0.1),
        "max_force": 10.0 if causality is Causality.IMPEDANCE else 1000.0,  # the range of a force sensor
        "max_force_rate": 1e5,
        "max_speed": 1.0,
        "max_acceleration": 1e3,
        "max_sample_age": 5e-3,
        "fade_in": 0.0,
    }
    return DeviceSpec(**{**facts, **changes})  # type: ignore[arg-type]


class BenchDevice:
    """Moves on a circle of 30 mm and reports a force along its velocity; calls `disturb` on every sample."""

    def __init__(
        self,
        clock: Clock | None = None,
        causality: Causality = Causality.IMPEDANCE,
        disturb: Callable[[State, int], None] | None = None,
        fail_at: int | None = None,
        **changes: object,
    ) -> None:
        self.spec = make_spec(causality, **changes)
        self.clock = clock or Clock(1e-3)
        self.disturb = disturb
        self.fail_at = fail_at
        self.opened = 0
        self.closed = 0
        self.reads = 0
        self.written: list[Vector] = []

    def open(self) -> None:
        self.opened += 1

    def read(self) -> State:
        if self.reads == self.fail_at:
            raise DeviceFault("bench: the cable was pulled; plug it in again.")
        t = self.clock.time
        direction = np.array((-math.sin(5 * t), math.cos(5 * t)))
        position = 0.03 * np.array((math.cos(5 * t), math.sin(5 * t)))
        state = State(t, position, 0.15 * direction, 9.0 * direction)
        if self.disturb is not None:
            self.disturb(state, self.reads)
        self.reads += 1
        return state

    def write(self, command: Vector) -> None:
        self.written.append(command.copy())

    def close(self) -> None:
        self.closed += 1
