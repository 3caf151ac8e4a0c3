"""The event loop of an emulated far end: one thread that waits for files and for instants, and serves what is due.

It notices when it was kept from running: an emulated device that stood still for a while did not fail, the machine did.
"""

from __future__ import annotations

import contextlib
import select
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, Protocol

LOOK = 0.01
"""Nothing waits longer than that [s]: the time of the emulated device must not lag far behind."""

STALL = 5e-3
"""A loop that was kept from running for so long was starved [s]."""

MEMORY = 1.0
"""A stall explains what goes wrong for so long after it [s]."""


class Source(Protocol):
    """What has something to do from time to time."""

    def pause(self, now: float) -> float:
        """Return how long it has nothing to do [s]; `now` is of the system's monotonic clock."""
        ...

    def serve(self, now: float) -> None:
        """Do what is due, if anything is."""
        ...


class Loop:
    """Serves files and sources, one after the other, in the thread that calls `run`.

    Attributes
    ----------
    sources : list of Source
        What is served in every pass, in this order.
    """

    def __init__(self) -> None:
        self.sources: list[Source] = []
        self._files: dict[Any, Callable[[], None]] = {}
        self._stalls: list[tuple[float, float]] = []

    def watch(self, file: Any, call: Callable[[], None]) -> None:
        """Call when something can be read from `file`, or it has ended."""
        self._files[file] = call

    def welcome(self, listener: socket.socket, begin: Callable[[socket.socket], bool]) -> None:
        """Take whoever comes to a listening socket; `begin` tells whether there is room for one more."""
        listener.setblocking(False)

        def accept() -> None:
            with contextlib.suppress(OSError):  # it has gone already
                wire, _ = listener.accept()
                if not begin(wire):
                    wire.close()

        self.watch(listener, accept)

    def forget(self, file: Any) -> None:
        """Watch it no more."""
        self._files.pop(file, None)

    def stalled(self) -> float:
        """Return for how long it was kept from running lately, at a stretch [s]; 0 if it was not."""
        oldest = time.monotonic() - MEMORY
        return max((length for instant, length in self._stalls if instant >= oldest), default=0.0)

    def run(self, done: Callable[[], bool]) -> None:
        """Serve until it is `done`, which is asked after every pass."""
        now, used = time.monotonic(), time.thread_time()
        while not done():
            pause = max(min(min((source.pause(now) for source in self.sources), default=LOOK), LOOK), 0.0)
            ready, _, _ = select.select(self._files, (), (), pause)
            before, used_before = now, used
            now, used = time.monotonic(), time.thread_time()
            self._notice(now, now - before - pause - (used - used_before))
            for file in ready:
                call = self._files.get(file)
                if call is not None:
                    call()
            for source in self.sources:
                source.serve(now)

    @contextlib.contextmanager
    def in_thread(self, name: str) -> Iterator[None]:
        """Have a thread of that name run it meanwhile."""
        over = threading.Event()
        thread = threading.Thread(target=self.run, args=(over.is_set,), name=name, daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    def _notice(self, now: float, lost: float) -> None:
        """Note that so much time [s] was neither used nor waited for."""
        if lost >= STALL:
            self._stalls = [stall for stall in self._stalls if stall[0] >= now - MEMORY]
            self._stalls.append((now, lost))
