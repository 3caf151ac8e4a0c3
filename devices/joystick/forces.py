"""What is to be sent of a force: the latest value only, changed magnitudes only, all effects kept alive.

Of the magnitudes those are sent whose count changed, the one that is farther off first; each is looked up at the
moment it is sent. What goes out is never older than it must be, and there is no queue that could fill up. Each effect
is started anew within ``keep_alive``, as long as commands keep coming; of a tick that has died, zero is sent.
"""

from __future__ import annotations

import math
import time
from collections.abc import Generator

from devices.common.latch import Latch
from devices.joystick.hid import usages as use
from devices.joystick.playbook import Playbook

_UNKNOWN = 1 << 40
"""Count of an effect that may or may not have got its last report: farther off than any."""


class Forces:
    """The latest force, and what the stick has of it.

    Parameters
    ----------
    playbook : Playbook
        The stick's reports.
    blocks : list of int
        Its effects, which play: two, or the one of a wheel.
    keep_alive : float
        An effect is started anew after this long; a command older than this counts as none [s].

    Attributes
    ----------
    levels : Latch
        The latest command: levels along both axes, -1 to 1, and when they were given [s, perf_counter].
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
        """Whether the stick has a force to play, or may have one."""
        return any(self._sent)

    def idle(self) -> float:
        """Return how long there is nothing to send if no command comes [s]."""
        if _UNKNOWN in self._sent:
            return 0.0
        now = time.perf_counter()
        if now - self.levels.read()[2] > self._keep_alive:
            return 0.5 * self._keep_alive
        return max(min(self._due) - now, 0.0)

    def reports(self) -> Generator[bytes, bool, None]:
        """Yield what changed, farthest off first, and what starts anew that is due; is sent whether it was taken."""
        wanted, _ = self._wanted()
        for part in sorted(range(len(self._sent)), key=lambda part: -self._error(part, wanted)):
            wanted, fresh = self._wanted()
            if wanted[part] != self._sent[part]:
                taken = yield self._report(part, wanted[part])
                self._sent[part] = wanted[part] if taken else _UNKNOWN
            if part < len(self._due) and fresh and time.perf_counter() >= self._due[part]:
                taken = yield self._starts[part]
                if taken:
                    self._put_off(part)

    def _wanted(self) -> tuple[tuple[int, int], bool]:
        """Return the counts to send, and whether anybody commands them."""
        level_x, level_y, stamp = self.levels.read()
        if time.perf_counter() - stamp > self._keep_alive:
            return self._counts(0.0, 0.0), False
        return self._counts(level_x, level_y), True

    def _counts(self, level_x: float, level_y: float) -> tuple[int, int]:
        """Return the counts that make these levels: the magnitudes of the effects."""
        return round(level_x * self._full_scale), round(level_y * self._full_scale)

    def _error(self, part: int, wanted: tuple[int, int]) -> float:
        """Return how far off a count is."""
        return abs(wanted[part] - self._sent[part])

    def _report(self, part: int, count: int) -> bytes:
        buffer = self._buffers[part]
        self._magnitude.put(buffer, count)
        return bytes(buffer)

    def _put_off(self, axis: int) -> None:
        """Have an effect started anew some time later, not together with the other one."""
        due, apart = time.perf_counter() + self._keep_alive, 0.25 * self._keep_alive
        close = any(abs(due - other) < apart for k, other in enumerate(self._due) if k != axis)
        self._due[axis] = due - apart if close else due


class TurnedForces(Forces):
    """The same for a stick that cannot add effects up: one effect, whose direction is streamed beside its magnitude.

    Two reports make one force, and between them it is neither the old nor the new one. So a force that turns back goes
    through zero by its magnitude, and the direction stays within a right angle of what it was: then neither is far off.

    Parameters
    ----------
    playbook : Playbook
        The stick's reports.
    block : int
        Its effect, which plays.
    keep_alive : float
        As of `Forces`.
    effect : bytes
        The report by which the effect was described last.
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
        """Whether the stick has a force to play, or may have one."""
        return bool(self._sent[0])

    def _counts(self, level_x: float, level_y: float) -> tuple[int, int]:
        """Return magnitude and direction: where the force comes from, or goes to with a negative magnitude."""
        magnitude = round(math.hypot(level_x, level_y) * self._full_scale)
        if not magnitude:
            return 0, self._kept
        turn = round(math.atan2(-level_x, level_y) / math.tau * self._turn)
        halves = round(2.0 * (turn - self._kept) / self._turn)  # half turns between it and the direction there is
        self._kept = (turn + (halves % 2) * round(0.5 * self._turn)) % self._turn
        return (-magnitude if halves % 2 else magnitude), self._kept

    def _error(self, part: int, wanted: tuple[int, int]) -> float:
        """Return how far off the force is by a count: a direction by the way its tip has to go."""
        error = super()._error(part, wanted)
        if part == 0 or self._sent[1] == _UNKNOWN:
            return error
        return math.tau * min(error, self._turn - error) / self._turn * abs(self._sent[0])

    def _report(self, part: int, count: int) -> bytes:
        if part == 0:
            return super()._report(part, count)
        self._angle.put(self._effect, self._angle.field.logical_min + count)
        return bytes(self._effect)
