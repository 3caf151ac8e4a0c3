"""An emulated stick and somebody who holds it, to be calibrated by the wall's clock or in step with the bus."""

import contextlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from calibration.joystick import balance, procedure, pushes
from calibration.joystick import stick as stick_module
from calibration.joystick.emulated import EmulatedPerson, OperatedHandSettings
from calibration.joystick.procedure import Calibration, Request, calibrate
from calibration.joystick.stick import RawStick
from devices.emulators.pid import emulated_stick
from devices.emulators.pid.stick import EmulatedStick
from devices.emulators.pid.times import FreeTime
from devices.emulators.pid.usb_backend import EmulatedUsbBackend
from devices.joystick.parameters import StickParameters, build_parameters
from devices.joystick.settings import StickSettings
from tests.devices.joystick.in_step import put_in_step

WALL = 1e-3
"""Frames of the bus that take their time; without, they go by as fast as the machine can."""


def bench(
    profile: str, kind: type[EmulatedPerson] = EmulatedPerson, period: float = 0.0
) -> tuple[EmulatedUsbBackend, Any]:
    backend = emulated_stick(profile, hand=OperatedHandSettings(), period=period)
    return backend, kind(backend.sticks[0])


def truth_of(stick: EmulatedStick) -> StickParameters:
    return build_parameters(stick.truths)


def request(stick: EmulatedStick, **more: Any) -> Request:
    own = stick.profile.handle
    scale = {} if "weight" in more else {"stated_max_force": truth_of(stick).force.max_force_n}
    return Request(**{"travel_x": 2.0 * own.half_width, "travel_y": 2.0 * own.half_height, **scale, **more})


@contextlib.contextmanager
def opened(backend: EmulatedUsbBackend) -> Iterator[RawStick]:
    """Open a stick; one whose bus goes as fast as it can takes the driver and the calibration with it."""
    stick = backend.sticks[0]
    with pytest.MonkeyPatch.context() as patch:
        if isinstance(stick.time, FreeTime):
            sleep = put_in_step(stick.time, patch, balance, procedure, pushes, stick_module)
            patch.setattr(stick, "wait", sleep)
        with RawStick(StickSettings(emulated=True), backend) as raw:
            yield raw


def attempt(backend: EmulatedUsbBackend, person: Any, **more: Any) -> Calibration:
    with opened(backend) as raw:
        return calibrate(raw, person, request(backend.sticks[0], **more))


def near(found: Any, truth: Any, part: float) -> None:
    found, truth = np.array(found), np.array(truth)
    np.testing.assert_allclose(found, truth, atol=part * np.abs(truth).max(), rtol=0.0)


def left_alone(stick: EmulatedStick) -> bool:
    """Tell whether nothing pushes and the kernel's driver has the stick again."""
    return not stick.force.any() and not stick.owners and stick.profile.interface in stick.drivers
