"""What is to be sent of a force: the latest value only, changed magnitudes only, both effects kept alive.

Of the two magnitudes those are sent whose count changed, the one that is farther off first; each is looked up at the
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
        Its two effects, which play.
    keep_alive : float
        An effect is started anew after this long; a command older than this counts as none [s].

    Attributes
    ----------
    levels : Latch
        The latest command: levels of the two effects, -1 to 1, and when they were given [s, perf_counter].
    """

    def __init__(self, playbook: Playbook, blocks: list[int], keep_alive: float) -> None:
        self._magnitude = playbook.magnitude
        self._full_scale = playbook.full_scale
        self._buffers = [bytearray(playbook.constant(block)) for block in blocks]
        self._starts = [playbook.operation(block, use.START) for block in blocks]
        self._keep_alive = keep_alive
        self.levels = Latch(3)
        self._sent = [0, 0]
        now = time.perf_counter()
        self._due = [now, now + 0.5 * keep_alive]

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
        first = int(abs(wanted[1] - self._sent[1]) > abs(wanted[0] - self._sent[0]))
        for axis in (first, 1 - first):
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
        self._due[axis] = due - apart if abs(due - self._due[1 - axis]) < apart else due
