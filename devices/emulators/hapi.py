"""Emulated Haply board (hAPI) on a pseudo-terminal, with a pantograph and a hand.

It is written only from the message layout and the geometry of the arms and shares no code with the driver, so that a
mistake there does not cancel out here. Like the real board it has no watchdog, keeps its torques through a reset,
waits a second for the rest of a message, and accepts any byte as the beginning of a message.

The handle is the mass of a virtual joystick in the plane. Its position determines the angles of the arms, by one
triangle each. Torques exert a force on it by virtual work, with numerical derivatives of the angles.

Byte layouts, number = little-endian float32::

    00 id                                                                            reset
    01 id  m d.. e d.. s pin.. p pin..  [angle counts]..                             set up (m, e: one bit per port)
    02 id  torque..                                            ->  id angle..        move

Where the behaviour of the real board is unknown (a move before the set-up, missing bytes after the timeout), the
emulation does nothing, and uses zeros.
"""

from __future__ import annotations

import contextlib
import math
import os
import select
import struct
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from devices.emulators.handle import SimulatedHandle
from devices.emulators.loop import BlockingDevice
from devices.emulators.sensor import PseudoTerminal
from devices.emulators.wire_faults import HAPI_FAULTS, WireFaults
from haptics.device import Vector

HELD = 110
"""Number of readings after the set-up for which the operator holds the arms at home, by default."""

CARRY = 0.25
"""Time in which the handle is moved to the start position of the hand, by default [s]."""

TORQUE_LIMIT = 0.123
"""Maximum torque [N m]."""

STEPS = 4095
"""Steps of the pulse width, 12 bit."""

BLOCKS = 1.0
"""Timeout for the rest of a message [s]."""

LONGEST_LOG = 200_000

_POLL = 2e-3
"""Polling interval while no host has opened the port [s]."""

_SUBSTEP = 1e-4
_CHUNK = 5
"""Substeps for which the force of constant torques is treated as constant."""

_NUDGE = 1e-6


@dataclass(frozen=True)
class Profile:
    """Geometry of the arms.

    Attributes
    ----------
    inner, outer, base : float
        Lengths of the links, distance of the motors [m].
    home : (float, float)
        Home pose of the left and the right arm [degree].
    counts : float
        Counts per revolution.
    arm_of_port : (int, int)
        Arm, 0 left or 1 right, at the first and the second port.
    middle, room : (float, float)
        Centre and half size of the rectangle in which the handle can move [m].
    """

    inner: float
    outer: float
    base: float
    home: tuple[float, float]
    counts: float
    arm_of_port: tuple[int, int]
    middle: tuple[float, float]
    room: tuple[float, float]


PROFILES = {
    "gen-1": Profile(0.05, 0.07, 0.02, (180.0, 0.0), 13824.0, (0, 1), (0.01, 0.06), (0.045, 0.036)),
    "2diy": Profile(0.07, 0.09, 0.0, (97.23, 82.77), 5219.328, (0, 1), (0.0, 0.08), (0.065, 0.05)),
    "2diy-38mm": Profile(0.07, 0.09, 0.038, (241.0, -61.0), 10752.0, (1, 0), (0.019, 0.0775), (0.06, 0.045)),
}


