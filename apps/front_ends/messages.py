"""Messages between a session and its front ends, sent over pipes between their processes.

A front end never accesses the servo. It reads the trace and sends requests to the session, which validates them, writes
them to the recording and forwards them to the servo. All values are in SI units.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from haptics.scenes import Scene


@dataclass(frozen=True)
class Parameter:
    """A parameter that can be changed while the session runs.

    Attributes
    ----------
    key : str
        Setting name, such as ``law.force`` or ``element.stiffness``.
    value, minimum, maximum : float
        Present value and range of the slider (SI).
    unit : str
        Unit for display.
    logarithmic : bool
        Whether the slider moves in equal ratios.
    whole : bool
        Whether the value is an integer.
    """

    key: str
    value: float
    minimum: float
    maximum: float
    unit: str
    logarithmic: bool = False
    whole: bool = False


# --- messages from the session to a front end


@dataclass(frozen=True)
class SessionStarted:
    """A run has started and its trace can be read.

    Attributes
    ----------
    trace : str
        Path of the ring buffer (`haptics.trace.Ring.attach`).
    choices : dict
        Names of the selectable devices, each with the models that fit it.
    workspace : ((x, y), (x, y))
        Lower and upper corner [m].
    mouse : bool
        Whether the mouse acts as the hand; if so, the view sends `HandTarget`.
    force_scale : float
        Typical force, for scaling the force vectors [N].
    duration : float or None
        Planned duration [s].
    max_energy : float
        Limit of the energy injected by the loop [J].
    dead_man : str
        Control that must be held for any output: ``none``, ``key`` (the view sends `HoldKey`) or ``button``.
    scene : Scene or None
        Scene of the plane; None if the law is the same everywhere.
    law : str
        Name of the law; empty if unknown.
    law_settings : dict
        Further settings of the law: its parameters, and the source of a custom law.
    laws : tuple of str
        Selectable laws.
    about : dict
        Descriptions of the choices: ``device``, ``model``, ``law`` and ``hand``, each with one line per name.
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
    """Present activity before the first tick; empty when the preparation is complete."""

    words: str


@dataclass(frozen=True)
class SessionEnded:
    """The run has ended.

    ``summary`` has the keys of the command's JSON output; ``error`` is the message of the error that ended the run.
    """

    reason: str
    summary: dict[str, Any] = field(default_factory=dict)
    error: str = ""


@dataclass(frozen=True)
class Refused:
    """A request was refused.

    ``message`` gives the reason, ``values`` the values in force (parameter key to value).
    """

    message: str
    values: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class ValuesInForce:
    """Parameters have changed. ``values`` are all values in force (parameter key to value).

    Attributes
    ----------
    yours : bool
        Whether this answers a `SetParameter` of the same front end. A front end with unanswered requests shows the
        requested values; the last answer contains the values in force after all of them.
    """

    values: dict[str, float]
    yours: bool = False


@dataclass(frozen=True)
class SceneInForce:
    """The scene has changed.

    Attributes
    ----------
    scene : Scene or None
        The new scene; None if the law is the same everywhere.
    version : int
        Rows with this ``settings_version`` or a later one belong to the new scene; earlier rows belong to the previous
        one.
    """

    scene: Scene | None
    version: int


@dataclass(frozen=True)
class LawInForce:
    """The law or the model has changed, by a program or a remote control.

    Attributes
    ----------
    model : str
        The model.
    law : str
        Name of the law.
    law_settings : dict
        Further settings of the law, as in `SessionStarted`.
    parameters : tuple of Parameter
        All parameters in force.
    """

    model: str
    law: str
    law_settings: dict[str, Any]
    parameters: tuple[Parameter, ...]


@dataclass(frozen=True)
class Advised:
    """The parameters in force do not suit the device. ``message`` gives the reason and a remedy."""

    message: str


@dataclass(frozen=True)
class Captioned:
    """A demonstration is shown. ``message`` describes how to use it and the expected sensation."""

    message: str


@dataclass(frozen=True)
class AskShown:
    """Request for `Shown` as soon as a window is open."""


@dataclass(frozen=True)
class Quit:
    """The application ends: close the window."""


# --- messages from a front end to the session

HOLD_EVERY = 0.05
"""Interval at which the view repeats that the dead-man's key is held [s].

`haptics.servo.kernels.KEY_TIMEOUT` is three times as long.
"""


@dataclass(frozen=True)
class SetParameter:
    """Request to change one parameter from the next tick on."""

    key: str
    value: float


@dataclass(frozen=True)
class HandTarget:
    """Position of the mouse on the plane [m] and its relative grip strength, 0 to 1."""

    x: float
    y: float
    grip: float = 1.0


@dataclass(frozen=True)
class HandButtons:
    """Buttons of the device held by the mouse over the plane: button n is bit n, starting from 1."""

    buttons: int


@dataclass(frozen=True)
class Key:
    """Press or release of a key without a function in the front end. A held key is reported once.

    Attributes
    ----------
    name : str
        Name of the key in lower case: ``f``, ``left``, ``return``, ``1``.
    down : bool
        True for a press, False for a release.
    at : float
        Time of the event on the monotonic clock shared by all processes [s].
    """

    name: str
    down: bool
    at: float = field(default_factory=time.monotonic, compare=False)


@dataclass(frozen=True)
class HoldKey:
    """State of the dead-man's key: sent on press, every `HOLD_EVERY` while held, and on release.

    Attributes
    ----------
    held : bool
        Whether the key is held.
    at : float
        Time of this state on the monotonic clock shared by all processes [s]. A late message therefore reports an old
        state.
    """

    held: bool
    at: float = field(default_factory=time.monotonic, compare=False)


@dataclass(frozen=True)
class Request:
    """Request of a program that controls the session, answered by one `Reply` with the same number.

    Attributes
    ----------
    number : int
        Number of the request; its sender numbers its requests.
    verb : str
        Name of the request: ``configure``, ``gate``, ``mark``, ``advance``, ``stop`` or ``status``.
    arguments : dict
        Arguments by name, as plain values.
    """

    number: int
    verb: str
    arguments: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Reply:
    """Result of a `Request`, or the reason why it was refused."""

    number: int
    result: dict[str, Any] = field(default_factory=dict)
    error: str = ""


@dataclass(frozen=True)
class Shown:
    """The window is open and its keys can be held."""


@dataclass(frozen=True)
class Start:
    """Request to end the present run, if any, and to start one with this device, model, hand, and law.

    If `law` is empty, the present law is kept.
    """

    device: str
    model: str
    hand: str
    law: str = ""


@dataclass(frozen=True)
class Stop:
    """Request to bring the device to its safe output and end the run."""


@dataclass(frozen=True)
class Close:
    """The user has closed the window. The application ends with its last window."""
