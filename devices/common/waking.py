"""Waking a thread that waits for work, from Python or from the compiled loop."""

from __future__ import annotations

import os
import select
import threading
import weakref


class Wake:
    """Whether there is something new, for one thread that waits for it.

    Attributes
    ----------
    descriptor : int
        An event (``eventfd(2)``) that a kernel can raise (`haptics.ports.Port`), as long as this object lives; -1 where
        the system has none.
    """

    def __init__(self) -> None:
        self.descriptor = -1
        self._event = threading.Event()
        if hasattr(os, "eventfd"):
            self.descriptor = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
            weakref.finalize(self, os.close, self.descriptor)  # with the last thread that may still look at it

    def call(self) -> None:
        """Say that there is something new; never blocks."""
        if self.descriptor >= 0:
            os.eventfd_write(self.descriptor, 1)
        else:
            self._event.set()

    def wait(self, timeout: float) -> None:
        """Return once there is something new, or after the `timeout` [s]; what was called before counts, once."""
        if self.descriptor < 0:
            self._event.wait(timeout)
            self._event.clear()
        elif select.select([self.descriptor], [], [], timeout)[0]:
            os.eventfd_read(self.descriptor)
