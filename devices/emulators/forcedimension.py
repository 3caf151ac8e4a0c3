"""Emulated Force Dimension devices behind an emulated ``libdrd``; see `devices.emulators.native`."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

from devices.emulators.native.far_end import Body, Maker, devices_of
from devices.emulators.wire_faults import FORCE_DIMENSION_FAULTS

_BUTTON, _VELOCITY, _WATCHDOG, _SOFTWARE, _USB, _DEAD_MAN = range(1, 7)

MAKER = Maker(
    source="forcedimension.c",
    file="libdrd.so.3",
    faults=FORCE_DIMENSION_FAULTS,
    causes={
        "off-button": _BUTTON,
        "off-velocity": _VELOCITY,
        "off-watchdog": _WATCHDOG,
        "off-software": _SOFTWARE,
        "off-usb": _USB,
        "off-dead-man": _DEAD_MAN,
    },
    watchdog_cause=_WATCHDOG,
    speed_cause=_VELOCITY,
)
"""The library, and the numbers of its causes of a switch-off."""

WEIGHT = (0.0, 0.0, -0.8)
"""Weight of the moving parts along the device's axes [N]: x towards the person, y right, z up."""


def emulator(table: dict[str, Any]) -> contextlib.AbstractContextManager[tuple[str, Callable[[], None]]]:
    """Build devices; see `devices.emulators.child`.

    The table has ``devices``, a list of tables with the fields of `devices.emulators.native.far_end.Body`, and
    ``faults``.
    """
    bodies = [Body(**{"weight": WEIGHT, **body}) for body in table["devices"]]
    return devices_of(MAKER, bodies, table["faults"])