class Arms(SimulatedHandle):
    """Two arms, a handle, and its operator or hand.

    Initially the operator holds the arms at their home pose. After the first set-up of the board, the operator holds on
    for a number of readings, independent of the speed of the host, then moves the handle to the start position of the
    hand, and releases it.

    Parameters
    ----------
    profile : Profile
        Geometry of the arms.
    hand : mapping or None
        Table ``hand`` of a virtual joystick.
    held : int
        Number of readings after the set-up for which the operator holds the arms at home.
    carry : float
        Time in which the operator then moves the handle to the start position of the hand [s].
    settings
        ``seed`` of the hand's random numbers, ``mass`` [kg] and ``damping`` [N s/m] of the handle.
    """

    def __init__(
        self,
        profile: Profile,
        hand: Mapping[str, Any] | None,
        *,
        held: int = HELD,
        carry: float = CARRY,
        **settings: Any,
    ) -> None:
        self.profile = profile
        self._held, self._carry = held, carry
        width, height = profile.room
        super().__init__(_SUBSTEP, hand, half_width=width, half_height=height, substep=_SUBSTEP, **settings)
        self.go_home()

    def go_home(self) -> None:
        """Return the arms to the home pose, held by the operator."""
        self.restart()
        self._readings_left: int | None = None
        self._released: float | None = None

    def set_up(self) -> None:
        """Start counting readings at the first set-up."""
        if self._readings_left is None:
            self._readings_left = self._held

    def count_reading(self, now: float) -> None:
        """Count a reading of the angles at `now` [s]; after the last one the operator begins to move the handle."""
        if self._readings_left is not None and self._released is None:
            self._readings_left -= 1
            if self._readings_left <= 0:
                self._released = now

    def since_let_go(self, now: float) -> float:
        """Return the time since the operator released the handle at `now` [s]; negative while it is held."""
        return -math.inf if self._released is None else now - self._released - self._carry

    def advance(self, now: float, torques: tuple[float, float]) -> None:
        """Advance to the time `now` [s] with `torques` of the left and the right motor [N m]."""
        if self._released is None:
            return
        target = int(self.since_let_go(now) / _SUBSTEP)
        while self.clock.tick < target:
            self.clock.tick = min(self.clock.tick + _CHUNK, target)
            self.joystick.write(np.array(self.force(torques)))
            self.joystick.read()

    def force(self, torques: tuple[float, float]) -> tuple[float, float]:
        """Return the force on the handle [N] that does the same work as the `torques` [N m]."""
        left, right = torques
        force = []
        for dx, dy in ((_NUDGE, 0.0), (0.0, _NUDGE)):
            ahead, behind = self._reach(dx, dy), self._reach(-dx, -dy)
            slopes = [(one - other) / (2.0 * _NUDGE) for one, other in zip(ahead, behind, strict=True)]
            force.append(left * slopes[0] + right * slopes[1])
        return force[0], force[1]

    def angles(self, now: float) -> tuple[float, float]:
        """Return the true angles of the arms at `now` [s], continuous from the home pose on [degree]."""
        left, right = self.profile.home
        if self._released is None or now <= self._released:
            return left, right
        u = min((now - self._released) / self._carry, 1.0)
        part = u * u * (3.0 - 2.0 * u)
        angles = []
        for radians, home in zip(self._reach(), (left, right), strict=True):
            angle = math.degrees(radians)
            angle += 360.0 * round((home - angle) / 360.0)
            angles.append(home + part * (angle - home))
        return angles[0], angles[1]

    def _reach(self, dx: float = 0.0, dy: float = 0.0) -> tuple[float, float]:
        """Return the angles [rad] of the arms, elbows out, for the tip displaced by (dx, dy) [m]."""
        own = self.profile
        x, y = (
            place + middle + way for place, middle, way in zip(self.joystick.handle, own.middle, (dx, dy), strict=True)
        )
        angles = []
        for foot, bend in ((0.0, 1.0), (own.base, -1.0)):
            reach = math.hypot(x - foot, y)
            cosine = (own.inner**2 + reach**2 - own.outer**2) / (2.0 * own.inner * reach)
            angles.append(math.atan2(y, x - foot) + bend * math.acos(max(min(cosine, 1.0), -1.0)))
        return angles[0], angles[1]


# --- firmware ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Entry:
    """Log entry of a move: time [s], left and right torque [N m], handle relative to its centre [m]."""

    time: float
    torques: tuple[float, float]
    handle: tuple[float, float]


