"""An emulated stick and somebody who holds it, to be calibrated by the wall's clock or in step with the bus."""

import contextlib
import functools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from calibration.joystick import looking, release
from calibration.joystick import stick as stick_module
from calibration.joystick.emulated import OPERATION, EmulatedPerson, OperatedHandSettings
from calibration.joystick.procedure import Bench, Calibration, calibrate
from calibration.joystick.request import Request
from calibration.motions import Mover
from devices.emulated.joystick import EmulatedPidJoystick, EmulatedStickSettings
from devices.emulators.pid import emulated_stick
from devices.emulators.pid.stick import EmulatedStick
from devices.emulators.pid.usb_backend import EmulatedUsbBackend
from devices.emulators.times import FreeTime
from devices.faults import FaultyDevice, parse_fault
from devices.joystick.parameters import StickParameters, build_parameters
from haptics.clock import Clock, WallClock
from haptics.servo.lane import Lane
from haptics.shared import SharedFile
from tests.devices.joystick.in_step import BusClock, put_in_step

WALL = 1e-3
"""Frames of the bus that take their time; without, they go by as fast as the machine can."""


@dataclass
class Table:
    """A stick on its bus, who holds it, and the file between them."""

    backend: EmulatedUsbBackend
    person: Any
    shared: SharedFile

    @property
    def stick(self) -> EmulatedStick:
        return self.backend.sticks[0]


def bench(profile: str, kind: type[EmulatedPerson] = EmulatedPerson, period: float = 0.0, **known: Any) -> Table:
    shared = SharedFile("hand")
    lane = Lane(shared.path, OPERATION, create=True)
    backend = emulated_stick(profile, hand=OperatedHandSettings(str(shared.path)), period=period)
    stick = backend.sticks[0]
    own = stick.profile.handle
    reach = request(stick, **known).reach(own.half_width, own.half_height)
    person = kind(lane, reach, lambda seconds: stick.wait(seconds))  # noqa: PLW0108 - it may be put in step later
    return Table(backend, person, shared)


def truth_of(stick: EmulatedStick) -> StickParameters:
    return build_parameters(stick.truths)


def request(stick: EmulatedStick, **more: Any) -> Request:
    own = stick.profile.handle
    scale = {} if "weight" in more else {"stated_max_force": truth_of(stick).force.max_force_n}
    travels = {"travel_x": 2.0 * own.half_width, "travel_y": 2.0 * own.half_height}
    return Request(**{**({"rim_radius": own.rim_radius} if own.rim_radius else travels), **scale, **more})


class StepClock(BusClock):
    """Goes by with the frames of the bus, in which the driver makes its steps."""

    def __init__(self, period: float, bus: FreeTime, sleep: Callable[[float], None]) -> None:
        self._sleep = sleep
        super().__init__(period, bus)

    def wait(self, tick: int) -> float:
        self._sleep(self._origin + tick * self.period - self._bus.now())
        return super().wait(tick)


@contextlib.contextmanager
def moved_here(table: Table, *faults: str) -> Iterator[Callable[[Path], Mover]]:
    """Give what moves the stick in this process, with `faults` on demand; a bus without a clock takes all with it."""
    stick = table.stick
    with pytest.MonkeyPatch.context() as patch:
        new_clock: Callable[[], Clock] = functools.partial(WallClock, 1e-3)
        if isinstance(stick.time, FreeTime):
            sleep = put_in_step(stick.time, patch, looking, release, stick_module)
            patch.setattr(stick, "wait", sleep)
            new_clock = functools.partial(StepClock, 1e-3, stick.time, sleep)

        def mover(file: Path) -> Mover:
            clock = new_clock()

            def make(more: Mapping[str, Any], _: Clock) -> FaultyDevice:
                settings = {"emulated": True, "emulator": stick.profile.name, "parameters": str(file)}
                device = EmulatedPidJoystick(settings, clock=clock, backend=table.backend)
                return FaultyDevice(device, map(parse_fault, faults), clock)

            return Mover(make, live=False, clock_of=lambda device: clock)

        yield mover


def attempt(table: Table, place: Path, **more: Any) -> Calibration:
    with moved_here(table) as mover:
        bench = Bench(EmulatedStickSettings(emulated=True), mover, table.backend)
        return calibrate(bench, table.person, request(table.stick, **more), place, {})


def near(found: Any, truth: Any, part: float) -> None:
    found, truth = np.array(found), np.array(truth)
    np.testing.assert_allclose(found, truth, atol=part * np.abs(truth).max(), rtol=0.0)


def left_alone(stick: EmulatedStick) -> bool:
    """Tell whether nothing pushes and the kernel's driver has the stick again."""
    return not stick.force.any() and not stick.owners and stick.profile.interface in stick.drivers
