"""CAN of the emulated drive: CAN Simple (frames in, frames out, cyclic frames), and the bus with its faults.

Emulated properties of firmware 0.5.6:

- Each axis is a node. Every frame to it feeds its watchdog, including unknown frames.
- An expired watchdog is an error in every state; a clear command to either axis clears the errors of both.
- A position command contains a speed and a torque of 16 bits, in thousandths, and replaces both.
- Requests are remote frames, or frames without data.
- Positions and speeds are sent every ``encoder_rate_ms``, heartbeats every ``heartbeat_rate_ms``: 10 and 100 ms by
  default.

A Pro or S1 (0.6) uses the same frames for driving. It replies with its version, the format of its heartbeat and errors
differs, and a clear command only affects its own axis. Not emulated: trajectories, SDO, new addresses.

`CanBus` is the bus as seen through an interface of this computer; it has no thread: the caller sends frames and polls
for due frames. `CanServer` serves it to other processes.
"""

from __future__ import annotations

import errno
import math
import random
import socket
import struct
from collections import deque
from collections.abc import Iterable, Iterator

from devices.emulators.loop import Loop
from devices.emulators.odrive.axis import WATCHDOG_EXPIRED, Axis
from devices.emulators.odrive.board import EmulatedOdrive
from devices.emulators.odrive.firmware import Firmware, single
from devices.emulators.odrive.packets import CAN_FRAME, FRAME_SIZE, NUMBER
from devices.emulators.usb_bus import ROUNDING
from devices.emulators.wire_faults import longest_delay

ESTOP_REQUESTED = 0x4000
"""Error bit of an axis with firmware 0.5."""

NEW_WATCHDOG, NEW_ESTOP, NEW_DRIVER = 1 << 24, 1 << 25, 1 << 5
"""Error bits of a Pro or S1: watchdog, emergency stop, and all others (as a fault of the gate driver)."""

NEW_BAD_STATE = 1 << 3
"""Error bit of a Pro or S1 for a state that is not possible: an estimate is missing."""

_MAX_OVERDUE = 20
"""Maximum number of overdue cyclic frames that are sent later."""

_REMOTE, _ODD = 0x40000000, 0xA0000000
_PAIR = "<ff"

_HEARTBEAT, _ESTOP, _ERRORS, _STATE = 0x01, 0x02, 0x03, 0x07
_ESTIMATES, _POSITION, _SUPPLY, _CLEAR = 0x09, 0x0C, 0x17, 0x18
"""Commands and messages (`CanSimple`)."""

_COMMANDS: dict[int, tuple[str, tuple[str, ...]]] = {
    0x0B: ("<ii", ("controller.config.control_mode", "controller.config.input_mode")),
    _POSITION: ("<fhh", ("controller.input_pos", "controller.input_vel", "controller.input_torque")),
    0x0D: (_PAIR, ("controller.input_vel", "controller.input_torque")),
    0x0E: ("<f", ("controller.input_torque",)),
    0x0F: (_PAIR, ("controller.config.vel_limit", "motor.config.current_lim")),
    0x1A: ("<f", ("controller.config.pos_gain",)),
    0x1B: (_PAIR, ("controller.config.vel_gain", "controller.config.vel_integrator_gain")),
}
"""Commands that set properties: format of the data, and names of the properties."""

QUEUE = 10
"""Number of unacknowledged frames that an interface queues, by default in Linux."""

ERROR, UNHEARD, BUS_OFF, BUS_ERROR, RESTARTED = 0x20000000, 0x20, 0x40, 0x88, 0x100
"""Flag of an error frame, and its classes (linux/can/error.h)."""

MOST_CLIENTS = 64
"""Maximum number of clients."""

_PAUSE = 1e-3
"""Polling interval of a silent bus, and interval of its error frames [s]."""


