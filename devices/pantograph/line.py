"""One board at the end of a serial line: in step with it, out of step, and at rest."""

from __future__ import annotations

import time

from devices.pantograph import guardian, wire
from devices.pantograph.mechanisms import Mechanism
from devices.pantograph.wire import WireError

Pair = tuple[float, float]
"""Something of the left and of the right arm."""

FASTEST = 12_000.0
"""No hand turns a link faster [degree/s]: 10 m/s at 50 mm."""

SLACK = 2.0
"""An angle may jump by this much at any time [degree]."""

TURN = 360.0
_TURNS = 4
"""So many turns are told apart; more would cost digits of the angles."""


class Line:
    """The conversation with a board.

    Replies have no number, so one that is late could be taken for the answer to a later message, and so could all that
    follow. After an exchange that failed the board is therefore told, when it is set up anew, that its links are a
    whole turn further on: what it said before that is then a turn off, and is no answer.

    Parameters
    ----------
    port : int
        File descriptor of the open serial port.
    mechanism : Mechanism
        What is on the board.

    Attributes
    ----------
    patience : float
        How long a reply may take [s]; generous to begin with, when there is no torque.
    angles : (float, float)
        Last known angles of the inner links [degree]; those of the home pose to begin with.
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
        """The message that sets the board up, its links being at `angles` and some turns."""
        own = self._mechanism
        angles = [angle + TURN * self._turns for angle in self.angles]
        return wire.setup_message(own.ports, own.direction, angles, own.counts)

    def exchange(self, torques: Pair) -> Pair:
        """Set the torques of the left and the right motor [N m]; return the angles [degree].

        Raises
        ------
        WireError
            If there is no sensible answer: the board may be out of step.
        OSError
            If the port is gone.
        """
        try:
            self._ask(torques)
            return self._answer(self.patience)
        except WireError:
            self._turns = (self._turns + 1) % _TURNS
            raise

    def _ask(self, torques: Pair) -> None:
        self._asked = time.monotonic()
        guardian.write_all(self._port, wire.move_message(self._mechanism.ports, torques))

    def _answer(self, patience: float) -> Pair:
        """Return the angles of the next reply, if they can be the present ones."""
        reply = guardian.read_up_to(self._port, guardian.REPLY_LENGTH, patience)
        left, right = (angle - TURN * self._turns for angle in wire.parse_reply(self._mechanism.ports, reply))
        reach = min(FASTEST * (time.monotonic() - self._time) + SLACK, 0.5 * TURN)
        if max(abs(left - self.angles[0]), abs(right - self.angles[1])) > reach:
            raise WireError(f"the board sent angles of {left:.6g} and {right:.6g} degrees, too far from the last ones")
        self.angles, self._time = (left, right), self._asked  # a reply may have lain here for long
        return self.angles

    def resynchronise(self) -> None:
        """Bring the board back in step, with no torque, and tell it that its links are where they were last seen.

        Raises
        ------
        WireError
            If it does not answer.
        OSError
            If the port is gone.
        """
        guardian.resynchronise(self._port, self.setup)
        self._ask((0.0, 0.0))
        deadline = time.monotonic() + self.patience
        while True:
            try:
                self._answer(max(deadline - time.monotonic(), 0.0))
                return
            except WireError:  # a late reply to an earlier message; the one that is waited for may be behind it
                if time.monotonic() >= deadline:
                    self._turns = (self._turns + 1) % _TURNS
                    raise

    def come_to_rest(self) -> bool:
        """Take the torques away and reset the board; tell whether it confirmed that. Raises `OSError` if it is gone."""
        return guardian.come_to_rest(self._port, self.zero, self.setup)
