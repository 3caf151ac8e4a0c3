"""A stage on a virtual screen, and the rows that it shows."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from apps.front_ends.front_end import ProcessFrontEnd
from apps.front_ends.messages import Parameter, SessionStarted
from apps.opengl.opening import Size
from apps.opengl.plane import Plane
from apps.stage.layout import Layout, arrange
from apps.stage.process import main
from haptics.records import NEUTRAL, Rows
from haptics.trace import Trace
from tests.apps.screen import Screen
from tests.apps.shown import OnScreen, on_screen

SIZE = (1280, 720)
TITLE = "haptics:"
WORKSPACE = ((-0.06, -0.045), (0.06, 0.045))
FORCE, STIFFNESS = 4.0, 6000.0


def layout(size: Size = SIZE) -> Layout:
    return arrange(*size)


def plane(size: Size = SIZE) -> Plane:
    return Plane(arrange(*size).plane, WORKSPACE)


def started(trace: Path, **changes: object) -> SessionStarted:
    """Return the message with which a run begins."""
    told: dict[str, object] = {
        "trace": str(trace),
        "recording": "",
        "device": "virtual-joystick",
        "model": "C",
        "causality": "impedance",
        "rate_hz": 1000.0,
        "hand": "mouse",
        "workspace": WORKSPACE,
        "parameters": (
            Parameter("law.force", FORCE, 0.0, 10.0, "N"),
            Parameter("element.stiffness", STIFFNESS, 100.0, 1e4, "N/m"),
        ),
        "choices": {},
        "hands": (),
        "mouse": False,
        "force_scale": FORCE,
    }
    return SessionStarted(**(told | changes))  # type: ignore[arg-type]


def rows(
    position: tuple[float, float],
    displacement: tuple[float, float] = (0.0, 0.0),
    *,
    sticking: bool = False,
    count: int = 60,
    first: int = 0,
) -> Rows:
    """Return rows of a hand that stays where it is, with the force of a spring."""
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

    def __init__(self, shown: OnScreen, trace: Trace, window: str) -> None:
        self.shown, self.trace, self.window = shown, trace, window

    def begin(self, **changes: object) -> None:
        """Begin a run."""
        self.trace.publish(0)
        self.shown.front.send(started(**({"trace": self.trace.path} | changes)))
        self.shown.until_shown()

    def publish(self, found: Rows) -> None:
        """Let the run make rows."""
        for row in found:
            self.trace.append(row)

    def reach(self) -> Size:
        """Find the window anew, give it the keys, and return its size: filling the screen makes another of it."""
        self.window = self.shown.focus(TITLE)
        found = self.shown.screen.xdotool("getwindowgeometry", "--shell", self.window)
        size = dict(line.split("=") for line in found.splitlines())
        return int(size.get("WIDTH", 0)), int(size.get("HEIGHT", 0))

    def shot(self) -> NDArray[np.uint8]:
        """Return what the window shows once it has drawn all that it has been told."""
        self.shown.until_shown()
        return self.shown.screen.shot(self.window)

    def press(self, *keys: str) -> None:
        """Press keys one after the other, and wait until the stage has dealt with them."""
        self.shown.screen.xdotool("key", *keys)
        time.sleep(0.1)
        self.shown.until_shown()


@contextmanager
def opened(screen: Screen, folder: Path, size: Size = SIZE, theme: str = "dark") -> Iterator[Stage]:
    """Open a stage of a size with an empty trace."""
    with on_screen(screen, lambda: ProcessFrontEnd(main, (theme, size), name="haptics stage")) as shown:
        shown.until_shown()
        yield Stage(shown, Trace.create(folder / "trace"), shown.focus(TITLE))


def near(picture: NDArray[np.uint8], place: tuple[float, float], reach: int = 2) -> NDArray[np.uint8]:
    """Return the pixels, (n, 3), around a place of the window, whose origin is its lower left corner."""
    column, row = round(place[0]), picture.shape[0] - 1 - round(place[1])
    part = picture[row - reach : row + reach + 1, column - reach : column + reach + 1]
    return part.reshape(-1, 3)


def is_there(colour: str, pixels: NDArray[np.uint8], slack: int = 24) -> bool:
    """Tell whether some pixel has a colour."""
    wanted = np.array(list(bytes.fromhex(colour[1:])), int)
    return bool((np.abs(pixels.astype(int) - wanted).max(axis=1) <= slack).any())
