"""What is to be sent of a force: the latest value only, changed magnitudes only, all effects kept alive.

Of the magnitudes those are sent whose count changed, the one that is farther off first; each is looked up at the
moment it is sent. What goes out is never older than it must be, and there is no queue that could fill up. Each effect
is started anew within ``keep_alive``, as long as commands keep coming; of a tick that has died, zero is sent.
"""

from __future__ import annotations

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
        for axis in sorted(range(len(self._sent)), key=lambda axis: -abs(wanted[axis] - self._sent[axis])):
            wanted, fresh = self._wanted()
            if wanted[axis] != self._sent[axis]:
                taken = yield self._report(axis, wanted[axis])
                self._sent[axis] = wanted[axis] if taken else _UNKNOWN
            if fresh and time.perf_counter() >= self._due[axis]:
                taken = yield self._starts[axis]
                if taken:
                    self._put_off(axis)

    def _wanted(self) -> tuple[tuple[int, int], bool]:
        """Return the counts to send, and whether anybody commands them."""
        level_x, level_y, stamp = self.levels.read()
        if time.perf_counter() - stamp > self._keep_alive:
            return (0, 0), False
        return (round(level_x * self._full_scale), round(level_y * self._full_scale)), True

    def _report(self, axis: int, count: int) -> bytes:
        buffer = self._buffers[axis]
        self._magnitude.put(buffer, count)
        return bytes(buffer)

    def _put_off(self, axis: int) -> None:
        """Have an effect started anew some time later, not together with the other one."""
        due, apart = time.perf_counter() + self._keep_alive, 0.25 * self._keep_alive
        close = any(abs(due - other) < apart for k, other in enumerate(self._due) if k != axis)
        self._due[axis] = due - apart if close else due
