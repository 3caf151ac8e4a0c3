"""What a session and its front ends, such as the live view, say to each other, over pipes between their processes.

A front end never touches the servo: it reads the trace and sends wishes here; the session validates them, writes them
to the recording and passes them on. All values are SI.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from haptics.scenes import Scene


@dataclass(frozen=True)
class Parameter:
    """One number that may be changed while the session runs.

    Attributes
    ----------
    key : str
        Setting name, ``law.force`` or ``element.stiffness``.
    value, minimum, maximum : float
        Present value and the range of the slider (SI).
    unit : str
        Unit for display.
    logarithmic : bool
        Whether the slider should move in equal ratios.
    whole : bool
        Whether the number is a count.
    """

    key: str
    value: float
    minimum: float
    maximum: float
    unit: str
    logarithmic: bool = False
    whole: bool = False


# --- from the session to a front end


@dataclass(frozen=True)
class SessionStarted:
    """A run has begun and its trace can be read.

    Attributes
    ----------
    trace : str
        Path of the ring (`haptics.trace.Ring.attach`).
    choices : dict
        Device name to the models that go with it.
    workspace : ((x, y), (x, y))
        Lower and upper corner [m].
    mouse : bool
        Whether the mouse is the hand: then the view sends `HandTarget`.
    force_scale : float
        A typical force, for the length of the vectors [N].
    duration : float or None
        Planned length [s].
    max_energy : float
        Energy that the loop may inject [J].
    dead_man : str
        What must be held for any output: ``none``, ``key`` (then the view sends `HoldKey`) or ``button``.
    scene : Scene or None
        What lies where on the plane, if it is not the same everywhere.
    law : str
        Name of the law; empty where nobody says it.
    law_settings : dict
        What else it was made from: its numbers, and the text of a custom one.
    laws : tuple of str
        Laws that can be chosen.
    about : dict
        What the choices are: ``device``, ``model``, ``law`` and ``hand`` to names and a line on each.
    """

    trace: str
    recording: str
    device: str
    model: str
    causality: str
    rate_hz: float
    hand: str
    workspace: tuple[tuple[float, float], tuple[float, float]]
    parameters: tuple[Parameter, ...]
    choices: dict[str, tuple[str, ...]]
    hands: tuple[str, ...]
    mouse: bool
    force_scale: float
    duration: float | None = None
    max_energy: float = 0.1
    dead_man: str = "none"
    scene: Scene | None = None
    law: str = ""
    law_settings: dict[str, Any] = field(default_factory=dict)
    laws: tuple[str, ...] = ()
    about: dict[str, dict[str, str]] = field(default_factory=dict)


@dataclass(frozen=True)
class Preparing:
    """What is done before the first tick, in words; empty when that is over."""

    words: str


@dataclass(frozen=True)
class SessionEnded:
    """The run is over; ``summary`` has the keys of the command's JSON output, ``error`` says what failed."""

    reason: str
    summary: dict[str, Any] = field(default_factory=dict)
    error: str = ""


@dataclass(frozen=True)
class Refused:
    """A wish could not be granted; ``message`` says why, ``values`` what stays in force (parameter key to value)."""

    message: str
    values: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class ValuesInForce:
    """Parameters have changed; ``values`` are all that are in force (parameter key to value).

    Attributes
    ----------
    yours : bool
        Whether this is the answer to the front end's own `SetParameter`. One that has asked for more than has been
        answered shows what it asked for: the last answer will have the values in force after all of it.
    """

    values: dict[str, float]
    yours: bool = False


@dataclass(frozen=True)
class SceneInForce:
    """Something else lies on the plane from a tick on.

    Attributes
    ----------
    scene : Scene or None
        What lies where, if it is not the same everywhere.
    version : int
        The first tick with this ``settings_version``, or a later one, is on it; those before are on what was there.
    """

    scene: Scene | None
    version: int


@dataclass(frozen=True)
class Advised:
    """The parameters in force do not suit the device; ``message`` says why and what to do."""

    message: str


@dataclass(frozen=True)
class Captioned:
    """What is shown is a demonstration; ``message`` says what to do and what is to be felt."""

    message: str


@dataclass(frozen=True)
class AskShown:
    """Say `Shown` when a window is there."""


@dataclass(frozen=True)
class Quit:
    """The application ends: close the window."""


# --- from a front end to the session

HOLD_EVERY = 0.05
"""How often the view repeats that the dead-man's key is held [s]; `haptics.servo.job.KEY_LASTS` is three times that."""


@dataclass(frozen=True)
class SetParameter:
    """Change one parameter from the next tick on."""

    key: str
    value: float


@dataclass(frozen=True)
class HandTarget:
    """Where the mouse is on the plane [m], and how firmly it grips, 0 to 1."""

    x: float
    y: float
    grip: float = 1.0


@dataclass(frozen=True)
class HandButtons:
    """Which of the device's buttons the mouse over the plane holds: button n is bit n, from 1 on."""

    buttons: int


@dataclass(frozen=True)
class Key:
    """A key that means nothing to the front end itself went down or came up; a held key says so once.

    Attributes
    ----------
    name : str
        The key in small letters: ``f``, ``left``, ``return``, ``1``.
    down : bool
        Whether it went down.
    at : float
        When, on the monotonic clock that all processes share [s].
    """

    name: str
    down: bool
    at: float = field(default_factory=time.monotonic, compare=False)


@dataclass(frozen=True)
class HoldKey:
    """Whether the dead-man's key is held: said when it is pressed, every `HOLD_EVERY` while it is, and when let go.

    Attributes
    ----------
    held : bool
        Whether it is.
    at : float
        When that was so, on the monotonic clock that all processes share [s]: a word that comes late is an old one.
    """

    held: bool
    at: float = field(default_factory=time.monotonic, compare=False)


@dataclass(frozen=True)
class Shown:
    """The window is there, and its keys can be held."""


@dataclass(frozen=True)
class Start:
    """End the present run, if any, and begin one with this device, model, hand and law, by default the present one."""

    device: str
    model: str
    hand: str
    law: str = ""


@dataclass(frozen=True)
class Stop:
    """Bring the device to its safe output and end the run."""


@dataclass(frozen=True)
class Close:
    """A person closed the window: it leaves, and the last one to leave takes the application with it."""
