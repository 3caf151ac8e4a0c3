"""What an experiment and its two screens say to each other, beside the words of `apps.front_ends.messages`.

Both screens are front ends. The participant's gets `Show`, and says `messages.Key`, `HoldKey` and, where the mouse is
the hand, `HandTarget` and `HandButtons`; Esc is `Pause`. The experimenter's gets `Plan`, `Progress`, `Outcome`,
`Certificate`, `Notice`, and says `Note`, `Redo`, `Pause`, `GoOn`, `Abort`. Both get `messages.SessionStarted` and
`SessionEnded` of every block, since they read force and position from its trace. A screen keeps no state of the
experiment: each `Show` is complete.
Values are SI; instants are on the monotonic clock that all processes share [s].
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from apps.opengl.plane import Corners

Kind = Literal["instructions", "practice", "park", "interval", "gap", "response", "feedback", "break", "pause", "end"]
"""What a screen is for: `park` leads the hand to the start box, `gap` lies between two intervals."""

KINDS: tuple[Kind, ...] = get_args(Kind)
"""All of them."""


# --- to the participant's screen


@dataclass(frozen=True)
class Choice:
    """What can be pressed, `key` as in `messages.Key.name` (or ``button 2``), its meaning, and what is on the cap."""

    key: str
    words: str
    cap: str = ""


@dataclass(frozen=True)
class StartBox:
    """Where the hand rests before an interval: a square with its `centre` and half its `side`, `reach` [m]."""

    centre: tuple[float, float]
    reach: float


@dataclass(frozen=True)
class Pacing:
    """A target that goes to and fro between two points at constant speed, with a tone at each turn.

    Attributes
    ----------
    ends : ((x, y), (x, y))
        Where it turns [m].
    stroke : float
        Time from one end to the other [s].
    since : float
        When it leaves the first end.
    shown, heard : bool
        Whether there is a moving target, and a tone.
    """

    ends: Corners
    stroke: float
    since: float
    shown: bool = True
    heard: bool = False


@dataclass(frozen=True)
class Show:
    """What the participant sees from now on; it takes the place of what was there.

    Attributes
    ----------
    kind : str
        One of `KINDS`.
    title, text : str
        In large letters, and below it; empty lines make paragraphs, long lines are wrapped.
    page, pages : int
        Which page of a text this is, of how many.
    interval, of : int
        Which interval of the trial, of how many.
    keys : tuple of Choice
        What can be pressed; where there is a count-down, as soon as that is over.
    feedback : str
        ``right``, ``wrong`` or empty.
    entry : str or None
        What has been typed so far, where a number is asked for.
    workspace : ((x, y), (x, y)) or None
        What is outlined; None: that of the running block.
    field : bool
        Whether workspace, start box, target and cursor are drawn at all.
    cursor : bool
        Whether the participant sees where the hand is.
    start : StartBox or None
        Where the hand is to rest.
    pacing : Pacing or None
        What sets the pace.
    until : float or None
        When a count-down ends.
    share : float or None
        How much of the session is done, 0 to 1, for the bar; None: no bar.
    hold : str
        What reminds of the space bar that must be held; empty: nothing.
    dark : bool
        Nothing but black, whatever else is said here (eyes-free).
    noise : bool
        Whether the masking noise plays.
    tone : bool
        Whether a short tone marks that this appeared, two in interval 2.
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
    workspace: Corners | None = None
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


# --- to the experimenter's screen


@dataclass(frozen=True)
class Plan:
    """What will be done in this session; said once, and again to a screen that joins.

    Attributes
    ----------
    experiment, participant : str
        The name of the design, and the code of the participant.
    trials : int or None
        How many there will be, practice aside, where that is known.
    axis, unit : str
        What is varied (``law.force``) and the unit of its levels.
    blind : bool
        Whether condition, level, track, kind of trial, outcome and force stay hidden. Then the experiment leaves them
        out of all that it says, and the screen shows none even if it is told.
    staircase : bool
        Whether reversals mean something.
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
    """Where the session is; said whenever that changes.

    Attributes
    ----------
    phase : str
        What is going on, in a few words: ``interval 1 of 2``, ``waiting for the answer``, ``pause``.
    trial, block : int
        Counted from 1; 0 before the first.
    of : int or None
        How many trials there will be.
    kind, condition : str
        Kind of the trial, and its condition.
    track : str or None
        What it is called; None where it is hidden.
    level : float or None
        In units of the axis; None where it is hidden.
    attempt : int
        Of this trial, from 1.
    remaining : float or None
        How long the rest will take, about [s].
    paused : bool
        Whether the session waits until somebody lets it go on.
    """

    phase: str
    trial: int = 0
    of: int | None = None
    block: int = 0
    kind: str = ""
    condition: str = ""
    track: str | None = None
    level: float | None = None
    attempt: int = 1
    remaining: float | None = None
    paused: bool = False


@dataclass(frozen=True)
class Outcome:
    """How a trial ended.

    Attributes
    ----------
    outcome : str
        ``ok``, ``repeat`` or ``aborted``.
    reasons : tuple of str
        Why it is repeated.
    response : str
        As the participant gave it.
    correct : bool or None
        None where there is no right answer, or it is hidden.
    reaction_time : float or None
        [s].
    """

    trial: int
    outcome: Literal["ok", "repeat", "aborted"]
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
    """One line of the certificate: what, how much, and whether that is good; blind mode hides a `telling` one."""

    name: str
    value: str
    verdict: Literal["", "good", "doubtful", "bad"] = ""
    telling: bool = False


@dataclass(frozen=True)
class Certificate:
    """How well the stimuli have been rendered so far."""

    figures: tuple[Figure, ...]


@dataclass(frozen=True)
class Notice:
    """Something that the experimenter should know, in words: a fault, a lost screen, a trial repeated."""

    words: str


# --- from the screens


@dataclass(frozen=True)
class Pause:
    """Pause at the next safe place: after the present trial, or at once with the trial to be repeated, as designed."""


@dataclass(frozen=True)
class GoOn:
    """End the pause."""


@dataclass(frozen=True)
class Redo:
    """Throw the last trial away and do it again."""


@dataclass(frozen=True)
class Abort:
    """End the session; a person has confirmed it."""


@dataclass(frozen=True)
class Note:
    """What the experimenter writes into the journal."""

    text: str


@dataclass(frozen=True)
class Cannot:
    """The participant's screen cannot do what was asked; `words` say why and what to do, the session what it means."""

    what: Literal["window", "sound", "trace"]
    words: str
