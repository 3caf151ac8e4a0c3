"""Connection to a hAPI board: its serial port, messages, exchanges, resynchronisation and zero torques.

Messages are little-endian float32 numbers, angles in degrees, torques in N m:

========  ==============================================================================================  ==============
command   content                                                                                         reply
========  ==============================================================================================  ==============
0 reset   id                                                                                              none
1 set up  id, motor mask and directions, encoder mask and directions, number of sensors, of PWM pins,     none
          per encoder its present angle and its counts per revolution
2 move    id, a torque per motor                                                                          id, angles
========  ==============================================================================================  ==============

Motors and encoders are in the order of their ports.
"""

from __future__ import annotations

import math
import struct
import termios
import time
from collections.abc import Sequence
from pathlib import Path

from devices.common import bus
from devices.common.exchange import Exchange, ExchangeEnded, ExchangeSettings
from devices.pantograph import guardian
from devices.pantograph.guardian import REPLY_LENGTH
from devices.pantograph.mechanisms import IDENTITIES, Mechanism
from haptics.errors import HapticError

DEVICE_ID = 5
"""Number of the mechanism on the board; any number from 1 to 255 that is not a command."""

_FASTEST = 12_000.0  # maximum plausible speed of a link [degree/s]: 10 m/s at 50 mm

SLACK = 2.0
"""Plausible jump of an angle at any time [degree]."""

ATTEMPTS = 3
"""Maximum number of attempts to resynchronise the board."""

_SETUP, _MOVE = 1, 2
_TURN = 360.0
_TURNS = 4  # number of distinct turn offsets; more would cost precision of the angles


class WireError(HapticError):
    """Invalid data from the board."""


# --- serial port ------------------------------------------------------------------------------------------------------


def find_port(system: Path = bus.SYSTEM) -> str:
    """Return the device file of the only connected hAPI board; see `devices.common.bus.find_port`."""
    return bus.find_port(
        IDENTITIES,
        "hAPI board (Arduino Zero, M0 or Due, at its native USB port)",
        "device.port",
        system,
        otherwise="Or do without one: device.emulated=true.",
    )


def open_port(path: str) -> int:
    """Open the port, see `devices.common.bus.open_port`. 1200 baud would start the boot loader of an Arduino."""
    return bus.open_port(path, "device.port", termios.B57600)


# --- messages ---------------------------------------------------------------------------------------------------------


def setup_message(ports: Sequence[int], direction: int, angles: Sequence[float], counts: float) -> bytes:
    """Return the message that sets up one motor and one encoder per port.

    Parameters
    ----------
    ports : sequence of int
        Ports in use, from 1.
    direction : int
        Direction byte of all ports.
    angles : sequence of float
        Present angles of the links, in the order of `ports` [degree].
    counts : float
        Counts per revolution.
    """
    mask = sum(1 << port - 1 for port in ports)
    half = bytes((mask, *(direction for _ in ports)))
    encoders = b"".join(struct.pack("<ff", angle, counts) for _, angle in sorted(zip(ports, angles, strict=True)))
    return bytes((_SETUP, DEVICE_ID)) + half + half + bytes(2) + encoders


def move_message(ports: Sequence[int], torques: Sequence[float]) -> bytes:
    """Return the message that sets the torques [N m], in the order of `ports`, and requests the angles.

    The lowest byte of every number is zero, at a cost of 3e-5 of its value. If a byte is lost in transit, each number
    is shifted by one byte, and the zero byte becomes its exponent, so that the torque is negligible.
    """
    in_order = (torque for _, torque in sorted(zip(ports, torques, strict=True)))
    return bytes((_MOVE, DEVICE_ID)) + b"".join(b"\0" + struct.pack("<f", torque)[1:] for torque in in_order)


def parse_reply(ports: Sequence[int], data: bytes) -> tuple[float, ...]:
    """Return the angles in a reply, in the order of `ports` [degree].

    Raises
    ------
    WireError
        If it is not a reply to `move_message`.
    """
    if len(data) != REPLY_LENGTH or data[0] != DEVICE_ID:
        raise WireError(f"the board sent {data.hex(' ') or 'nothing'} in place of the {REPLY_LENGTH} bytes of a reply")
    by_port = dict(zip(sorted(ports), struct.unpack_from("<ff", data, 1), strict=True))
    angles = tuple(by_port[port] for port in ports)
    if not all(math.isfinite(angle) for angle in angles):
        raise WireError(f"the board sent angles that are no numbers: {data.hex(' ')}")
    return angles


# --- connection -------------------------------------------------------------------------------------------------------


