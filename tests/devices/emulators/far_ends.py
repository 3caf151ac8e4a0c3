"""Devices behind an emulated maker's library, served by threads of this process."""

from __future__ import annotations

import contextlib
import os
import threading
from pathlib import Path

from devices.emulators.native.far_end import Body, FarEnd, devices_of
from tests.devices.inverse3.services import holding


class Devices:
    """Served devices: path of their library, folder of their sockets, and their views from outside."""

    def __init__(self, library, maker):
        self.library, self._maker = library, maker
        self.folder = Path(library).parent

    def far(self, name=""):
        return FarEnd(self.library, self._maker, name)


@contextlib.contextmanager
def served(maker, *bodies, faults=()):
    """Serve devices in threads of this process, which do not need the interpreter."""
    until, end = os.pipe()
    with devices_of(maker, bodies, faults, until=until) as (library, serve):
        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield Devices(library, maker)
        finally:
            os.close(end)
            thread.join()
            os.close(until)


def resting(point=(0.0, 0.0), name="1", **changes):
    """Return a device whose hand holds on to one point."""
    return Body(name, **{"hand": holding(point), **changes})
