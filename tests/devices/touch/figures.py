"""Figures of the emulated Touch at 1 kHz.

``python -m tests.devices.touch.figures [SECONDS [TABLE ...]]`` prints four tables: ``strokes`` (models C and B, FIFO
and ordinary scheduling, with and without another busy process, SECONDS each, 60 by default), ``virtual`` (the same
drift on the virtual joystick), ``pressed`` (forces normal to the plane) and ``lost`` (killed and stopped processes).
"""

import contextlib
import functools
import sys
import tempfile

from devices.emulators.touch import MAKER
from tests.devices import sessions
from tests.devices.touch.rigs import body

NAME = "touch"

COUNT = 5.5e-5
"""Smallest step of the position [m]."""

COUPLING = ("element.stiffness=1000", "element.damping=4")
COLD = "device.full_force_time=3600"
HAND = {"name": "minimum-jerk", "points": [[-0.05, 0.0], [0.05, 0.0]], "speed": 0.1, "rest": 0.0, "pause": 0.0}


def virtual():
    """Yield the rows of sessions with a held handle on the virtual joystick."""

    def row(model):
        settings = (*COUPLING, *sessions.HELD, f"device.resolution={COUNT}")
        with tempfile.TemporaryDirectory() as folder:
            _, recording, _ = sessions.session(folder, "virtual-joystick", model, "fifo", sessions.SHORT, *settings)
            return (f"{sessions.drift(recording.rows) / COUNT:.3f} counts",)

    for model in "CB":
        yield (model,), functools.partial(row, model)


def far_end(**changes):
    """Run a device whose hand strokes; a context with the path of its library."""
    return sessions.far_end(NAME, body(hand=HAND, **changes))


@contextlib.contextmanager
def loaded(force):
    """Run a device whose hand also presses on the plane; yield the setting of its library."""
    with far_end(sag=force) as library:
        yield f"device.library={library}"


TABLES = {
    "strokes": (
        sessions.HEAD,
        lambda seconds: sessions.strokes(NAME, seconds, ("device.emulated=true", COLD, *COUPLING), COUNT),
    ),
    "virtual": (("model on the virtual joystick", "drift while held"), lambda _: virtual()),
    "pressed": (sessions.PRESSED_HEAD, lambda _: sessions.pressed(NAME, (0.5, 1.4, 5.0), loaded, COLD, *COUPLING)),
    "lost": (sessions.LOST_HEAD, lambda _: sessions.lost(NAME, MAKER, far_end, *COUPLING)),
}

if __name__ == "__main__":
    sys.exit(sessions.print_tables(TABLES, sys.argv[1:]))
