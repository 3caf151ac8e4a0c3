"""Waking a waiting thread, from Python or from the compiled loop."""

from __future__ import annotations

import os
import select
import threading
import weakref


class Wake:
    """Wake-up signal for one waiting thread.

    Attributes
    ----------
    descriptor : int
        Event (``eventfd(2)``) that a kernel can signal (`haptics.ports.Port`), valid as long as this object exists; -1
        if the system does not support it.
    """

    def __init__(self) -> None:
        self.descriptor = -1
        self._event = threading.Event()
        if hasattr(os, "eventfd"):
            self.descriptor = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
            weakref.finalize(self, os.close, self.descriptor)  # not earlier: a thread may still use it

    def call(self) -> None:
        """Signal the waiting thread; never blocks."""
        if self.descriptor >= 0:
            os.eventfd_write(self.descriptor, 1)
        else:
            self._event.set()

    def wait(self, timeout: float) -> None:
        """Wait for a signal, or for the `timeout` [s]. A signal before the call counts once."""
        if self.descriptor < 0:
            self._event.wait(timeout)
            self._event.clear()
        elif select.select([self.descriptor], [], [], timeout)[0]:
            os.eventfd_read(self.descriptor)
