"""Messages between an experiment and its screens, in addition to `apps.front_ends.messages`.

Both screens are front ends. The participant's screen receives `Show`, and sends `messages.Key`, `HoldKey`, the
`Command` to pause (Esc), the answers to forms (`Picked`, `Placed`, `Typed`) and, if the mouse is the hand, `HandTarget`
and `HandButtons`. The experimenter's screen receives `SessionOutline`, `Progress`, `Outcome`, `Certificate` and
`Notice`, and sends `Note` and `Command`. Both receive `messages.SessionStarted` and `SessionEnded` of every block,
since they read force and position from its trace.
A screen keeps no state of the experiment: each `Show` is complete.

Values are SI; times are on the monotonic clock that all processes share [s].
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

from apps.front_ends.messages import SessionStarted
from apps.opengl.plane import Corners

Kind = Literal[
    "instructions", "practice", "park", "interval", "gap", "response", "feedback", "break", "pause", "end", "form"
]
"""Purpose of a display. `park` guides the hand to the start box, `gap` is between two intervals."""


# --- to the participant's screen ---


@dataclass(frozen=True)
class Choice:
    """Possible answer: `key` as in `messages.Key.name` or ``button 2``, its meaning, and its label."""

    key: str
    words: str
    cap: str = ""


@dataclass(frozen=True)
class StartBox:
    """Square in which the hand rests before an interval, with its `centre` and half its side, `reach` [m]."""

    centre: tuple[float, float]
    reach: float


@dataclass(frozen=True)
class Pacing:
    """Target that moves to and fro between two points at constant speed, with a tone at each reversal.

    Attributes
    ----------
    ends : ((x, y), (x, y))
        Reversal points [m].
    stroke : float
        Time from one end to the other [s].
    since : float
        Time at which it leaves the first end [s].
    shown, heard : bool
        Whether the target is shown, and whether the tone is played.
    """

    ends: Corners
    stroke: float
    since: float
    shown: bool = True
    heard: bool = False


@dataclass(frozen=True)
class FormItem:
    """Item of a form with the present answer.

    Attributes
    ----------
    kind : str
        ``likert``, ``analogue``, ``number``, ``choice``, ``text`` or ``page``.
    text : str
        Question.
    labels : tuple of str
        Labels of the options or points, empty for points without labels.
    points : int
        Number of options or points; analogue: number of steps, 0 for a continuous scale.
    low, high : str
        Labels of the ends of a scale.
    chosen : int or None
        Index of the chosen option or point.
    share : float or None
        Position on an analogue scale, from 0 to 1.
    entry : str
        Typed text.
    unit : str
        Unit of a number.
    hint : str
        Keys that change the answer, or that the item may be left out.
    alert : str
        Why the answer is not accepted.
    """

    kind: str
    text: str
    labels: tuple[str, ...] = ()
    points: int = 0
    low: str = ""
    high: str = ""
    chosen: int | None = None
    share: float | None = None
    entry: str = ""
    unit: str = ""
    hint: str = ""
    alert: str = ""


@dataclass(frozen=True)
class Show:
    """Contents of the participant's screen, which replace the previous ones.

    Attributes
    ----------
    kind : str
        Purpose of the display.
    title, text : str
        Title in large letters, and text below it. Empty lines separate paragraphs, long lines are wrapped.
    page, pages : int
        Number of the page, and number of pages of the text.
    interval, of : int
        Number of the interval, and number of intervals of the trial.
    keys : tuple of Choice
        Possible answers, shown after the end of a count-down.
    feedback : str
        ``right``, ``wrong`` or empty.
    entry : str or None
        Digits typed by the participant, if a number is requested.
    field : bool
        Whether workspace, start box, target and cursor are drawn.
    cursor : bool
        Whether the position of the hand is shown.
    start : StartBox or None
        Start box of the hand.
    pacing : Pacing or None
        Pacing of the motion.
    until : float or None
        End of a count-down [s].
    share : float or None
        Completed fraction of the session, 0 to 1, for the progress bar. None: no bar.
    hold : str
        Reminder to hold the space bar, empty for none.
    dark : bool
        Whether the screen is black, regardless of all other contents (eyes-free).
    noise : bool
        Whether the masking noise plays.
    tone : bool
        Whether a short tone marks the appearance, two tones in interval 2.
    item : FormItem or None
        Item of a form. The mouse pointer is visible, and a click on an answer or a drawn key counts.
    """

    kind: Kind
    title: str = ""
    text: str = ""
    page: int = 1
    pages: int = 1
    interval: int = 0
    of: int = 0
    keys: tuple[Choice, ...] = ()
    feedback: Literal["", "right", "wrong"] = ""
    entry: str | None = None
    field: bool = False
    cursor: bool = True
    start: StartBox | None = None
    pacing: Pacing | None = None
    until: float | None = None
    share: float | None = None
    hold: str = ""
    dark: bool = False
    noise: bool = False
    tone: bool = False
    item: FormItem | None = None


# --- to the experimenter's screen ---


@dataclass(frozen=True)
class SessionOutline:
    """Outline of the session, sent at its start and to every new screen.

    Attributes
    ----------
    experiment, participant : str
        Name of the experiment, and code of the participant.
    trials : int or None
        Expected number of trials without practice, if known.
    axis, unit : str
        Setting that varies (``law.force``) and the unit of its levels.
    blind : bool
        Whether condition, level, track, kind of trial, outcome and force are hidden. The experiment then removes them
        from all messages, and the screen hides them as well.
    staircase : bool
        Whether reversals are marked.
    """

    experiment: str
    participant: str
    session: int
    blocks: int
    trials: int | None
    axis: str = ""
    unit: str = ""
    blind: bool = False
    staircase: bool = True


@dataclass(frozen=True)
class Progress:
    """Progress of the session, sent after every change.

    Attributes
    ----------
    phase : str
        Current phase as text: ``interval 1 of 2``, ``waiting for the answer``, ``pause``.
    trial, block : int
        Numbers from 1, or 0 before the first trial.
    of : int or None
        Expected number of trials.
    kind, condition : str
        Kind of the trial, and its condition.
    track : str or None
        Name of the track, None if hidden.
    level : float or None
        Level in units of the axis, None if hidden.
    remaining : float or None
        Estimated remaining time [s].
    paused : bool
        Whether the session is paused.
    """

    phase: str
    trial: int = 0
    of: int | None = None
    block: int = 0
    kind: str = ""
    condition: str = ""
    track: str | None = None
    level: float | None = None
    remaining: float | None = None
    paused: bool = False


@dataclass(frozen=True)
class Outcome:
    """Result of a trial.

    Attributes
    ----------
    outcome : str
        ``ok`` or ``repeat``.
    reasons : tuple of str
        Reasons for a repetition.
    response : str
        Answer of the participant.
    correct : bool or None
        Whether the answer was right. None if there is no right answer, or it is hidden.
    reaction_time : float or None
        Reaction time [s].
    """

    trial: int
    outcome: Literal["ok", "repeat"]
    reasons: tuple[str, ...] = ()
    kind: str = ""
    condition: str = ""
    track: str | None = None
    level: float | None = None
    response: str = ""
    correct: bool | None = None
    reaction_time: float | None = None
    attempt: int = 1


@dataclass(frozen=True)
class Figure:
    """Line of the certificate: name, value and verdict."""

    name: str
    value: str
    verdict: Literal["", "good", "doubtful"] = ""


@dataclass(frozen=True)
class Certificate:
    """Quality of the stimuli rendered in the session."""

    figures: tuple[Figure, ...]


@dataclass(frozen=True)
class Notice:
    """Notice to the experimenter: a fault, a lost screen, a repeated trial."""

    words: str


# --- from the screens ---


@dataclass(frozen=True)
class Command:
    """Command of the experimenter; the participant can only pause.

    Attributes
    ----------
    name : str
        ``pause``: interrupt the current trial, which is repeated; ``go on``: end the pause; ``redo``: discard the last
        trial and repeat it; ``abort``: end the session, after a confirmation.
    """

    name: str


@dataclass(frozen=True)
class Note:
    """Note of the experimenter for the journal."""

    text: str


@dataclass(frozen=True)
class Picked:
    """Option or point of a form, chosen with the mouse: its index."""

    option: int


@dataclass(frozen=True)
class Placed:
    """Position on an analogue scale, chosen with the mouse, from 0 to 1."""

    share: float


@dataclass(frozen=True)
class Typed:
    """Characters that were typed while an item of a form was shown."""

    text: str


@dataclass(frozen=True)
class Cannot:
    """Report of a missing capability of the participant's screen, with reason and remedy in `words`."""

    what: Literal["window", "sound", "trace"]
    words: str


def hidden(message: Any) -> Any:
    """Return a message to the experimenter without the values hidden in blind mode.

    The force is removed, too, and the position of the proxy (`apps.experiment.screens.experimenter.BlindFeed`), because
    its distance from the hand reveals the force.
    """
    match message:
        case Progress():
            return replace(message, kind="", condition="", track=None, level=None)
        case Outcome():
            return replace(message, kind="", condition="", track=None, level=None, correct=None)
        case SessionStarted():
            return replace(message, parameters=(), force_scale=1.0, law_settings={}, scene=None)
    return message