class Firmware:
    """Firmware of a board with two motors.

    Parameters
    ----------
    arms : Arms
        Arms connected to the board.

    Attributes
    ----------
    torques : (float, float)
        Present torques of the left and the right motor [N m].
    device : int or None
        The id that was set up.
    log : deque of Entry
        Latest moves.
    """

    def __init__(self, arms: Arms) -> None:
        self.arms = arms
        self.torques = (0.0, 0.0)
        self.device: int | None = None
        self.log: deque[Entry] = deque(maxlen=LONGEST_LOG)
        self._input = bytearray()
        self._waits_since: float | None = None
        self._encoders: list[tuple[float, float, int]] = []

    def receive(self, data: bytes, now: float) -> bytes:
        """Process the bytes received until `now` [s]; return the reply."""
        self.arms.advance(now, self.torques)
        if self._waits_since is not None and now - self._waits_since > BLOCKS:
            self._input += bytes(64)
            out = self._run(now)
            self._input.clear()
        else:
            out = b""
        self._input += data
        return out + self._run(now)

    def _run(self, now: float) -> bytes:
        """Execute the messages that are complete."""
        out = b""
        while self._input:
            length = self._length()
            if len(self._input) < length:
                if self._waits_since is None:
                    self._waits_since = now
                return out
            self._waits_since = None
            message, self._input = bytes(self._input[:length]), self._input[length:]
            if message[0] == 0:
                self.device = None
            elif message[0] == 1:  # set the origins of the encoders: the arms are now at the angles in the message
                self.device = message[1]
                motors = message[2].bit_count()
                ports = [port for port in range(2) if message[3 + motors] >> port & 1]
                numbers = struct.iter_unpack("<2f", message[len(message) - 8 * len(ports) :])
                self._encoders = [(*pair, self._counts(port, now)) for port, pair in zip(ports, numbers, strict=True)]
                self.arms.set_up()
            elif message[0] == 2 and len(message) == 10:
                by_port = []
                for torque in struct.unpack("<2f", message[2:]):
                    part = 0.0 if math.isnan(torque) else max(min(torque / TORQUE_LIMIT, 1.0), -1.0)
                    by_port.append(round(part * STEPS) / STEPS * TORQUE_LIMIT)
                order = self.arms.profile.arm_of_port
                self.torques = (by_port[order.index(0)], by_port[order.index(1)])
                x, y = self.arms.joystick.handle
                self.log.append(Entry(now, self.torques, (float(x), float(y))))
                angles = [
                    angle + (self._counts(port, now) - origin) * 360.0 / counts if counts else math.nan
                    for port, (angle, counts, origin) in enumerate(self._encoders)
                ]
                out += bytes((message[1],)) + struct.pack(f"<{len(angles)}f", *angles)
                self.arms.count_reading(now)
        return out

    def _length(self) -> int:
        """Return the length of the first message in the input, at least as far as it can be determined."""
        data = self._input
        if data[0] == 0:
            return min(2, len(data))  # the id is read without waiting
        if data[0] == 2:
            return 10 if len(data) < 2 or data[1] == self.device else 2
        if data[0] != 1:
            return 1
        position = 2
        encoders = 0
        for part in range(4):  # motors, encoders, sensors, pulse width pins
            if position >= len(data):
                return position + 1
            count = data[position].bit_count() if part < 2 else data[position]
            encoders = count if part == 1 else encoders
            position += 1 + count
        return position + 8 * encoders

    def _counts(self, port: int, now: float) -> int:
        own = self.arms.profile
        angle = self.arms.angles(now)[own.arm_of_port[port]]
        return math.floor(angle * own.counts / 360.0)


# --- board ------------------------------------------------------------------------------------------------------------