class Board(Exchange):
    """Connection to a board, and the exchange of torques [N m] for angles [degree] of the left and the right arm.

    Replies have no number, so that a late reply could be mistaken for the answer to a later message, and all following
    replies likewise. After a failed exchange, the set-up message therefore places the links one whole turn further on:
    earlier replies are then off by one turn and are rejected.

    Parameters
    ----------
    port : int
        File descriptor of the open serial port.
    mechanism : Mechanism
        Mechanism on the board.
    settings : ExchangeSettings
        Settings of the exchange.
    most_resyncs : int
        Maximum number of resynchronisations.

    Attributes
    ----------
    patience : float
        Timeout of a reply [s]; initially long, while the torques are zero.
    angles : (float, float)
        Last known angles of the inner links [degree]; initially the home pose.
    resyncs : int
        Number of resynchronisations of the exchange.
    zero : bytes
        Message that sets the torques to zero.
    """

    noun = "board"
    remedy = (
        "its motors may still have their last torque: switch their supply off, then plug the board in and home it again"
    )
    sample_size, command_size = 2, 2

    def __init__(self, port: int, mechanism: Mechanism, settings: ExchangeSettings, most_resyncs: int) -> None:
        super().__init__(settings)
        self.patience, self.resyncs = 1.0, 0
        self.angles: tuple[float, ...] = mechanism.home
        self.zero = move_message(mechanism.ports, (0.0, 0.0))
        self._port, self._mechanism, self._most_resyncs = port, mechanism, most_resyncs
        self._asked = self._time = time.monotonic()
        self._turns = 0

    @property
    def setup(self) -> bytes:
        """Message that sets up the board with its links at `angles` plus the turn offset."""
        own = self._mechanism
        angles = [angle + _TURN * self._turns for angle in self.angles]
        return setup_message(own.ports, own.direction, angles, own.counts)

    def transfer(self, torques: tuple[float, ...]) -> tuple[float, ...]:
        """Set the torques of the left and the right motor [N m]; return the angles [degree].

        Raises
        ------
        WireError
            If no plausible answer arrives: the board may be out of step.
        OSError
            If the port is lost.
        """
        try:
            self._send_request(torques)
            return self._read_reply(self.patience)
        except WireError:
            self._turns = (self._turns + 1) % _TURNS
            raise

    def _send_request(self, torques: tuple[float, ...]) -> None:
        self._asked = time.monotonic()
        guardian.write_all(self._port, move_message(self._mechanism.ports, torques))

    def _read_reply(self, patience: float) -> tuple[float, ...]:
        """Return the angles of the next reply if they are plausible."""
        reply = guardian.read_up_to(self._port, REPLY_LENGTH, patience)
        left, right = (angle - _TURN * self._turns for angle in parse_reply(self._mechanism.ports, reply))
        reach = min(_FASTEST * (time.monotonic() - self._time) + SLACK, 0.5 * _TURN)
        if max(abs(left - self.angles[0]), abs(right - self.angles[1])) > reach:
            raise WireError(f"the board sent angles of {left:.6g} and {right:.6g} degrees, too far from the last ones")
        self.angles, self._time = (left, right), self._asked  # request time: a reply may have waited in the port
        return self.angles

    def resynchronise(self) -> None:
        """Resynchronise the board with zero torque, and send it the last known angles.

        Raises
        ------
        WireError
            If it does not answer.
        OSError
            If the port is lost.
        """
        guardian.resynchronise(self._port, self.setup)
        self._send_request((0.0, 0.0))
        deadline = time.monotonic() + self.patience
        while True:
            try:
                self._read_reply(max(deadline - time.monotonic(), 0.0))
                return
            except WireError:  # a late reply to an earlier message, which the expected reply may follow
                if time.monotonic() >= deadline:
                    self._turns = (self._turns + 1) % _TURNS
                    raise

    def start(self) -> None:
        """Publish the last angles as the first sample, and start the thread."""
        self.samples.publish(time.perf_counter(), *self.angles)
        super().start()

    def exchange(self, now: float, command: tuple[float, ...]) -> tuple[float, ...] | None:
        """Exchange torques for angles, or resynchronise the board, which sets the torques to zero."""
        try:
            return now, *self.transfer(command)
        except WireError as error:
            self.resyncs += 1
            for attempt in range(1, ATTEMPTS + 1):  # also after the last allowed failure
                self.check_guardian()
                try:
                    self.resynchronise()
                    break
                except WireError as failure:
                    if attempt == ATTEMPTS:
                        raise WireError(f"{failure}, and could not be resynchronised") from failure
            if self.resyncs > self._most_resyncs:
                raise ExchangeEnded(
                    f"{error}, for the {self.resyncs}. time; check its cable, home the arms and start again."
                ) from error
        return None

    def come_to_rest(self) -> bool:
        """Set the torques to zero and reset the board; return True if it confirmed that."""
        return guardian.come_to_rest(self._port, self.zero, self.setup)

    def fail_safe(self, error: Exception) -> None:
        """Set the torques to zero if the error was temporary; the guardian, or a board out of step, is left alone."""
        if not isinstance(error, HapticError):
            self.resynchronise()
