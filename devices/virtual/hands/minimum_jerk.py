"""Hand on a tour: minimum-jerk strokes, a curve, and rests with a fluctuating force.

Between two points a hand moves with a bell-shaped speed profile that minimises jerk (Flash and Hogan 1985). The path
fraction is ``10 u^3 - 15 u^4 + 6 u^5`` of the time fraction ``u``. The default tour consists of the motions in section
V of Kikuuwe et al. 2006: straight strokes a-b-c-d, a curve d-e, and rests at b and c. At rest the hand relaxes its
grip, and its force fluctuates, too weak to overcome the friction of the motion before.
"""

from __future__ import annotations

import functools
import math
import random
import string
from dataclasses import dataclass
from typing import Any

import numpy as np

from devices.common.settings import Point, Workspace
from devices.virtual.hands.hand import CompiledHand, GripSettings, number_rows
from devices.virtual.hands.records import HAND_FIELDS, PHASE, TREMOR_FIELDS, place_in
from haptics.errors import ConfigurationError
from haptics.records import fields
from haptics.settings import bounded, documented, unrestricted

DEFAULT_POINTS: dict[str, Point] = {
    "a": (-0.07, -0.05),
    "b": (0.0, -0.05),
    "c": (0.06, -0.02),
    "d": (0.06, 0.02),
    "e": (-0.03, 0.02),
}
"""Points of the default tour by letter [m], relative to the centre of the workspace."""

# Half width and height of the default tour's workspace [m]; smaller ones scale the tour down.
_ROOM: Point = (0.1, 0.08)

_CURVES = ("d-e",)
_RESTS = ("b", "c")

_PEAK_TO_MEAN_SPEED = 1.875  # ratio of peak speed to mean speed of a minimum-jerk stroke

# Frequency [Hz] and fraction of the waves of the fluctuating force; the fractions add up to 1.
_WANDER = ((0.9, 0.6), (2.3, 0.4))

WANDERING = len(_WANDER)

TOUR = np.dtype(
    [
        *HAND_FIELDS,
        *TREMOR_FIELDS,
        *fields("<i8", "phases phase_count"),
        *fields("<f8", "length rest_grip rest_force"),
        ("wander", "<f8", (WANDERING, 5)),
    ]
)
"""Record of the hand.

``phases`` is the address of the tour. Each row of ``wander`` contains the angular frequency [rad/s], the fraction, the
phase [rad] and the direction (x, y) of a wave of the fluctuating force.
"""


_RELAXING = 0.25  # time in which the hand relaxes its grip, and tightens it again [s]


@dataclass(frozen=True)
class Phase:
    """Phase of the tour: a stroke, a curve or a stop.

    Attributes
    ----------
    label : str
        Letters that it connects (``a-b``), or letter of the stop.
    start, duration : float
        Start within the tour and duration [s].
    origin, goal : (x, y)
        First and last point [m].
    centre : (x, y) or None
        Centre of the half circle of a curve, which is anticlockwise.
    rest : bool
        True if the hand relaxes and its force fluctuates.
    """

    label: str
    start: float
    duration: float
    origin: Point
    goal: Point
    centre: Point | None = None
    rest: bool = False

    @property
    def curved(self) -> bool:
        """True for a half circle."""
        return self.centre is not None


@documented
@dataclass(frozen=True)
class MinimumJerkSettings(GripSettings):
    """Settings of the hand "minimum-jerk"."""

    tremor: float = bounded(
        0.1, minimum=0.0, maximum=2.0, unit="N", doc="rms force of the hand's tremor, at 8 to 12 Hz"
    )
    points: Any = unrestricted(
        (), "rows of [x, y] in m", doc="via-points of a tour, lettered a, b, c and so on; empty for the default tour"
    )
    curves: Any = unrestricted(
        (),
        "a list of strokes such as 'd-e'",
        doc="strokes that are half circles, counter-clockwise; empty for the default ones",
    )
    rests: Any = unrestricted(
        (),
        "a list of letters",
        doc="points at which the hand rests; empty for the default ones, or all points of a custom tour",
    )
    speed: float = bounded(0.15, minimum=0.005, maximum=1.0, unit="m/s", doc="peak speed of a stroke")
    pause: float = bounded(0.3, minimum=0.0, maximum=60.0, unit="s", doc="duration of a stop at a point")
    rest: float = bounded(1.5, minimum=0.0, maximum=60.0, unit="s", doc="length of a rest")
    rest_force: float = bounded(
        1.6, minimum=0.0, maximum=10.0, unit="N", doc="peak of the fluctuating force during a rest"
    )
    rest_grip: float = bounded(0.4, minimum=0.0, maximum=1.0, doc="fraction of the grip during a rest")

    def __post_init__(self) -> None:
        super().__post_init__()
        points = number_rows(self.points, 2, "hand.points")
        if len(points) == 1:
            raise ConfigurationError("hand.points has one point: a tour needs 2 or more, or none for the default.")
        object.__setattr__(self, "points", points)  # frozen; lists from a file become tuples
        for name in ("curves", "rests"):
            words = getattr(self, name)
            if not isinstance(words, list | tuple) or not all(isinstance(word, str) for word in words):
                raise ConfigurationError(f"hand.{name} = {words!r}: must be a list of words.")
            object.__setattr__(self, name, tuple(words))

    def build(self, seed: int, workspace: Workspace) -> MinimumJerkHand:
        """Plan the tour within `workspace`; `seed` determines tremor and fluctuation."""
        return MinimumJerkHand(self, seed, workspace)