class CanSimple:
    """CAN interface of the drive.

    Parameters
    ----------
    inside : Firmware
        The drive.
    nodes : (int, int)
        Nodes of both axes.
    version : (int, int, int)
        Firmware version: 0.5.x, or 0.6.x for a Pro or S1.
    estimates, heartbeats : float
        Periods of the cyclic messages [s]; 0 for none.

    Attributes
    ----------
    due : dict
        Time at which each cyclic message is due, by node and command [s].
    """

    def __init__(
        self,
        inside: Firmware,
        nodes: tuple[int, int] = (0, 1),
        version: tuple[int, int, int] = (0, 5, 6),
        estimates: float = 1e-3,
        heartbeats: float = 10e-3,
    ) -> None:
        self.nodes, self.version = nodes, version
        self._is_new = version >= (0, 6, 0)  # a Pro or S1
        self.estimates, self.heartbeats = estimates, heartbeats
        self._inside = inside
        self.due: dict[tuple[int, int], float] = {}

    # --- frames ------------------------------------------------------------------------------------------------------

    def handle_frame(self, raw: bytes) -> bytes | None:
        """Process a frame, (16,) bytes; return the reply to a request, else None."""
        identifier, length, data = CAN_FRAME.unpack(raw)
        node, command = (identifier & 0x7FF) >> 5, identifier & 0x1F
        if identifier & _ODD or node not in self.nodes:
            return None
        axis = self._inside.axes[self.nodes.index(node)]
        axis.feed()
        answer = self._answer(axis, command) if identifier & _REMOTE or not length else None
        if answer is not None:
            return _frame(node, command, answer)
        if identifier & _REMOTE:
            return None
        if command == _ESTOP:
            axis.fail(ESTOP_REQUESTED)
        elif command == _STATE:
            axis.request(struct.unpack_from("<I", data)[0])
        elif command == _CLEAR and self._is_new:
            axis.clear_errors()
        elif command == _CLEAR:
            self._inside.clear_errors()
        elif command in _COMMANDS:
            form, names = _COMMANDS[command]
            values = struct.unpack_from(form, data)
            if command == _POSITION:
                values = values[0], 0.001 * values[1], 0.001 * values[2]
            axis.values.update(dict(zip(names, values, strict=True)))
        return None

    def due_frames(self, now: float) -> Iterator[bytes]:
        """Yield the cyclic frames that are due at the time `now` [s]."""
        messages = (_HEARTBEAT, self.heartbeats, self._heartbeat), (_ESTIMATES, self.estimates, self._estimates)
        for node, axis in zip(self.nodes, self._inside.axes, strict=True):
            for command, period, data in messages:
                if not period:
                    continue
                first = max(self.due.setdefault((node, command), now), now - _MAX_OVERDUE * period)
                count = max(math.floor((now - first) / period + ROUNDING) + 1, 0)
                self.due[node, command] = first + count * period
                for _ in range(count):
                    yield _frame(node, command, data(axis))

    # --- replies, cyclic messages and commands ------------------------------------------------------------------------

    def _answer(self, axis: Axis, command: int) -> bytes | None:
        """Return the data of the reply to a request, None if there is no such request."""
        held = axis.values
        if command == _ESTIMATES:
            return self._estimates(axis)
        if command == _SUPPLY:
            return struct.pack(_PAIR, single(self._inside.values["vbus_voltage"]), 0.0)
        if self._is_new:
            if command == 0x00:
                return struct.pack("<8B", 2, 4, 4, 58, *self.version, 0)
            return struct.pack("<II", self._new_errors(axis), self._new_errors(axis)) if command == _ERRORS else None
        if command == _ERRORS:
            return struct.pack("<Q", int(held["motor.error"]))
        part = {0x04: "encoder", 0x1D: "controller"}.get(command)
        return struct.pack("<II", held.get(f"{part}.error", 0), 0) if part else None

    def _estimates(self, axis: Axis) -> bytes:
        held = axis.values
        return struct.pack(_PAIR, single(held["encoder.pos_estimate"]), single(held["encoder.vel_estimate"]))

    def _heartbeat(self, axis: Axis) -> bytes:
        held = axis.values
        state = held["current_state"]
        if self._is_new:
            return struct.pack("<IBBBB", self._new_errors(axis), state, 0, 1, 0)
        motor, encoder, controller = (bool(held.get(f"{part}.error", 0)) for part in ("motor", "encoder", "controller"))
        return struct.pack("<IBBBB", held["error"], state, motor, encoder, controller | 0x80)

    def _new_errors(self, axis: Axis) -> int:
        error = int(axis.values["error"])
        known = {WATCHDOG_EXPIRED: NEW_WATCHDOG, ESTOP_REQUESTED: NEW_ESTOP, 1: NEW_BAD_STATE}
        found = sum(bit for own, bit in known.items() if error & own)
        return found | (NEW_DRIVER if error & ~sum(known) else 0)


def _frame(node: int, command: int, data: bytes) -> bytes:
    return CAN_FRAME.pack(node << 5 | command, len(data), data)


