"""Emulated drive in a separate process: its USB bus and its CAN bus, within an event loop.

After its standard input has ended the process continues while a motor is armed, at most a second and a half, and logs
the final state of both motors. This allows tests of the watchdogs after the driver has died.
"""

from __future__ import annotations

import contextlib
import socket
import tempfile
from collections.abc import Callable, Iterator
from typing import Any

from devices.emulators.loop import Loop
from devices.emulators.odrive import packets
from devices.emulators.odrive.board import EmulatedOdrive, EmulatedOdriveBackend
from devices.emulators.odrive.can import CanBus, CanServer
from devices.emulators.usb_server import BusServer


def observe(backend: EmulatedOdriveBackend) -> dict[str, Any]:
    """Return states, errors, torques [N m], angles [turn], speeds [turn/s] and time of disarming."""
    board = backend.units[0]
    with board.lock:
        board.catch_up()
        axes = board.inside.axes
        return {
            "states": [axis.values["current_state"] for axis in axes],
            "errors": [axis.values["error"] for axis in axes],
            "torques": [axis.torque for axis in axes],
            "angles": board.plant.angles.tolist(),
            "speeds": board.plant.speeds.tolist(),
            "loose_at": board.loose_at,
        }


@contextlib.contextmanager
def serving(backend: EmulatedOdriveBackend, log: str = "") -> Iterator[tuple[str, Loop, Callable[[], None]]]:
    """Open the sockets of a drive; yield their address, the event loop, and the function that serves the drive.

    That function returns when standard input has ended and the motors are disarmed.

    Parameters
    ----------
    backend : EmulatedOdriveBackend
        The bus with the drive.
    log : str
        File for the final state of the motors; empty for none.
    """
    loop, board = Loop(), backend.units[0]
    with contextlib.ExitStack() as ends:
        address = f"{ends.enter_context(tempfile.TemporaryDirectory())}/drive"
        usb_socket, can_socket = (
            ends.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)) for _ in range(2)
        )
        for listener, path in ((usb_socket, address), (can_socket, packets.can_of(address))):
            listener.bind(path)
            listener.listen()
        server = BusServer(backend, loop, usb_socket, lambda: observe(backend))
        CanServer(CanBus(board), loop, can_socket)
        axes = board.inside.axes
        yield address, loop, lambda: server.run(lambda: any(axis.driven or axis.torque for axis in axes), log)


@contextlib.contextmanager
def emulator(table: dict[str, Any]) -> Iterator[tuple[str, Callable[[], None]]]:
    """Build a drive from the table of `devices.emulators.odrive.remote.spawn`; yield its address and its server."""
    log, latency = table.pop("log", ""), table.pop("latency", 0.0)
    backend = EmulatedOdriveBackend(EmulatedOdrive(**table), latency=latency)
    with serving(backend, log) as (address, _, serve):
        yield address, serve
