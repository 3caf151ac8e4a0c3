"""Emulated Touch devices in this process, and drivers of them through the library's path, like real ones."""

import contextlib
import os
import threading
import time

import numpy as np

import devices
from devices.emulators.native.far_end import Body, FarEnd, devices_of
from devices.emulators.touch import MAKER, MOST_FORCE

PATIENCE = 10.0
# The plane x-z of the driver: x to the right, y away from the user; the height is up.
AXES = (1, 0, 0, 0, 0, -1, 0, 1, 0)


def body(name="left", point=(0.0, 0.0), **changes):
    """A handle of the size of a Touch, which a hand holds at one point."""
    hand = {"name": "minimum-jerk", "points": [list(point)] * 2, "rest": 60.0, "rest_force": 0.0, "rest_grip": 1.0,
            "tremor": 0.0}  # fmt: skip
    sizes = {"half_width": 0.08, "half_height": 0.035, "room": 0.02, "mass": 0.045, "damping": 0.1, "count": 5.5e-5}
    return Body(name, axes=AXES, **{**sizes, "hand": hand, "most_force": MOST_FORCE, "homed": False, **changes})


class Rig:
    """Served devices: the path of their library, and their records."""

    def __init__(self, library):
        self.library = library

    def far(self, name=""):
        return FarEnd(self.library, MAKER, name)

    def driver(self, clock=None, **changes):
        return devices.create_device("touch", {"library": self.library, **changes}, clock=clock)

    @contextlib.contextmanager
    def driven(self, clock=None, **changes):
        device = self.driver(clock, **changes)
        device.open()
        try:
            yield device
        finally:
            device.close()


@contextlib.contextmanager
def serving(*bodies, faults=()):
    """Serve devices in threads of this process."""
    until, end = os.pipe()
    with devices_of(MAKER, bodies or (body(),), faults, until=until) as (library, serve):
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield Rig(library)
        finally:
            os.close(end)
            thread.join()
            os.close(until)


def wait_until(condition, patience=PATIENCE):
    latest = time.monotonic() + patience
    while not condition():
        assert time.monotonic() < latest, "it did not come about"
        time.sleep(1e-3)


def exercise(device, duration=0.05, force=(0.5, 0.3), share=0.0):
    """Read and write at about 1 kHz."""
    latest = time.monotonic() + duration
    while time.monotonic() < latest:
        device.read()
        device.compensate(share)
        device.write(np.array(force))
        time.sleep(1e-3)
