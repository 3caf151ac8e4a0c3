"""Which motor stage the settings mean."""

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
    """Return the stage that a table of settings means.

    Parameters
    ----------
    settings : mapping
        Those of `OdriveSettings`.
    period : float
        Of a tick [s].
    demands : Demands, optional
        What the arm is going to ask of the motors.
    far_end : optional
        What the drive is reached by instead of libusb or a CAN interface: a backend for pyusb, or what opens a
        `devices.arm.motors.can.port.Port`.

    Raises
    ------
    ConfigurationError
        On a wrong setting.
    """
    if build(OdriveSettings, settings, WHERE).protocol == CAN:
        return CanStage(settings, period=period, port=far_end, demands=demands)
    return OdriveStage(settings, period=period, backend=far_end, demands=demands)
