"""Emulated Touch devices behind an emulated ``libHD``; see `devices.emulators.native`."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

from devices.emulators.native.far_end import Body, Maker, devices_of
from devices.emulators.wire_faults import TOUCH_FAULTS

MAKER = Maker(source="openhaptics.c", file="libHD.so.3.5", faults=TOUCH_FAULTS)
"""The library."""

MOST_FORCE = 3.3
"""Largest force of the motors [N]."""


def emulator(table: dict[str, Any]) -> contextlib.AbstractContextManager[tuple[str, Callable[[], None]]]:
    """Build devices; see `devices.emulators.child`.

    The table has ``devices``, a list of tables with the fields of `devices.emulators.native.far_end.Body`, and
    ``faults``.
    """
    bodies = [Body(**{"most_force": MOST_FORCE, **body}) for body in table["devices"]]
    return devices_of(MAKER, bodies, table["faults"])
