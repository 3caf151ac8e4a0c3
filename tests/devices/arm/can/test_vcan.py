"""The driver's own port on a virtual CAN interface of this machine, where it has one: real frames, real errors."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import threading
import time
from collections.abc import Iterator

import pytest

from devices.arm.motors import CanStage
from devices.arm.motors.can import codec
from devices.arm.motors.can.port import SocketPort, open_interface
from devices.emulators.odrive.axis import CLOSED_LOOP
from devices.emulators.odrive.board import EmulatedOdrive
from devices.emulators.odrive.serving.can_bus import CanBus
from haptics.errors import DeviceNotFoundError
from tests.devices.arm.odrive_rig import HOME, states

NAME = "vcan-haptics"


def lacking() -> str:
    """Return why there can be no virtual CAN here; empty if there can."""
    if not hasattr(socket, "AF_CAN"):
        return "this Python has no AF_CAN"
    try:
        socket.socket(socket.AF_CAN, socket.SOCK_RAW, socket.CAN_RAW).close()
    except OSError as error:
        return f"this kernel has no CAN ({error.strerror})"
    return "" if os.geteuid() == 0 else "only root makes interfaces"


def ip(*words: str) -> None:
    subprocess.run(["ip", "link", *words], check=True, capture_output=True)


@pytest.fixture
def interface() -> Iterator[str]:
    reason = lacking()
    if reason:
        pytest.skip(reason)
    try:
        ip("add", "dev", NAME, "type", "vcan")
        ip("set", NAME, "up")
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"no vcan can be made here ({error})")
    yield NAME
    with contextlib.suppress(subprocess.CalledProcessError):
        ip("delete", NAME)


@contextlib.contextmanager
def drive_on(name: str, board: EmulatedOdrive) -> Iterator[None]:
    """An emulated drive at the other end of a real interface."""
    bus, port, over = CanBus(board), open_interface(name), threading.Event()

    def serve() -> None:
        while not over.is_set():
            for raw in bus.poll():
                with contextlib.suppress(OSError):
                    port.send(raw)
            frame = port.receive(5e-4)
            while frame is not None:
                bus.send(frame)
                frame = port.receive(0.0)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        port.close()


def test_the_driver_drives_over_a_real_interface(interface: str) -> None:
    board = EmulatedOdrive()
    for axis in board.inside.axes:
        axis.values |= {"config.watchdog_timeout": 0.2, "config.enable_watchdog": True}
    with drive_on(interface, board), CanStage({"protocol": "can", "interface": interface, "watchdog": 0.2}) as stage:
        stage.home(HOME)
        stage.arm()
        for tick in range(300):
            stage.tick(HOME + 1e-3 * tick)
            time.sleep(1e-3)
        assert states(board) == [CLOSED_LOOP, CLOSED_LOOP]


def test_frames_arrive_whole_in_their_order_and_not_at_home(interface: str) -> None:
    near, far = open_interface(interface), open_interface(interface)
    frames = [codec.pack(codec.input_position(k % 64, 1e-3 * k)) for k in range(500)]
    for frame in frames:
        near.send(frame)
        assert far.receive(1.0) == frame
    assert near.receive(0.0) is None
    near.close()
    far.close()


def test_an_interface_that_goes_down_says_so(interface: str) -> None:
    port = open_interface(interface)
    ip("set", interface, "down")
    with pytest.raises(OSError, match="down"):
        for _ in range(100):
            port.send(codec.pack(codec.ask(0, codec.VERSION)))
            port.receive(0.01)
    port.close()


def test_an_interface_that_is_not_there_is_named() -> None:
    with pytest.raises(DeviceNotFoundError, match=r"no CAN interface nowhere9|this system has no CAN"):
        open_interface("nowhere9")


def test_a_port_gives_whole_frames_and_notices_its_end() -> None:
    near, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    port, frame = SocketPort(near), codec.pack(codec.input_position(5, 1.5))
    assert port.receive(0.0) is None
    begin = time.perf_counter()
    assert port.receive(0.02) is None
    assert time.perf_counter() - begin > 0.015
    port.send(frame)
    assert far.recv(100) == frame
    far.send(frame)
    far.send(frame)
    assert [port.receive(1.0), port.receive(0.0), port.receive(0.0)] == [frame, frame, None]
    far.close()
    with pytest.raises(OSError, match="closed"):
        port.receive(1.0)
    port.close()
