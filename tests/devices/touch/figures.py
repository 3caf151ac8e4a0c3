"""Figures of the emulated Touch at 1 kHz: sample age, sliding force, third axis, drift, and lost processes.

``python -m tests.devices.touch.figures [SECONDS]`` prints the tables: models C and B, FIFO and ordinary scheduling,
with and without another busy process; the same drift on the virtual joystick; a hand that pushes with 5 N across the
plane; and processes that are killed or stopped. SECONDS is 60 by default.
"""

import contextlib
import json
import sys
import tempfile

import numpy as np

from devices.emulators.touch import MAKER
from tests.devices import sessions
from tests.devices.touch.rigs import body, serving

COUNT = 5.5e-5
"""Smallest step of the position [m]."""

EMULATED = ("device.emulated=true", "device.full_force_time=3600")
COUPLING = ("element.stiffness=1000", "element.damping=4")
# Pushes across the plane, with up to 5 N in all directions.
PUSHES = [[0.3 * k, *(5.0 * np.array(way))] for k, way in enumerate([(1, 0), (-1, 0), (0, 1), (0, -1)] * 250)]
HAND = {"name": "minimum-jerk", "points": [[-0.05, 0.0], [0.05, 0.0]], "speed": 0.1, "rest": 0.0, "pause": 0.0}


def virtual():
    """Yield the rows of sessions with a held handle on the virtual joystick."""
    for model in "CB":
        settings = (*COUPLING, *sessions.HELD, f"device.resolution={COUNT}")
        with tempfile.TemporaryDirectory() as folder:
            _, recording, _ = sessions.session(folder, "virtual-joystick", model, "fifo", sessions.SHORT, *settings)
            yield model, f"{sessions.drift(recording.rows) / COUNT:.3f} counts"


def pushed():
    """Yield the row of a session in which the hand pushes across the plane."""
    hand = ("hand.name=scripted-force", f"hand.script={json.dumps(PUSHES)}", "device.damping=20")
    with tempfile.TemporaryDirectory() as folder:
        _, recording, _ = sessions.session(folder, "touch", "C", "fifo", sessions.SHORT, *EMULATED, *COUPLING, *hand)
        yield sessions.height(recording.rows), f"{np.ptp(recording.rows['position'][1000:, 0]) * 1e3:.0f} mm"


@contextlib.contextmanager
def stroked():
    """Serve a device whose hand strokes; yield the path of its library."""
    with serving(body(hand=HAND)) as rig:
        yield rig.library


def main(arguments):
    """Print the tables."""
    seconds = float(arguments[0]) if arguments else 60.0
    sessions.write_start(seconds)
    sessions.write_table(sessions.HEAD, sessions.strokes("touch", seconds, (*EMULATED, *COUPLING), COUNT))
    sessions.write_table(("model on the virtual joystick", "drift while held"), virtual())
    sessions.write_table(("height under 5 N across the plane: median, largest", "travel"), pushed())
    sessions.write_table(sessions.LOST_HEAD, sessions.lost("touch", MAKER, stroked, *COUPLING))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
