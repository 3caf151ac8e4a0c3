"""CAN bus with an emulated drive, as seen through an interface of this computer, with its faults.

`CanBus` has no thread: the caller sends frames and polls for due frames. `CanServer` serves it to other processes.
"""

from __future__ import annotations

import errno
import random
import socket
import struct
from collections import deque
from collections.abc import Iterable

from devices.emulators.loop import Loop
from devices.emulators.odrive.board import EmulatedOdrive
from devices.emulators.odrive.can_simple import CanSimple
from devices.emulators.wire_faults import DELAYS

SIZE = 16
"""Size of a frame [byte]."""

QUEUE = 10
"""Number of unacknowledged frames that an interface queues, by default in Linux."""

ERROR, UNHEARD, BUS_OFF, BUS_ERROR, RESTARTED = 0x20000000, 0x20, 0x40, 0x88, 0x100
"""Flag of an error frame, and its classes (linux/can/error.h)."""

NUMBER = struct.Struct("<i")
"""System error number that an interface in another process sends instead of a frame."""

MOST = 64
"""Maximum number of clients."""

_FRAME = struct.Struct("=IB3x8s")
_HALT = 1e-3
"""Polling interval of a silent bus, and interval of its error frames [s]."""


class CanBus:
    """CAN bus with an emulated drive.

    Parameters
    ----------
    board : EmulatedOdrive
        The drive.
    drive : CanSimple
        CAN interface of the drive.
    """

    def __init__(self, board: EmulatedOdrive, drive: CanSimple | None = None) -> None:
        self.board = board
        self.drive = drive or CanSimple(board.inside)
        self._inward: deque[tuple[float, bytes]] = deque()
        self._outward: deque[tuple[float, bytes]] = deque()
        self._unheard = 0
        self._next_error = 0.0
        self._chance = random.Random(1)
        self._last: frozenset[str] = frozenset()

    # --- from the host -----------------------------------------------------------------------------------------------

    def send(self, raw: bytes) -> None:
        """Accept a frame from the host; raise `OSError` like an interface."""
        with self.board.lock:
            faults = self._look()
            self._require_up(faults)
            if "write-error" in faults or self._unheard >= QUEUE:
                raise OSError(errno.ENOBUFS, "No buffer space available")
            if not self.board.plugged or faults & {"bus-off", "wrong-bit-rate"}:
                self._unheard += 1
                if not self.board.plugged:
                    self._send_error_frame(UNHEARD)
                return
            self._unheard = 0
            if "nak" not in faults and not self._loses_frame(faults):
                self._inward.append((self.board.now + self._delay(faults), raw))
            self._deliver()

    def _deliver(self) -> None:
        """Pass the frames that have arrived to the drive."""
        while self._inward and self._inward[0][0] <= self.board.now:
            answer = self.drive.handle_frame(self._inward.popleft()[1])
            if answer is not None:
                self._out([answer])

    # --- to the host -------------------------------------------------------------------------------------------------

    def poll(self) -> list[bytes]:
        """Return the frames that have arrived for the host; raise `OSError` like an interface."""
        with self.board.lock:
            faults = self._look()
            self._require_up(faults)
            if "read-error" in faults:
                raise OSError(errno.EIO, "Input/output error")
            if self.board.plugged and not faults & {"nak", "bus-off", "wrong-bit-rate"}:
                self._deliver()
                self._out(self.drive.due_frames(self.board.now))
            elif "wrong-bit-rate" in faults and self.board.plugged and self.board.now >= self._next_error:
                self._next_error = self.board.now + _HALT
                self._send_error_frame(BUS_ERROR)
            found = []
            while self._outward and self._outward[0][0] <= self.board.now:
                found.append(self._outward.popleft()[1])
            return found

    def pause(self) -> float:
        """Return the time until the next event [s]."""
        waiting = [queue[0][0] for queue in (self._inward, self._outward) if queue]
        quiet = not self.board.plugged or self._last & {"nak", "bus-off", "wrong-bit-rate", "read-error", "link-down"}
        due = [self.board.now + _HALT if quiet else self.drive.next()]
        return max(min(waiting + due) - self.board.now, 0.0)

    def _out(self, frames: Iterable[bytes]) -> None:
        faults = self._last
        for raw in frames:
            if "lost-answer" in faults or self._loses_frame(faults):
                continue
            identifier, _, _ = _FRAME.unpack(raw)
            whole = _FRAME.pack(identifier, 0, b"") if "short" in faults else raw
            self._outward.append((self.board.now + self._delay(faults), whole))

    # --- faults ------------------------------------------------------------------------------------------------------

    def _look(self) -> frozenset[str]:
        faults = self.board.catch_up()
        if "bus-off" in faults - self._last:
            self._send_error_frame(BUS_OFF)
        if "bus-off" in self._last - faults:
            self._send_error_frame(RESTARTED)
        if not self.board.plugged:
            self._inward.clear()
            self.drive.restart()
        if self._last & {"bus-off", "wrong-bit-rate"} and not faults & {"bus-off", "wrong-bit-rate"}:
            self._unheard = 0
        self._last = faults
        return faults

    def _require_up(self, faults: frozenset[str]) -> None:
        if "link-down" in faults:
            raise OSError(errno.ENETDOWN, "Network is down")

    def _loses_frame(self, faults: frozenset[str]) -> bool:
        """Return True if the next frame is lost: with the fault, half of them at random."""
        return "lost-frames" in faults and self._chance.random() < 0.5

    def _delay(self, faults: frozenset[str]) -> float:
        return max((DELAYS.get(name, 0.0) for name in faults), default=0.0)

    def _send_error_frame(self, kind: int) -> None:
        """Send an error frame to the host, unless the same one is the last in the queue."""
        raw = _FRAME.pack(ERROR | kind, 8, b"")
        if not self._outward or self._outward[-1][1] != raw:
            self._outward.append((self.board.now, raw))


