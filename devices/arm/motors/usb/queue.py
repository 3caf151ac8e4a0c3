"""Interface of a queue: two endpoints of a device with many transfers under way at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

AHEAD = 8
"""So many transfers in are under way at any time: more than a round has answers."""


class NoQueue(Exception):
    """There is no queue; says why not."""


class Done(NamedTuple):
    """A transfer that has come back: one in with its data, or one that failed.

    Whether it went out, the system's number of what went wrong (0 if nothing did), and what came in.
    """

    outward: bool
    error: int
    data: bytes


class Queue(Protocol):
    """Two endpoints, one out and one in. One thread may submit while another waits."""

    def submit(self, *data: bytes) -> None:
        """Have packets sent, after those before them; raise `OSError` if that cannot be."""
        ...

    def wait(self, timeout: float) -> Done | None:
        """Return what has come in, or went wrong in either direction; None if nothing did for `timeout` [s]."""
        ...

    def restart(self, outward: bool, clear: Callable[[], None]) -> None:
        """Let nothing be under way in this direction, have the endpoint cleared, and go on.

        What was to go out and has not is lost.
        """
        ...

    def close(self) -> None:
        """Let what was submitted go out, and take back what may come in."""
        ...
