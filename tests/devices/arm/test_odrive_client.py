"""The maker's own client, unmodified, against the emulated drive; and our driver's bytes against its.

The client is `odrive` 0.5.1 of the Python package index (MIT). It is no dependency: where it can be imported, it is
used, for instance with ``pip download odrive==0.5.1 --no-deps`` unpacked, and `appdirs`, both on ``PYTHONPATH``.
"""

import struct
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import usb.backend.libusb1

from devices.arm.motors.native.drive import Drive, connect
from devices.arm.motors.native.line import Line
from devices.arm.motors.usb.finding import open_drive
from devices.emulators.odrive.axis import CLOSED_LOOP, IDLE
from devices.emulators.odrive.board import EmulatedOdrive
from devices.emulators.odrive.table import rows
from devices.emulators.odrive.usb_backend import EmulatedOdriveBackend
from tests.devices.arm.odrive_rig import IDS, states

PATIENCE = 20.0


def imported() -> Any:
    path = list(sys.path)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return pytest.importorskip(
                "fibre.discovery", reason="the maker's client (odrive 0.5.1 and appdirs) is not on the path"
            )
    finally:
        sys.path[:] = path


@pytest.fixture
def board(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[EmulatedOdrive]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    board = EmulatedOdrive()
    yield board
    board.unplug()  # which ends the client's threads


@pytest.fixture
def client(board: EmulatedOdrive, monkeypatch: pytest.MonkeyPatch) -> Any:
    """What the client makes of the drive that it has found."""
    discovery = imported()
    backend = EmulatedOdriveBackend(board)
    monkeypatch.setattr(usb.backend.libusb1, "get_backend", lambda *_, **__: backend)
    found = discovery.find_any("usb", timeout=PATIENCE)
    assert found is not None
    return found


def test_the_client_finds_the_drive_and_all_it_has(client: Any) -> None:
    assert client.serial_number == 0x2065339F304B
    assert (client.fw_version_major, client.fw_version_minor, client.fw_version_revision) == (0, 5, 6)
    for row in rows():
        found = client
        for name in row.path.split("."):
            found = found._remote_attributes[name]
        assert (found._trigger_id if row.kind == "function" else found._id) == row.number


def test_the_client_reads_writes_and_calls(client: Any, board: EmulatedOdrive) -> None:
    assert client.vbus_voltage == 24.0
    client.axis1.controller.input_torque = 0.25
    assert client.axis1.controller.input_torque == 0.25
    assert [client.test_function(3), client.test_function(4)] == [3, 7]
    client.axis0.encoder.set_linear_count(4096)
    assert board.inside.axes[0].values["encoder.config.cpr"] == client.axis0.encoder.config.cpr == 8192
    assert client.axis0.encoder.pos_estimate == pytest.approx(0.5, abs=1e-3)
    assert client.axis0.motor.is_calibrated is True


def test_the_client_drives_a_motor_and_sees_its_watchdog_expire(client: Any, board: EmulatedOdrive) -> None:
    axis = client.axis0
    axis.config.watchdog_timeout = 0.5
    axis.watchdog_feed()
    axis.config.enable_watchdog = True
    axis.requested_state = CLOSED_LOOP
    axis.controller.input_pos = 0.05
    assert axis.current_state == CLOSED_LOOP
    latest = time.monotonic() + PATIENCE
    while axis.current_state != IDLE and time.monotonic() < latest:
        time.sleep(0.01)
    assert axis.error == 0x800
    assert states(board) == [IDLE, IDLE]
    axis.config.enable_watchdog = False
    client.clear_errors()
    assert axis.error == 0


def told_by_client(client: Any, board: EmulatedOdrive) -> list[bytes]:
    channel = client.__channel__
    client.axis0.encoder.pos_estimate  # noqa: B018
    client.axis0.controller.input_torque = 0.05
    channel.remote_endpoint_operation(IDS["axis1.controller.input_vel"], struct.pack("<f", -1.5), False, 0)
    client.axis1.watchdog_feed()
    client.axis0.config.enable_watchdog = False
    client.axis0.encoder.set_linear_count(-1000)
    client.test_function(5)
    client.axis0.motor.error  # noqa: B018
    client.axis1.requested_state = CLOSED_LOOP
    client.axis1.current_state  # noqa: B018
    return list(board.inside.received)


def told_by_driver(drive: Drive, board: EmulatedOdrive) -> list[bytes]:
    velocity = drive.property("axis1.controller.input_vel")
    for _ in range(2):  # which the client does by itself
        drive.get("serial_number")
    drive.get("axis0.encoder.pos_estimate")
    drive.set("axis0.controller.input_torque", 0.05)
    drive.line.post(velocity.number, velocity.pack(-1.5))
    drive.call("axis1.watchdog_feed")
    drive.set("axis0.config.enable_watchdog", False)
    drive.call("axis0.encoder.set_linear_count", -1000)
    assert drive.call("test_function", 5) == 5
    drive.get("axis0.motor.error")
    drive.set("axis1.requested_state", CLOSED_LOOP)
    drive.get("axis1.current_state")
    return list(board.inside.received)


def test_the_driver_s_bytes_are_the_client_s(client: Any, board: EmulatedOdrive, tmp_path: Path) -> None:
    other = EmulatedOdrive()
    line = Line(open_drive(backend=EmulatedOdriveBackend(other)))
    try:
        driver_s = told_by_driver(connect(line, tmp_path / "none kept"), other)
    finally:
        line.close()
    client_s = told_by_client(client, board)
    assert len(client_s) > 150
    assert driver_s == client_s
