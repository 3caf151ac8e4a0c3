"""Selection of the reports that transmit a force.

Only magnitudes whose count changed are sent, the one with the larger error first. Each value is read at the moment of
sending, so that no queue builds up and the output is as recent as possible. Each effect is restarted within
``keep_alive`` as long as commands arrive. If the tick has stopped, zero is sent.
"""

from __future__ import annotations

import math
import time
from collections.abc import Generator

from devices.common.latch import Latch
from devices.joystick.hid import usages as use
from devices.joystick.playbook import Playbook

_UNKNOWN = 1 << 40
"""Count of an effect whose last report may or may not have arrived; counts as the largest error."""


class Forces:
    """Latest commanded force, and the part of it that the stick has received.

    Parameters
    ----------
    playbook : Playbook
        Output reports of the stick.
    blocks : list of int
        Blocks of the running effects: two, or one for a wheel.
    keep_alive : float
        Interval of the restarts of an effect, and age at which a command expires [s].

    Attributes
    ----------
    levels : Latch
        Latest command: levels along both axes, -1 to 1, and its time [s, perf_counter].
    """

    def __init__(self, playbook: Playbook, blocks: list[int], keep_alive: float) -> None:
        self._magnitude = playbook.magnitude
        self._full_scale = playbook.full_scale
        self._buffers = [bytearray(playbook.constant(block)) for block in blocks]
        self._starts = [playbook.operation(block, use.START) for block in blocks]
        self._keep_alive = keep_alive
        self.levels = Latch(3)
        self._sent = [0] * len(blocks)
        now = time.perf_counter()
        self._due = [now + axis * 0.5 * keep_alive for axis in range(len(blocks))]

    @property
    def on(self) -> bool:
        """Whether the stick has, or may have, a nonzero force to play."""
        return any(self._sent)

    def idle(self) -> float:
        """Return the time until the next report is due if no new command arrives [s]."""
        if _UNKNOWN in self._sent:
            return 0.0
        now = time.perf_counter()
        if now - self.levels.read()[2] > self._keep_alive:
            return 0.5 * self._keep_alive
        return max(min(self._due) - now, 0.0)

    def reports(self) -> Generator[bytes, bool, None]:
        """Yield changed magnitudes, largest error first, and restarts that are due.

        The caller sends back whether the device accepted the report.
        """
        wanted, _ = self._target_counts()
        for part in sorted(range(len(self._sent)), key=lambda part: -self._error(part, wanted)):
            wanted, fresh = self._target_counts()
            if wanted[part] != self._sent[part]:
                taken = yield self._report(part, wanted[part])
                self._sent[part] = wanted[part] if taken else _UNKNOWN
            if part < len(self._due) and fresh and time.perf_counter() >= self._due[part]:
                taken = yield self._starts[part]
                if taken:
                    self._put_off(part)

    def _target_counts(self) -> tuple[tuple[int, int], bool]:
        """Return the counts to send, and whether the command that they come from is still valid."""
        level_x, level_y, stamp = self.levels.read()
        if time.perf_counter() - stamp > self._keep_alive:
            return self._counts(0.0, 0.0), False
        return self._counts(level_x, level_y), True

    def _counts(self, level_x: float, level_y: float) -> tuple[int, int]:
        """Return the magnitudes of the effects [counts] for the given levels."""
        return round(level_x * self._full_scale), round(level_y * self._full_scale)

    def _error(self, part: int, wanted: tuple[int, int]) -> float:
        """Return the difference between the wanted and the sent count."""
        return abs(wanted[part] - self._sent[part])

    def _report(self, part: int, count: int) -> bytes:
        buffer = self._buffers[part]
        self._magnitude.put(buffer, count)
        return bytes(buffer)

    def _put_off(self, axis: int) -> None:
        """Schedule the next restart of an effect, apart from the restart of the other effect."""
        due, apart = time.perf_counter() + self._keep_alive, 0.25 * self._keep_alive
        close = any(abs(due - other) < apart for k, other in enumerate(self._due) if k != axis)
        self._due[axis] = due - apart if close else due


class TurnedForces(Forces):
    """Force output for a stick that cannot add effects: one effect with streamed direction and magnitude.

    A force takes two reports, and between them the stick plays a mixture of the old and the new force. To keep the
    error small, a reversed force passes through zero by its magnitude, and the direction stays within a right angle of
    the previous one.

    Parameters
    ----------
    playbook : Playbook
        Output reports of the stick.
    block : int
        Block of the running effect.
    keep_alive : float
        As in `Forces`.
    effect : bytes
        Report that last described the effect.
    """

    def __init__(self, playbook: Playbook, block: int, keep_alive: float, effect: bytes) -> None:
        super().__init__(playbook, [block], keep_alive)
        self._angle = playbook.angle
        self._turn = self._angle.field.logical_max - self._angle.field.logical_min
        self._effect = bytearray(effect)
        self._kept = self._angle.get(effect) - self._angle.field.logical_min
        self._sent = [0, self._kept]

    @property
    def on(self) -> bool:
        """Whether the stick has, or may have, a nonzero force to play."""
        return bool(self._sent[0])

    def _counts(self, level_x: float, level_y: float) -> tuple[int, int]:
        """Return magnitude and direction [counts].

        The direction is the one that the force comes from, or points to if the magnitude is negative.
        """
        magnitude = round(math.hypot(level_x, level_y) * self._full_scale)
        if not magnitude:
            return 0, self._kept
        turn = round(math.atan2(-level_x, level_y) / math.tau * self._turn)
        halves = round(2.0 * (turn - self._kept) / self._turn)  # half turns from the present direction
        self._kept = (turn + (halves % 2) * round(0.5 * self._turn)) % self._turn
        return (-magnitude if halves % 2 else magnitude), self._kept

    def _error(self, part: int, wanted: tuple[int, int]) -> float:
        """Return the force error of a count [counts of magnitude]; for a direction, the arc length at the tip."""
        error = super()._error(part, wanted)
        if part == 0 or self._sent[1] == _UNKNOWN:
            return error
        return math.tau * min(error, self._turn - error) / self._turn * abs(self._sent[0])

    def _report(self, part: int, count: int) -> bytes:
        if part == 0:
            return super()._report(part, count)
        self._angle.put(self._effect, self._angle.field.logical_min + count)
        return bytes(self._effect)
