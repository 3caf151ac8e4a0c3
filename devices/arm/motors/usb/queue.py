"""Interface of a queue: two endpoints of a device with many transfers in flight at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

AHEAD = 8
"""Number of transfers in that are in flight at any time: more than the replies of a round."""


class NoQueue(Exception):
    """A queue is not available, with the reason."""


class Done(NamedTuple):
    """Completed transfer: one in with its data, or one that failed.

    Direction (True for outward), system error number (0 on success), and received data.
    """

    outward: bool
    error: int
    data: bytes


class Queue(Protocol):
    """Two endpoints, one out and one in. One thread may submit while another waits."""

    def submit(self, *data: bytes) -> None:
        """Append packets to the queue; raise `OSError` on failure."""
        ...

    def wait(self, timeout: float) -> Done | None:
        """Return received data, or a failure in either direction; None after `timeout` [s]."""
        ...

    def restart(self, outward: bool, clear: Callable[[], None]) -> None:
        """Cancel all transfers in this direction, clear the endpoint and restart.

        Packets that have not been sent are lost.
        """
        ...

    def close(self) -> None:
        """Send the submitted packets, and cancel all transfers in."""
        ...