class CanServer:
    """Source (`devices.emulators.loop`) that serves a bus to other processes: one packet, one frame.

    Parameters
    ----------
    bus : CanBus
        The bus.
    loop : Loop
        The event loop.
    listener : socket.socket
        Listening socket for clients (AF_UNIX, SEQPACKET).
    """

    def __init__(self, bus: CanBus, loop: Loop, listener: socket.socket) -> None:
        self._bus, self._loop = bus, loop
        self._clients: list[socket.socket] = []
        loop.welcome(listener, self._begin)
        loop.sources.append(self)

    def _begin(self, wire: socket.socket) -> bool:
        if len(self._clients) >= MOST:
            return False
        wire.setblocking(False)
        self._clients.append(wire)
        self._loop.watch(wire, lambda: self._receive(wire))
        return True

    def _receive(self, wire: socket.socket) -> None:
        """Receive a frame; a packet of another size ends the connection."""
        try:
            raw = wire.recv(2 * SIZE)
        except BlockingIOError:
            return
        except OSError:
            raw = b""
        if len(raw) != SIZE:
            self._leave(wire)
            return
        try:
            self._bus.send(raw)
        except OSError as error:
            self._give(wire, NUMBER.pack(error.errno or errno.EIO))

    def pause(self, now: float) -> float:
        """Return the time until the next event [s]."""
        return self._bus.pause() if self._clients else float("inf")

    def serve(self, now: float) -> None:
        """Send all frames that have arrived to all clients."""
        if not self._clients:
            return
        try:
            packets = self._bus.poll()
        except OSError as error:
            packets = [NUMBER.pack(error.errno or errno.EIO)]
        for packet in packets:
            for wire in list(self._clients):
                self._give(wire, packet)

    def _give(self, wire: socket.socket, packet: bytes) -> None:
        try:
            wire.send(packet)
        except BlockingIOError:  # a client that does not read loses new frames, as with an interface
            return
        except OSError:
            self._leave(wire)

    def _leave(self, wire: socket.socket) -> None:
        if wire in self._clients:
            self._clients.remove(wire)
            self._loop.remove(wire)
            wire.close()
