"""The arm on a CAN bus whose far end is in a process of its own, as in a session; and strange clients of that bus."""

from __future__ import annotations

import contextlib
import errno
import socket
import time
from collections.abc import Iterator
from typing import Any

import pytest

from devices import create_device
from devices.arm.motors.can import codec
from devices.emulated.arm import EmulatedArm
from devices.emulators.odrive.axis import CLOSED_LOOP, IDLE
from devices.emulators.odrive.child import can_of, spawn
from devices.emulators.odrive.remote import RemoteBackend
from devices.emulators.odrive.serving.can_port import RemotePort
from haptics.errors import DeviceFault

PATIENCE = 30.0
STILL = {"name": "scripted-force", "script": [[0.0, 0.0, 0.0]]}


@contextlib.contextmanager
def opened(**own: Any) -> Iterator[EmulatedArm]:
    patient = {"protocol": "can", "watchdog": 1.0, "reply_timeout": 0.4}
    table = {"emulated": True, "hand": STILL, "motors": patient, "sensor": {"patience": 0.8}, **own}
    arm = create_device("arm", table)
    assert isinstance(arm, EmulatedArm)
    try:
        arm.open()
        yield arm
    finally:
        with contextlib.suppress(DeviceFault):
            arm.close()


def go_on(arm: EmulatedArm, duration: float) -> None:
    home, latest = arm.read().position.copy(), time.monotonic() + duration
    while time.monotonic() < latest:
        arm.read()
        arm.write(home)
        time.sleep(1e-3)


def test_an_arm_is_driven_over_the_bus_of_another_process() -> None:
    with opened() as arm:
        assert arm.facts["motors"]["interface"] == "can0"
        go_on(arm, 0.5)
        assert arm._emulator is not None
        assert arm._emulator.observe()["states"] == [CLOSED_LOOP, CLOSED_LOOP]
        arm.close()


def test_a_fault_on_demand_reaches_the_driver() -> None:
    with opened(wire_faults=["motors.link-down@0.1"]) as arm:
        with pytest.raises(DeviceFault, match="the CAN interface can0 is down"):
            go_on(arm, PATIENCE)
        emulator = arm._emulator
        assert emulator is not None
        latest = time.monotonic() + PATIENCE
        while emulator.observe()["states"] != [IDLE, IDLE]:
            assert time.monotonic() < latest
            time.sleep(0.05)


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with spawn({}) as found:
        yield found


def raw(address: str) -> socket.socket:
    wire = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    wire.settimeout(PATIENCE)
    wire.connect(can_of(address))
    return wire


def heard(port: RemotePort, command: int) -> codec.Frame:
    latest = time.monotonic() + PATIENCE
    while time.monotonic() < latest:
        frame = codec.unpack(port.receive(1.0) or b"")
        if frame is not None and frame.command == command:
            return frame
    raise AssertionError("nothing was heard")


def test_what_is_no_frame_ends_the_connection_and_nobody_else_s(address: str) -> None:
    port = RemotePort(can_of(address))
    for rubbish in (b"x", bytes(17), bytes(500)):
        with raw(address) as wire:
            wire.send(rubbish)
            with contextlib.suppress(ConnectionResetError):
                while wire.recv(64):
                    pass
    assert heard(port, codec.HEARTBEAT).node in (0, 1)
    port.close()


def test_a_client_that_reads_nothing_keeps_no_other_waiting(address: str) -> None:
    with raw(address):
        port = RemotePort(can_of(address))
        begin = time.monotonic()
        for _ in range(600):  # more than a socket holds
            heard(port, codec.ESTIMATES)
        assert time.monotonic() - begin < PATIENCE
        port.close()


def test_the_number_of_an_error_comes_out_as_that_error(address: str) -> None:
    far, port = RemoteBackend(address), RemotePort(can_of(address))
    far.fault("link-down")
    try:
        with pytest.raises(OSError, match="down") as caught:
            while True:
                port.receive(1.0)
        assert caught.value.errno == errno.ENETDOWN
    finally:
        far.clear()
        port.close()