# --- bus --------------------------------------------------------------------------------------------------------------


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
            faults = self._catch_up()
            if "write-error" in faults or self._unheard >= QUEUE:
                raise OSError(errno.ENOBUFS, "No buffer space available")
            if not self.board.plugged or faults & {"bus-off", "wrong-bit-rate"}:
                self._unheard += 1
                if not self.board.plugged:
                    self._send_error_frame(UNHEARD)
                return
            self._unheard = 0
            if "nak" not in faults and not self._loses_frame(faults):
                self._inward.append((self.board.now + longest_delay(faults), raw))
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
            faults = self._catch_up()
            if "read-error" in faults:
                raise OSError(errno.EIO, "Input/output error")
            if self.board.plugged and not faults & {"nak", "bus-off", "wrong-bit-rate"}:
                self._deliver()
                self._out(self.drive.due_frames(self.board.now))
            elif "wrong-bit-rate" in faults and self.board.plugged and self.board.now >= self._next_error:
                self._next_error = self.board.now + _PAUSE
                self._send_error_frame(BUS_ERROR)
            found = []
            while self._outward and self._outward[0][0] <= self.board.now:
                found.append(self._outward.popleft()[1])
            return found

    def pause(self) -> float:
        """Return the time until the next event [s]."""
        waiting = [queue[0][0] for queue in (self._inward, self._outward) if queue]
        quiet = not self.board.plugged or self._last & {"nak", "bus-off", "wrong-bit-rate", "read-error", "link-down"}
        due = [self.board.now + _PAUSE if quiet else min(self.drive.due.values(), default=0.0)]
        return max(min(waiting + due) - self.board.now, 0.0)

    def _out(self, frames: Iterable[bytes]) -> None:
        faults = self._last
        for raw in frames:
            if "lost-answer" in faults or self._loses_frame(faults):
                continue
            identifier, _, _ = CAN_FRAME.unpack(raw)
            whole = CAN_FRAME.pack(identifier, 0, b"") if "short" in faults else raw
            self._outward.append((self.board.now + longest_delay(faults), whole))

    # --- faults ------------------------------------------------------------------------------------------------------

    def _catch_up(self) -> frozenset[str]:
        """Advance the drive and return the active faults; raise an error if the interface is down."""
        faults = self.board.catch_up()
        if "bus-off" in faults - self._last:
            self._send_error_frame(BUS_OFF)
        if "bus-off" in self._last - faults:
            self._send_error_frame(RESTARTED)
        if not self.board.plugged:
            self._inward.clear()
            self.drive.due.clear()  # cyclic messages start again when the supply is switched on
        if self._last & {"bus-off", "wrong-bit-rate"} and not faults & {"bus-off", "wrong-bit-rate"}:
            self._unheard = 0
        self._last = faults
        if "link-down" in faults:
            raise OSError(errno.ENETDOWN, "Network is down")
        return faults

    def _loses_frame(self, faults: frozenset[str]) -> bool:
        """Return True if the next frame is lost: with the fault, half of them at random."""
        return "lost-frames" in faults and self._chance.random() < 0.5

    def _send_error_frame(self, kind: int) -> None:
        """Send an error frame to the host, unless the same one is the last in the queue."""
        raw = CAN_FRAME.pack(ERROR | kind, 8, b"")
        if not self._outward or self._outward[-1][1] != raw:
            self._outward.append((self.board.now, raw))


class CanServer:
    """Server of a bus for other processes, within an event loop: one packet, one frame.

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
        loop.accept(listener, self._begin)
        loop.sources.append((lambda _: bus.pause() if self._clients else math.inf, self._serve))

    def _begin(self, wire: socket.socket) -> bool:
        if len(self._clients) >= MOST_CLIENTS:
            return False
        wire.setblocking(False)
        self._clients.append(wire)
        self._loop.files[wire] = lambda: self._receive(wire)
        return True

    def _receive(self, wire: socket.socket) -> None:
        """Receive a frame; a packet of another size ends the connection."""
        try:
            raw = wire.recv(2 * FRAME_SIZE)
        except BlockingIOError:
            return
        except OSError:
            raw = b""
        if len(raw) != FRAME_SIZE:
            self._leave(wire)
            return
        try:
            self._bus.send(raw)
        except OSError as error:
            self._give(wire, NUMBER.pack(error.errno or errno.EIO))

    def _serve(self, _: float) -> None:
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
            del self._loop.files[wire]
            wire.close()
