"""Selection of the motor stage."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from devices.arm.motors.can.stage import CanStage
from devices.arm.motors.limits import Demands
from devices.arm.motors.odrive import OdriveStage
from devices.arm.motors.settings import CAN, WHERE, OdriveSettings
from devices.arm.motors.streamed import StreamedStage
from haptics.settings import build


def make_stage(
    settings: Mapping[str, Any], period: float, demands: Demands | None = None, far_end: Any = None
) -> StreamedStage:
    """Return the motor stage for a table of settings.

    Parameters
    ----------
    settings : mapping
        Settings of `OdriveSettings`.
    period : float
        Period of a tick [s].
    demands : Demands, optional
        Requirements of the arm on the motors.
    far_end : optional
        Access to the drive instead of libusb or a CAN interface: a backend for pyusb, or a function that opens a
        `devices.arm.motors.can.port.Port`.

    Raises
    ------
    ConfigurationError
        If a setting is invalid.
    """
    if build(OdriveSettings, settings, WHERE).protocol == CAN:
        return CanStage(settings, period=period, port=far_end, demands=demands)
    return OdriveStage(settings, period=period, backend=far_end, demands=demands)
