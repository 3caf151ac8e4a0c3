"""Exchange over a CAN bus: a command frame to each axis, and the latest messages of both axes.

Including a frame from each axis with its position and speed, that is four frames per millisecond. The axes send
cyclically, so that a round does not wait but uses the latest messages.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable

from devices.arm.motors.can import codec
from devices.arm.motors.can.checks import words_of
from devices.arm.motors.can.codec import Frame
from devices.arm.motors.can.generations import Generation
from devices.arm.motors.can.line import CanLine
from devices.arm.motors.checks import AXES, CLOSED_LOOP, IDLE
from devices.arm.motors.rounds import Answer, Command
from devices.arm.motors.settings import OdriveSettings
from devices.common.bus import TransferError, Trouble

REPEAT = 2e-3
"""Time after which a command is repeated if no new one arrives [s], which feeds the watchdogs. It is longer than the
period of a tick at 1 kHz: otherwise, messages received during a late tick would resend the old command just before the
new one.
"""

_HEARTBEATS = 0.2
"""Maximum age of the heartbeat of a live axis [s]; other messages do not prove that it is alive."""


class CanRounds:
    """Rounds with two axes (`devices.arm.motors.rounds.Rounds`).

    Parameters
    ----------
    line : CanLine
        Communication with both axes, which are in closed loop.
    generation : Generation
        Generation of their firmware.
    settings : OdriveSettings
        Contains the maximum age of messages.
    """

    def __init__(self, line: CanLine, generation: Generation, settings: OdriveSettings) -> None:
        self._line, self._generation, self._timeout = line, generation, settings.reply_timeout
        self._sent: Command | None = None
        self._next = 0.0
        self._still = False
        self._stuck = math.inf

    def set_wake_callback(self, wake: Callable[[], object]) -> None:
        """See `devices.arm.motors.rounds.Rounds.set_wake_callback`."""
        self._line.set_wake_callback(wake)

    def exchange(self, command: Command, *, alive: bool) -> Answer:
        """Send the command as a CAN frame per axis and return the latest messages.

        See `devices.arm.motors.rounds.Rounds.exchange`. A stop is sent only once, so that it does not feed the
        watchdogs.
        """
        now = time.perf_counter()
        if alive and (command is not self._sent or now >= self._next):
            self._send(command, now)
            self._sent, self._next, self._still = command, now + REPEAT, False
        elif not alive and not self._still:
            self._send((*command[:2], 0.0, 0.0, 0.0, 0.0), now)
            self._still = True
        return self._latest_reply(self._timeout)

    def _send(self, command: Command, now: float) -> None:
        """Send a command; tolerate a full send queue for as long as a missing reply."""
        try:
            self._line.send(*_frames(self._line.nodes, command))
            self._stuck = math.inf
        except TransferError as error:
            self._stuck = min(self._stuck, now)
            if error.trouble is not Trouble.TIMEOUT or now - self._stuck > self._timeout:
                raise

    def poll(self, timeout: float) -> Answer:
        """Return positions and speeds of the motors and one of their states; wait for at most `timeout` [s]."""
        begin = time.perf_counter()
        nodes = self._line.nodes
        self._line.wait(lambda: all(self._line.latest(n, codec.ESTIMATES).time >= begin for n in nodes), timeout)
        return self._latest_reply(timeout)

    def invalidate(self) -> None:
        """See `devices.arm.motors.rounds.Rounds.invalidate`."""
        self._sent, self._still = None, False

    def trouble(self) -> str:
        """See `devices.arm.motors.rounds.Rounds.trouble`."""
        return words_of(self._line, self._generation)

    def disable_motors(self) -> None:
        """See `devices.arm.motors.rounds.Rounds.disable_motors`."""
        for node in self._line.nodes:
            with contextlib.suppress(TransferError):
                self._line.send(codec.input_speed(node, 0.0, 0.0), codec.requested_state(node, IDLE))

    def _latest_reply(self, oldest: float) -> Answer:
        """Return the latest messages; raise `TransferError` if they are older than `oldest` [s]."""
        self._line.require_whole()
        now = time.perf_counter()
        found, when = [], now
        name, value = "axis0.current_state", CLOSED_LOOP
        for axis in reversed(AXES):
            node = self._line.nodes[axis]
            said, beat = self._line.latest(node, codec.ESTIMATES), self._line.latest(node, codec.HEARTBEAT)
            numbers, state = codec.pair(said.data), codec.heartbeat(beat.data)
            if numbers is None or state is None or said.time < now - oldest or beat.time < now - _HEARTBEATS:
                raise self._line.silent(node)
            if state.error:
                name, value = f"axis{axis}.error", state.error
            elif state.state != CLOSED_LOOP:
                name, value = f"axis{axis}.current_state", state.state
            found.append(numbers)
            when = min(when, said.time)
        (two, two_speed), (one, one_speed) = found
        return Answer(when, (one, two, one_speed, two_speed), name, value)


def _frames(nodes: tuple[int, ...], command: Command) -> list[Frame]:
    """Return the frames of a command, with separate frames for speeds and torques that are too large."""
    frames = []
    for axis, node in enumerate(nodes):
        position, speed, torque = command[axis], command[2 + axis], command[4 + axis]
        frames.append(codec.input_position(node, position, speed, torque))
        if max(abs(speed), abs(torque)) > codec.MOST:
            frames.append(codec.input_speed(node, speed, torque))
    return frames
