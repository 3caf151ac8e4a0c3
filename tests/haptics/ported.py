"""A bench device with a port: the same motion and the same faults through its methods and without Python."""

from __future__ import annotations

import math
import os
import threading
from typing import Any

import numpy as np

from haptics.clock import Clock
from haptics.device import Causality, State
from haptics.errors import DeviceFault
from haptics.jit import kernel
from haptics.parts import address_of_part
from haptics.ports import PORT_FIELDS, Port
from tests.haptics.doubles import Vector, make_spec

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
def take(s: Any, now: float, _unused: float) -> None:
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
def give(s: Any, x: float, y: float) -> None:
    """Keep the sum of all commands, which tells one order of them from another."""
    s.heard[0], s.heard[1] = 0.9 * s.heard[0] + x, 0.9 * s.heard[1] + y
    s.writes += 1


class PortedBench:
    """The device; `plain` hides its port."""

    def __init__(
        self,
        clock: Clock,
        causality: Causality = Causality.IMPEDANCE,
        *,
        fail_at: int = -1,
        stale_from: int = -1,
        **changes: object,
    ) -> None:
        self.spec = make_spec(causality, **changes)
        self.clock = clock
        self.record = np.zeros(1, BENCH)
        self.record["fail_at"], self.record["stale_from"] = fail_at, stale_from
        self.record["hand_force"] = np.nan
        self.closed = 0

    def open(self) -> None:
        pass

    def port(self) -> Port:
        return Port(self.record, address_of_part(take, BENCH), address_of_part(give, BENCH))

    def read(self) -> State:
        s = self.record[0]
        one = self.record.view(np.recarray)[0]
        getattr(take, "py_func", take)(one, self.clock.time, 0.0)
        if s["fault"]:
            raise DeviceFault("bench: the cable was pulled; plug it in again.")
        channels = s["channels"][: sum(size for _, _, size in self.spec.channels)]
        return State(float(s["time"]), s["position"], s["velocity"], s["force"], int(s["buttons"]), channels=channels)

    def write(self, command: Vector) -> None:
        getattr(give, "py_func", give)(self.record.view(np.recarray)[0], float(command[0]), float(command[1]))

    def close(self) -> None:
        self.closed += 1


class PlainBench(PortedBench):
    """The same device driven by its methods: a class that replaces one has no port any more."""

    def read(self) -> State:
        return super().read()


class ThreadedBench(PortedBench):
    """A device whose samples a thread writes, and whose commands another one takes when the event is raised."""

    commands = 0

    def open(self) -> None:
        self._event = os.eventfd(0)
        self._going_on = True
        self.record["time"] = self.clock.elapsed()
        self._threads = [threading.Thread(target=work) for work in (self._sample, self._listen)]
        for thread in self._threads:
            thread.start()

    def port(self) -> Port:
        return Port(self.record, wake=self._event)

    def read(self) -> State:
        raise AssertionError("nobody reads a port")

    def write(self, command: Vector) -> None:
        pass

    def close(self) -> None:
        self._going_on = False
        os.eventfd_write(self._event, 1)
        for thread in self._threads:
            thread.join()
        os.close(self._event)

    def _sample(self) -> None:
        number, record = 0, self.record
        while self._going_on:
            number += 1
            record["sequence"] += 1
            record["position"] = record["velocity"] = record["channels"] = number * 1e-9
            record["time"] = self.clock.elapsed()
            record["sequence"] += 1

    def _listen(self) -> None:
        while self._going_on:
            os.eventfd_read(self._event)
            self.commands = int(self.record["commands"][0]) // 2
