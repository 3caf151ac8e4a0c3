"""Firmware of the board: bytes in, bytes out, persistent torques.

Byte layouts, number = little-endian float32::

    00 id                                                                            reset
    01 id  m d.. e d.. s pin.. p pin..  [angle counts]..                             set up (m, e: one bit per port)
    02 id  torque..                                            ->  id angle..        move

Where the behaviour of the real board is unknown (a move before the set-up, missing bytes after the timeout), the
emulation does nothing, and uses zeros.
"""

from __future__ import annotations

import math
import struct
from collections import deque
from dataclasses import dataclass

from devices.emulators.hapi.arms import Arms

TORQUE_LIMIT = 0.123
"""Maximum torque [N m]."""

STEPS = 4095
"""Steps of the pulse width, 12 bit."""

BLOCKS = 1.0
"""Timeout for the rest of a message [s]."""

LONGEST_LOG = 200_000


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
            out += self._carry_out(message, now)
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

    def _carry_out(self, message: bytes, now: float) -> bytes:
        if message[0] == 0:
            self.device = None
        elif message[0] == 1:
            self._set_up(message, now)
        elif message[0] == 2 and len(message) == 10:
            return self._move(message, now)
        return b""

    def _set_up(self, message: bytes, now: float) -> None:
        """Set the encoder origins: the arms are now at the angles in the message."""
        self.device = message[1]
        motors = message[2].bit_count()
        ports = [port for port in range(2) if message[3 + motors] >> port & 1]
        numbers = struct.unpack(f"<{2 * len(ports)}f", message[len(message) - 8 * len(ports) :])
        self._encoders = [(numbers[2 * k], numbers[2 * k + 1], self._counts(port, now)) for k, port in enumerate(ports)]
        self.arms.release(now)

    def _counts(self, port: int, now: float) -> int:
        own = self.arms.profile
        angle = self.arms.angles(now)[own.arm_of_port[port]]
        return math.floor(angle * own.counts / 360.0)

    def _move(self, message: bytes, now: float) -> bytes:
        by_port = [_pulse_width(torque) for torque in struct.unpack("<2f", message[2:])]
        order = self.arms.profile.arm_of_port
        self.torques = (by_port[order.index(0)], by_port[order.index(1)])
        x, y = self.arms.joystick.handle
        self.log.append(Entry(now, self.torques, (float(x), float(y))))
        angles = [
            angle + (self._counts(port, now) - origin) * 360.0 / counts if counts else math.nan
            for port, (angle, counts, origin) in enumerate(self._encoders)
        ]
        return bytes((message[1],)) + struct.pack(f"<{len(angles)}f", *angles)


def _pulse_width(torque: float) -> float:
    """Return the torque of the motor for a commanded `torque` [N m]."""
    if math.isnan(torque):
        return 0.0
    part = max(min(torque / TORQUE_LIMIT, 1.0), -1.0)
    return round(part * STEPS) / STEPS * TORQUE_LIMIT
