"""Event loop of an emulated device: one thread that waits for files and times, and serves due events.

It detects when the operating system did not execute it: a pause of the emulated device is then not a device failure.
"""

from __future__ import annotations

import contextlib
import os
import select
import socket
import threading
import time
from abc import abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, Self

LONGEST_WAIT = 0.01
"""Maximum waiting time [s], so that the time of the emulated device does not lag far behind."""

LINGER = 1.5
"""Maximum time for which an emulated USB device continues after the end of its input while a motor is on [s]."""

STALL = 5e-3
"""Time without execution from which a loop counts as starved [s]."""

MEMORY = 1.0
"""Time for which a stall can explain later failures [s]."""


class Loop:
    """Serves files and sources, one after the other, in the thread that calls `run`.

    Attributes
    ----------
    files : dict
        Functions that are called when a file, the key, is readable or has ended.
    sources : list of (callable, callable)
        Sources of timed events, in the order of service: ``pause(now)`` returns the time until the next event, and
        ``serve(now)`` processes due events; `now` is a time of the system's monotonic clock [s].
    """

    def __init__(self) -> None:
        self.files: dict[Any, Callable[[], None]] = {}
        self.sources: list[tuple[Callable[[float], float], Callable[[float], None]]] = []
        self._stalls: list[tuple[float, float]] = []

    def accept(self, listener: socket.socket, begin: Callable[[socket.socket], bool]) -> None:
        """Accept connections of a listening socket; `begin` returns False to reject one."""
        listener.setblocking(False)

        def accept_client() -> None:
            with contextlib.suppress(OSError):  # the client may have disconnected
                wire, _ = listener.accept()
                if not begin(wire):
                    wire.close()

        self.files[listener] = accept_client

    def stalled(self) -> float:
        """Return the longest recent time without execution [s]; 0 if none."""
        oldest = time.monotonic() - MEMORY
        return max((length for instant, length in self._stalls if instant >= oldest), default=0.0)

    def run(self, done: Callable[[], bool]) -> None:
        """Serve until `done` returns True, which is called after every pass."""
        now, used = time.monotonic(), time.thread_time()
        while not done():
            due = min((pause(now) for pause, _ in self.sources), default=LONGEST_WAIT)
            waited = max(min(due, LONGEST_WAIT), 0.0)
            ready, _, _ = select.select(self.files, (), (), waited)
            before, used_before = now, used
            now, used = time.monotonic(), time.thread_time()
            lost = now - before - waited - (used - used_before)  # neither used nor waited for
            if lost >= STALL:
                self._stalls = [stall for stall in self._stalls if stall[0] >= now - MEMORY]
                self._stalls.append((now, lost))
            for file in ready:
                call = self.files.get(file)
                if call is not None:
                    call()
            for _, serve in self.sources:
                serve(now)

    @contextlib.contextmanager
    def in_thread(self, name: str) -> Iterator[None]:
        """Run the loop in a thread of that name within the block."""
        over = threading.Event()
        thread = threading.Thread(target=self.run, args=(over.is_set,), name=name, daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()


class ServedDevice:
    """Emulated device, served by a thread in a ``with`` statement, or by an event loop (`within`)."""

    def __enter__(self) -> Self:
        """Start the thread."""
        loop = Loop()
        self._ends = contextlib.ExitStack()
        self._ends.enter_context(self.within(loop))
        self._ends.enter_context(loop.in_thread(f"emulated {type(self).__name__}"))
        return self

    def __exit__(self, *_: object) -> None:
        """Stop the thread and release the files of the device."""
        self._ends.close()

    @abstractmethod
    def within(self, loop: Loop) -> contextlib.AbstractContextManager[None]:
        """Serve the device in an event loop within the block."""


class BlockingDevice:
    """Emulated device whose `serve` blocks, run by a thread in a ``with`` statement."""

    def __enter__(self) -> Self:
        """Start the thread."""
        self._until, self._end = os.pipe()
        self._thread = threading.Thread(target=self.serve, args=(self._until,), daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop the thread and release the files of the device."""
        os.write(self._end, b".")
        self._thread.join()
        self.unplug()
        os.close(self._until)
        os.close(self._end)

    @abstractmethod
    def serve(self, until: int) -> None:
        """Serve hosts until the file descriptor `until` is readable."""

    @abstractmethod
    def unplug(self) -> None:
        """Close the connection of the device to its hosts."""
