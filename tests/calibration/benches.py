"""An emulated stick and its emulated operator, calibrated in wall-clock time or in step with the bus."""

import contextlib
import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from calibration.joystick import forces
from calibration.joystick import stick as stick_module
from calibration.joystick.person import OPERATION, EmulatedPerson, OperatedHandSettings, Request
from calibration.joystick.procedure import Bench, calibrate
from calibration.motions import Mover
from devices.emulated.joystick import EmulatedPidJoystick, EmulatedStickSettings
from devices.emulators.pid.stick import EmulatedUsbBackend, emulated_stick
from devices.emulators.usb_bus import FreeTime
from devices.faults import FaultyDevice, parse_fault
from devices.joystick.parameters import build_parameters
from haptics.clock import Clock, WallClock
from haptics.shared import Mailbox, SharedFile
from tests.devices.joystick.in_step import BusClock, put_in_step

WALL = 1e-3
"""Period of the bus in wall-clock time [s]; with 0 the bus is as fast as the machine."""


@dataclass
class Table:
    """A stick on its bus, its operator, and the file between them."""

    backend: EmulatedUsbBackend
    person: Any
    shared: SharedFile

    @property
    def stick(self):
        return self.backend.units[0]


def bench(profile, kind=EmulatedPerson, period=0.0, **known):
    shared = SharedFile("hand")
    lane = Mailbox(shared.path, OPERATION, create=True)
    backend = emulated_stick(profile, hand=OperatedHandSettings(str(shared.path)), period=period)
    stick = backend.units[0]
    own = stick.profile.handle
    reach = request(stick, **known).reach(own.half_width, own.half_height)
    person = kind(lane, reach, lambda seconds: stick.wait(seconds))  # noqa: PLW0108 - it may be put in step later
    return Table(backend, person, shared)


class Idle(EmulatedPerson):
    """Says that it is done without moving the handle."""

    def bring(self, place, look):
        look()


class Mirrored(EmulatedPerson):
    """Confuses left and right."""

    def bring(self, place, look):
        super().bring(place._replace(x=-place.x), look)


class Holding(EmulatedPerson):
    """Keeps holding the handle."""

    def release_handle(self, look):
        pass


def truth_of(stick):
    return build_parameters(stick.truths)


def request(stick, **more):
    own = stick.profile.handle
    scale = {} if "weight" in more else {"stated_max_force": truth_of(stick).force.max_force_n}
    travels = {"travel_x": 2.0 * own.half_width, "travel_y": 2.0 * own.half_height}
    return Request(**{**({"rim_radius": own.rim_radius} if own.rim_radius else travels), **scale, **more})


class StepClock(BusClock):
    """A clock that advances with the frames of the bus, in which the driver makes its steps."""

    def __init__(self, period, bus, sleep):
        self._sleep = sleep
        super().__init__(period, bus)

    def wait(self, tick):
        self._sleep(self._origin + tick * self.period - self._bus.now())
        return super().wait(tick)


@contextlib.contextmanager
def moved_here(table, *faults):
    """Return a factory of movers of the stick in this process, with `faults`, in step with a bus without a clock."""
    stick = table.stick
    with pytest.MonkeyPatch.context() as patch:
        new_clock: Callable[[], Clock] = functools.partial(WallClock, 1e-3)
        if isinstance(stick.time, FreeTime):
            sleep = put_in_step(stick.time, patch, forces, stick_module)
            patch.setattr(stick, "wait", sleep)
            new_clock = functools.partial(StepClock, 1e-3, stick.time, sleep)

        def mover(file):
            clock = new_clock()

            def make(more, _):
                settings = {"emulated": True, "emulator": stick.profile.name, "parameters": str(file)}
                device = EmulatedPidJoystick(settings, clock=clock, backend=table.backend)
                return FaultyDevice(device, map(parse_fault, faults), clock)

            return Mover(make, live=False, clock_of=lambda device: clock)

        yield mover


def attempt(table, place, **more):
    with moved_here(table) as mover:
        bench = Bench(EmulatedStickSettings(emulated=True), mover, table.backend)
        return calibrate(bench, table.person, request(table.stick, **more), place, {})


def near(found, truth, part):
    found, truth = np.array(found), np.array(truth)
    np.testing.assert_allclose(found, truth, atol=part * np.abs(truth).max(), rtol=0.0)


def left_alone(stick):
    """Return True if no force acts and the driver of the kernel has the stick again."""
    return not stick.force.any() and not stick.owners and stick.profile.interface in stick.drivers