class MinimumJerkHand(CompiledHand):
    """Hand that repeats a tour of its points, created by `MinimumJerkSettings.build`.

    Attributes
    ----------
    phases : tuple of Phase
        Phases of the tour in order; the tour repeats after ``length`` [s].
    """

    def __init__(self, settings: MinimumJerkSettings, seed: int, workspace: Workspace) -> None:
        self.phases = _tour(settings, workspace)
        self.length = self.phases[-1].start + self.phases[-1].duration
        table = np.zeros(len(self.phases), PHASE)
        for row, phase in zip(table, self.phases, strict=True):
            for name in ("start", "duration", "origin", "goal", "curved", "rest"):
                row[name] = getattr(phase, name)
            row["centre"], row["relaxing"] = phase.centre or phase.origin, min(_RELAXING, 0.5 * phase.duration)
        record, generator = np.zeros(1, TOUR), random.Random(seed + 1)
        record["phases"], record["phase_count"], record["length"] = table.ctypes.data, len(table), self.length
        record["rest_grip"], record["rest_force"] = settings.rest_grip, settings.rest_force
        for wave, (frequency, share) in zip(record["wander"][0], _WANDER, strict=True):
            shift, direction = (2.0 * math.pi * generator.random() for _ in range(2))
            wave[:] = 2.0 * math.pi * frequency, share, shift, math.cos(direction), math.sin(direction)
        super().__init__("minimum_jerk", record, settings, seed, self.phases[0].origin, table)


@functools.lru_cache(64)
def _tour(settings: MinimumJerkSettings, workspace: Workspace) -> tuple[Phase, ...]:
    """Return the phases of the tour, all inside the workspace; cached, because many seeds share a tour."""
    if settings.points:
        for number, (x, y) in enumerate(settings.points):
            if not workspace.contains(x, y):
                raise ConfigurationError(
                    f"hand.points[{number}] = [{x:g}, {y:g}] m: must be inside the workspace, {workspace}."
                )
        letters = [*string.ascii_lowercase, *(f"p{number}" for number in range(27, len(settings.points) + 1))]
        points = dict(zip(letters, settings.points, strict=False))
    else:
        cx, cy = workspace.centre
        shrink = min(1.0, (workspace.upper[0] - cx) / _ROOM[0], (workspace.upper[1] - cy) / _ROOM[1])
        points = {letter: (cx + shrink * x, cy + shrink * y) for letter, (x, y) in DEFAULT_POINTS.items()}
    phases = _plan(settings, points)
    for phase in phases:  # half circles may leave the workspace; straight strokes cannot
        for part in range(91 if phase.centre else 0):
            x, y = place_in(phase, part / 90.0 * phase.duration)
            if not workspace.contains(x, y):
                raise ConfigurationError(
                    f"hand.curves: the half circle {phase.label} leaves the workspace, {workspace}, at "
                    f"({x:.3g}, {y:.3g}) m."
                )
    return phases


def _chosen(words: tuple[str, ...], allowed: list[str], default: tuple[str, ...], where: str) -> tuple[str, ...]:
    """Return `words`, or `default` if empty; raise `ConfigurationError` unless all are `allowed`."""
    for word in words:
        if word not in allowed:
            raise ConfigurationError(f"{where} has {word!r}: must be one of {', '.join(allowed)}.")
    return words or default


def _plan(settings: MinimumJerkSettings, points: dict[str, Point]) -> tuple[Phase, ...]:
    """Return the sequence of stops and strokes."""
    phases: list[Phase] = []
    now = 0.0
    letters = list(points)
    strokes = [f"{letter}-{following}" for letter, following in zip(letters, letters[1:] + letters[:1], strict=True)]
    own = bool(settings.points)
    curves = _chosen(settings.curves, strokes, () if own else _CURVES, "hand.curves")
    rests = _chosen(settings.rests, letters, tuple(letters) if own else _RESTS, "hand.rests")
    for stroke in strokes:
        letter, following = stroke.split("-")
        origin, goal = points[letter], points[following]
        centre = ((origin[0] + goal[0]) / 2.0, (origin[1] + goal[1]) / 2.0) if stroke in curves else None
        distance = math.dist(origin, goal) * (math.pi / 2.0 if centre else 1.0)
        stop = settings.rest if letter in rests else settings.pause
        travel = _PEAK_TO_MEAN_SPEED * distance / settings.speed
        for phase in (
            Phase(letter, now, stop, origin, origin, rest=letter in rests),
            Phase(stroke, now + stop, travel, origin, goal, centre),
        ):
            if phase.duration > 0.0:
                phases.append(phase)
        now += stop + travel
    if not phases:
        raise ConfigurationError("hand.points are all the same and rest = 0: the hand has nothing to do.")
    return tuple(phases)
