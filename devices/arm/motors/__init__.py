"""Motor stages: two motors that track angles, behind one small interface.

- `stage`: the interface, `MotorStage`, which is all that an arm uses of its motors; the thread that communicates with
  the drive, and the kernels of a tick. `settings`: settings of a drive.
- `odrive`: an ODrive v3.6 with firmware 0.5 on USB, `OdriveStage`, with the native protocol or lines of text. `native`:
  the native protocol. `usb`: discovery, pipes, and transfers in flight.
- `can_stage`: ODrives on a CAN bus, from firmware 0.5 to Pro and S1, `CanStage`. `can_bus`: frames and interface.
- `errors`: names of error bits.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from devices.arm.motors.can_stage import CanStage
from devices.arm.motors.odrive import OdriveStage
from devices.arm.motors.settings import CAN, WHERE, Demands, OdriveSettings
from devices.arm.motors.stage import MotorStage
from haptics.settings import build

__all__ = ["CanStage", "MotorStage", "OdriveSettings", "OdriveStage", "make_stage"]


def make_stage(settings: Mapping[str, Any], demands: Demands | None = None, far_end: Any = None) -> MotorStage:
    """Return the motor stage for a table of settings.

    Parameters
    ----------
    settings : mapping
        Settings of `OdriveSettings`.
    demands : Demands, optional
        Requirements of the arm on the motors.
    far_end : optional
        Access to the drive instead of libusb or a CAN interface: a backend for pyusb, or a function that opens a
        `devices.arm.motors.can_bus.SocketPort`.

    Raises
    ------
    ConfigurationError
        If a setting is invalid.
    """
    stage = CanStage if build(OdriveSettings, settings, WHERE).protocol == CAN else OdriveStage
    return stage(settings, far_end=far_end, demands=demands)
