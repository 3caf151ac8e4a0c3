"""A stage on a virtual screen and the rows that it shows."""

from __future__ import annotations

import time
from contextlib import contextmanager

import numpy as np

from apps.front_ends.front_end import ProcessFrontEnd
from apps.front_ends.messages import Parameter, SessionStarted
from apps.opengl.plane import Plane
from apps.stage.launch import main
from apps.stage.layout import Layout
from haptics.records import NEUTRAL
from haptics.trace import Trace
from tests.apps.shown import on_screen

SIZE = (1280, 720)
TITLE = "haptics:"
WORKSPACE = ((-0.06, -0.045), (0.06, 0.045))
FORCE, STIFFNESS = 4.0, 6000.0


def layout(size=SIZE):
    return Layout(*size)


def plane(size=SIZE):
    return Plane(Layout(*size).plane, WORKSPACE)


def started(trace, **changes):
    """Return the message with which a run begins."""
    parameters = (
        Parameter("law.force", FORCE, 0.0, 10.0, "N"),
        Parameter("element.stiffness", STIFFNESS, 100.0, 1e4, "N/m", logarithmic=True),
    )
    message: dict[str, object] = {
        **{"trace": str(trace), "recording": "", "device": "virtual-joystick", "model": "C", "causality": "impedance"},
        **{"rate_hz": 1000.0, "hand": "mouse", "workspace": WORKSPACE, "parameters": parameters, "choices": {}},
        **{"hands": (), "mouse": False, "force_scale": FORCE},
    }
    return SessionStarted(**(message | changes))


def rows(position, displacement=(0.0, 0.0), *, sticking=False, count=60, first=0):
    """Return rows of a hand at rest, with the force of a spring."""
    found = np.repeat(NEUTRAL, count)
    found["tick"] = np.arange(first, first + count)
    found["time"] = 1e-3 * found["tick"]
    found["position"], found["displacement"] = position, displacement
    found["proxy"] = np.subtract(position, displacement)
    found["command"] = -STIFFNESS * np.array(displacement)
    found["sticking"] = sticking
    return found


class Stage:
    """An open stage, and the trace that it is shown."""

    def __init__(self, shown, trace, window):
        self.shown, self.trace, self.window = shown, trace, window

    def begin(self, **changes):
        """Begin a run."""
        self.trace.publish(0)
        self.shown.front.send(started(**({"trace": self.trace.path} | changes)))
        self.shown.until_shown()

    def publish(self, found):
        """Append rows to the run."""
        for row in found:
            self.trace.append(row)

    def reach(self):
        """Find and focus the window, which full screen recreates, and return its size."""
        self.window = self.shown.focus(TITLE)
        found = self.shown.screen.xdotool("getwindowgeometry", "--shell", self.window)
        size = dict(line.split("=") for line in found.splitlines())
        return int(size.get("WIDTH", 0)), int(size.get("HEIGHT", 0))

    def shot(self):
        """Return the pixels of the window after it has handled all messages."""
        self.shown.until_shown()
        return self.shown.screen.shot(self.window)

    def press(self, *keys):
        """Press keys one after the other, and wait until the stage has handled them."""
        self.shown.screen.xdotool("key", *keys)
        time.sleep(0.1)
        self.shown.until_shown()


@contextmanager
def opened(screen, folder, size=SIZE, theme="dark"):
    """Open a stage of a size with an empty trace."""
    with on_screen(screen, lambda: ProcessFrontEnd(main, (theme, size), name="haptics stage")) as shown:
        shown.until_shown()
        yield Stage(shown, Trace.create(folder / "trace"), shown.focus(TITLE))


def near(picture, place, reach=2):
    """Return the pixels, (n, 3), around a place of the window, whose origin is its lower left corner."""
    column, row = round(place[0]), picture.shape[0] - 1 - round(place[1])
    part = picture[row - reach : row + reach + 1, column - reach : column + reach + 1]
    return part.reshape(-1, 3)


def is_there(colour, pixels, slack=24):
    """Return True if some pixel has a colour."""
    wanted = np.array(list(bytes.fromhex(colour[1:])), int)
    return bool((np.abs(pixels.astype(int) - wanted).max(axis=1) <= slack).any())
