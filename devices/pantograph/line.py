"""Connection to one board on a serial line: exchanges, resynchronisation and zero torques."""

from __future__ import annotations

import time

from devices.pantograph import guardian, wire
from devices.pantograph.mechanisms import Mechanism
from devices.pantograph.wire import WireError

Pair = tuple[float, float]
"""Quantity of the left and the right arm."""

FASTEST = 12_000.0
"""Maximum plausible speed of a link [degree/s]: 10 m/s at 50 mm."""

SLACK = 2.0
"""Plausible jump of an angle at any time [degree]."""

TURN = 360.0
_TURNS = 4
"""Number of distinct turn offsets; more would cost precision of the angles."""


class Line:
    """Connection to a board.

    Replies have no number, so that a late reply could be mistaken for the answer to a later message, and all following
    replies likewise. After a failed exchange, the set-up message therefore places the links one whole turn further on:
    earlier replies are then off by one turn and are rejected.

    Parameters
    ----------
    port : int
        File descriptor of the open serial port.
    mechanism : Mechanism
        Mechanism on the board.

    Attributes
    ----------
    patience : float
        Timeout of a reply [s]; initially long, while the torques are zero.
    angles : (float, float)
        Last known angles of the inner links [degree]; initially the home pose.
    """

    def __init__(self, port: int, mechanism: Mechanism) -> None:
        self.patience = 1.0
        self.angles: Pair = mechanism.home
        self._port = port
        self._mechanism = mechanism
        self._asked = self._time = time.monotonic()
        self._turns = 0
        self.zero = wire.move_message(mechanism.ports, (0.0, 0.0))

    @property
    def setup(self) -> bytes:
        """Message that sets up the board with its links at `angles` plus the turn offset."""
        own = self._mechanism
        angles = [angle + TURN * self._turns for angle in self.angles]
        return wire.setup_message(own.ports, own.direction, angles, own.counts)

    def exchange(self, torques: Pair) -> Pair:
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

    def _send_request(self, torques: Pair) -> None:
        self._asked = time.monotonic()
        guardian.write_all(self._port, wire.move_message(self._mechanism.ports, torques))

    def _read_reply(self, patience: float) -> Pair:
        """Return the angles of the next reply if they are plausible."""
        reply = guardian.read_up_to(self._port, guardian.REPLY_LENGTH, patience)
        left, right = (angle - TURN * self._turns for angle in wire.parse_reply(self._mechanism.ports, reply))
        reach = min(FASTEST * (time.monotonic() - self._time) + SLACK, 0.5 * TURN)
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

    def come_to_rest(self) -> bool:
        """Set the torques to zero and reset the board; return True if it confirmed that.

        Raises `OSError` if the port is lost.
        """
        return guardian.come_to_rest(self._port, self.zero, self.setup)
