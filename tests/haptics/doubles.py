"""Small devices for the tests of the servo: in Python, with a compiled port, and with threads."""

from __future__ import annotations

import math
import os
import threading

import numpy as np
from numpy.typing import NDArray

from haptics import Causality, Clock, DeviceFault, DeviceSpec, State
from haptics.device import PORT_FIELDS, Port
from haptics.jit import address_of_part, kernel

Vector = NDArray[np.float64]


def make_spec(causality=Causality.IMPEDANCE, **changes):
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
    return DeviceSpec(**{**facts, **changes})


class BenchDevice:
    """Moves on a circle of 30 mm and reports a force along its velocity; calls `disturb` on every sample."""

    def __init__(
        self,
        clock=None,
        causality=Causality.IMPEDANCE,
        disturb=None,
        fail_at=None,
        **changes,
    ):
        self.spec = make_spec(causality, **changes)
        self.clock = clock or Clock(1e-3)
        self.disturb = disturb
        self.fail_at = fail_at
        self.opened = 0
        self.closed = 0
        self.reads = 0
        self.written: list[Vector] = []

    def open(self):
        self.opened += 1

    def read(self):
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

    def write(self, command):
        self.written.append(command.copy())

    def close(self):
        self.closed += 1


BENCH = np.dtype(
    [
        *PORT_FIELDS,
        ("reads", "<i8"),
        ("writes", "<i8"),
        ("fail_at", "<i8"),
        ("stale_from", "<i8"),
        ("heard", "<f8", (2,)),
    ]
)


@kernel
def take(s, now, _unused):
    """Move on a circle of 30 mm and report a force along the velocity."""
    if s.reads == s.fail_at:
        s.fault = 1
        return
    x, y = -math.sin(5.0 * now), math.cos(5.0 * now)
    s.position[0], s.position[1] = 0.03 * math.cos(5.0 * now), 0.03 * math.sin(5.0 * now)
    s.velocity[0], s.velocity[1] = 0.15 * x, 0.15 * y
    s.force[0], s.force[1] = 9.0 * x, 9.0 * y
    if not 0 <= s.stale_from <= s.reads:
        s.time = now
    s.buttons = 1 if now < 0.2 else 0
    s.reads += 1
    for i in range(len(s.channels)):
        s.channels[i] = s.reads + 0.01 * i


@kernel
def give(s, x, y):
    """Keep the sum of all commands, which tells one order of them from another."""
    s.heard[0], s.heard[1] = 0.9 * s.heard[0] + x, 0.9 * s.heard[1] + y
    s.writes += 1


class PortedBench:
    """The device; `plain` hides its port."""

    def __init__(
        self,
        clock,
        causality=Causality.IMPEDANCE,
        *,
        fail_at=-1,
        stale_from=-1,
        **changes,
    ):
        self.spec = make_spec(causality, **changes)
        self.clock = clock
        self.record = np.zeros(1, BENCH)
        self.record["fail_at"], self.record["stale_from"] = fail_at, stale_from
        self.record["hand_force"] = np.nan
        self.closed = 0

    def open(self):
        pass

    def port(self):
        return Port(self.record, address_of_part(take, BENCH), address_of_part(give, BENCH))

    def read(self):
        s = self.record[0]
        one = self.record.view(np.recarray)[0]
        getattr(take, "py_func", take)(one, self.clock.time, 0.0)
        if s["fault"]:
            raise DeviceFault("bench: the cable was pulled; plug it in again.")
        channels = s["channels"][: sum(size for _, _, size in self.spec.channels)]
        return State(float(s["time"]), s["position"], s["velocity"], s["force"], int(s["buttons"]), channels=channels)

    def write(self, command):
        getattr(give, "py_func", give)(self.record.view(np.recarray)[0], float(command[0]), float(command[1]))

    def close(self):
        self.closed += 1


class PlainBench(PortedBench):
    """The same device driven by its methods: a class that replaces a method has no port."""

    def read(self):
        return super().read()


class ThreadedBench(PortedBench):
    """A device whose samples a thread writes, and whose commands another one takes when the event is raised."""

    commands = 0

    def open(self):
        self._event = os.eventfd(0)
        self._going_on = True
        self.record["time"] = self.clock.elapsed()
        self._threads = [threading.Thread(target=work) for work in (self._sample, self._listen)]
        for thread in self._threads:
            thread.start()

    def port(self):
        return Port(self.record, wake=self._event)

    def read(self):
        raise AssertionError("a port is not read")

    def write(self, command):
        pass

    def close(self):
        self._going_on = False
        os.eventfd_write(self._event, 1)
        for thread in self._threads:
            thread.join()
        os.close(self._event)

    def _sample(self):
        number, record = 0, self.record
        while self._going_on:
            number += 1
            record["sequence"] += 1
            record["position"] = record["velocity"] = record["channels"] = number * 1e-9
            record["time"] = self.clock.elapsed()
            record["sequence"] += 1

    def _listen(self):
        while self._going_on:
            os.eventfd_read(self._event)
            self.commands = int(self.record["commands"][0]) // 2