class HapiBoard(PseudoTerminal, BlockingDevice):
    """Emulated board at a pseudo-terminal.

    Parameters
    ----------
    mechanism : str
        A key of `PROFILES`.
    hand : mapping, optional
        Table ``hand`` of a virtual joystick.
    held, carry
        Behaviour of the operator, see `Arms`.
    seed : int
        Seed of the hand's random numbers.
    mass, damping : float
        Mass [kg] and damping [N s/m] of the handle.
    faults : iterable of str
        Communication faults, ``NAME@SECONDS+DURATION`` (`devices.emulators.wire_faults.HAPI_FAULTS`).

    Attributes
    ----------
    port : str
        Serial port for the driver.
    firmware : Firmware
        Firmware of the board with its torques and its log.
    faults : WireFaults
        The faults above, and faults that are switched manually.
    lose_request_byte, lose_reply_byte, shorten_reply : int, optional
        Number of the byte that is dropped from the next message to the board, or from the next reply; length to which
        the next reply is cut.
    reply_delays : list of float
        Delays of the next replies, last first [s].
    """

    def __init__(
        self,
        mechanism: str = "gen-1",
        hand: Mapping[str, Any] | None = None,
        *,
        held: int = HELD,
        carry: float = CARRY,
        seed: int = 0,
        mass: float = 0.1,
        damping: float = 0.5,
        faults: Iterable[str] = (),
    ) -> None:
        super().__init__()
        self.faults = WireFaults(HAPI_FAULTS, faults)
        arms = Arms(PROFILES[mechanism], hand, held=held, carry=carry, seed=seed, mass=mass, damping=damping)
        self.firmware = Firmware(arms)
        self._away = True
        self.lose_request_byte: int | None = None
        self.lose_reply_byte: int | None = None
        self.shorten_reply: int | None = None
        self.reply_delays: list[float] = []

    # --- information for observers -----------------------------------------------------------------------------------

    @property
    def handle(self) -> Vector:
        """True position of the handle relative to the centre of its range, (2,) [m]."""
        with self._lock:
            self.firmware.receive(b"", time.monotonic())
            return self.firmware.arms.joystick.handle

    @property
    def force(self) -> Vector:
        """Force of the motors on the handle, (2,) [N]."""
        with self._lock:
            self.firmware.receive(b"", time.monotonic())
            return np.array(self.firmware.arms.force(self.firmware.torques))

    def serve(self, until: int) -> None:
        """Serve hosts, one after the other, until the file descriptor `until` is readable."""
        poll = select.poll()
        poll.register(until, select.POLLIN | select.POLLHUP)
        poll.register(self._master, select.POLLIN)
        while self._plugged:
            events = dict(poll.poll(100))
            if until in events:
                return
            if events.get(self._master, 0) & select.POLLIN:
                self._away = False
                self._exchange()
            elif events:  # the host has closed the port: the arms return to their home pose, torques are unchanged
                if not self._away:
                    self._away = True
                    with self._lock:
                        self.firmware.arms.go_home()
                time.sleep(_POLL)

    def _exchange(self) -> None:
        with self._lock, contextlib.suppress(OSError):  # the host may have closed the port
            if not self._plugged:
                return
            now = time.monotonic()
            since = self.firmware.arms.since_let_go(now)
            faults = self.faults.at(since)
            if "unplug" in faults:
                self.unplug()
                return
            data = os.read(self._master, 4096)
            if self.lose_request_byte is not None:
                data, self.lose_request_byte = _without(data, self.lose_request_byte), None
            elif "lost-byte" in faults:
                data = _without(data, len(data) // 2)
            reply = self.firmware.receive(data, now)
            if reply:
                time.sleep(self.faults.delay(since))
                if self.reply_delays:
                    time.sleep(self.reply_delays.pop())
                if self.lose_reply_byte is not None:
                    reply, self.lose_reply_byte = _without(reply, self.lose_reply_byte), None
                elif "lost-reply-byte" in faults:
                    reply = _without(reply, len(reply) // 2)
                if self.shorten_reply is not None:
                    reply, self.shorten_reply = reply[: self.shorten_reply], None
                elif "short" in faults:
                    reply = reply[: len(reply) // 2]
                os.write(self._master, b"" if "dropout" in faults else reply)


def _without(data: bytes, index: int) -> bytes:
    return data[:index] + data[index + 1 :]


@contextlib.contextmanager
def emulator(table: Mapping[str, Any]) -> Iterator[tuple[str, Callable[[], None]]]:
    """Build a board with the arguments in `table` of `HapiBoard`; yield its port and the function that serves it."""
    board = HapiBoard(**table)
    yield board.port, lambda: board.serve(sys.stdin.fileno())
