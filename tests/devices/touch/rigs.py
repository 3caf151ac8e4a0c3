"""Emulated Touch devices in this process, and drivers of them through the library's path, like real ones."""

import contextlib

import devices
from devices.emulators.touch import MAKER, MOST_FORCE
from tests.devices.emulators.far_ends import Devices, resting, served

# The plane x-z of the driver: x to the right, y away from the user; the height is up.
AXES = (1, 0, 0, 0, 0, -1, 0, 1, 0)


def body(name="left", point=(0.0, 0.0), **changes):
    """A handle of the size of a Touch, which a hand holds at one point."""
    sizes = {"half_width": 0.08, "half_height": 0.035, "room": 0.02, "mass": 0.045, "damping": 0.1, "count": 5.5e-5}
    return resting(point, name, axes=AXES, **{**sizes, "most_force": MOST_FORCE, "homed": False, **changes})


class Rig(Devices):
    """Served devices and their drivers."""

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
def serving(*bodies):
    """Serve devices in threads of this process."""
    with served(MAKER, *(bodies or (body(),))) as found:
        yield Rig(found.library, MAKER)
