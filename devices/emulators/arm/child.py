"""Emulated arm in a separate process (`devices.emulators.child`): drive, force sensor, and the arm.

After its standard input has ended it continues while a motor is armed, like the drive alone
(`devices.emulators.odrive.child`).
"""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from devices.emulators import child
from devices.emulators.odrive.child import LINGER, serve
from haptics.errors import HapticError


@contextlib.contextmanager
def spawn(table: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Run an emulated arm; yield the address of its drive and the settings that locate its sensor.

    Parameters
    ----------
    table : mapping
        ``arm`` (`devices.arm.body.ArmBody`), ``ratios``, ``half_width``, ``half_height``, ``hand`` and ``seed`` as for
        `devices.emulators.arm.plant.ArmPlant`; ``fastest``, the required speed of its motors [turn/s]; ``watchdog``,
        the timeout of its enabled watchdogs [s], or 0; ``sensor``, the driver's settings of its sensor, and
        ``mounting``, its true orientation on the flange; ``faults`` (`devices.emulators.arm.faults`); ``log``, a file
        for the final state of the motors.

    Raises
    ------
    ConfigurationError, DeviceOpenError
        As `devices.emulators.child.spawn` does.
    """
    with child.spawn(__name__, table, "arm", LINGER + child.FAREWELL) as words:
        address, _, sensor = words.partition(" ")
        yield address, json.loads(sensor)


def _build(table: dict[str, Any]) -> tuple[Any, Any, dict[str, Any]]:
    """Return the bus with the drive, the sensor, and the settings that locate the sensor."""
    from devices.arm.body import ArmBody
    from devices.common.settings import Workspace
    from devices.emulators.arm.board import ArmBoard
    from devices.emulators.arm.faults import MOTORS, SENSOR, of_part, sensor_faults
    from devices.emulators.arm.plant import ArmPlant
    from devices.emulators.arm.sensors import make_sensor
    from devices.emulators.odrive.usb_backend import EmulatedOdriveBackend
    from devices.emulators.wire_faults import WireFaults
    from devices.virtual.wrench import WrenchSettings
    from haptics.settings import build

    body = build(ArmBody, table["arm"], "device.arm")
    upper = table["half_width"], table["half_height"]
    workspace = Workspace((-upper[0], -upper[1]), upper)
    mounting = WrenchSettings(**table["mounting"])
    plant = ArmPlant(body, table["ratios"], workspace, table["hand"], table["seed"], mounting)
    sensor = table["sensor"]
    faults = WireFaults(sensor_faults(sensor["name"]), of_part(SENSOR, table["faults"]))
    asked = {"fastest": table["fastest"], "watchdog": table["watchdog"]}
    board = ArmBoard(plant, body, of_part(MOTORS, table["faults"]), faults, **asked)
    box, found = make_sensor(sensor["name"], sensor, board.wrench, board.sensor_faults)
    return EmulatedOdriveBackend(board), box, found


def main(table: dict[str, Any]) -> int:
    """Build an arm, print its address or the error in `table`, and serve until standard input ends."""
    priority = child.settle_in()
    try:
        backend, sensor, found = _build(table)
    except HapticError as error:
        return child.give_up(error)
    serve(backend, table["log"], priority, json.dumps(found), sensor)
    return 0


if __name__ == "__main__":
    sys.exit(main(json.loads(sys.argv[1])))
