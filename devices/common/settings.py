"""Settings shared by several devices: run, workspace, timed events as text, and velocity estimate."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from haptics.errors import ConfigurationError
from haptics.settings import Checked, bounded, choice, documented, string

# --- settings ---------------------------------------------------------------------------------------------------------


@documented
@dataclass(frozen=True)
class RunSettings:
    """Settings of the run that every device needs."""

    period: float = bounded(1e-3, minimum=1e-5, maximum=1.0, unit="s", doc="period of a tick without a clock")
    log: str = string("", allowed="a file", doc="log file of commands with their times")


@documented
@dataclass(frozen=True)
class SeedSettings:
    """Seed of the random numbers of a simulated device."""

    seed: int = bounded(0, minimum=0, maximum=2**62, doc="seed of all random numbers")


# --- workspace --------------------------------------------------------------------------------------------------------

Point = tuple[float, float]
"""x and y [m]."""


class Workspace(NamedTuple):
    """Workspace rectangle of a device, by its lower left and upper right corner [m]."""

    lower: Point
    upper: Point

    @property
    def centre(self) -> Point:
        """Centre of the rectangle [m]."""
        return (self.lower[0] + self.upper[0]) / 2.0, (self.lower[1] + self.upper[1]) / 2.0

    @property
    def corners(self) -> tuple[Point, Point, Point, Point]:
        """Corners of the rectangle [m]."""
        (left, low), (right, high) = self.lower, self.upper
        return (left, low), (left, high), (right, low), (right, high)

    def contains(self, x: float, y: float) -> bool:
        """Return True if (x, y) [m] is inside or on the edge; False for nan."""
        return self.lower[0] <= x <= self.upper[0] and self.lower[1] <= y <= self.upper[1]

    def __str__(self) -> str:
        return f"{self.lower[0]:g} to {self.upper[0]:g} m by {self.lower[1]:g} to {self.upper[1]:g} m"


# --- velocity estimate ------------------------------------------------------------------------------------------------

LONGEST_WINDOW = 64
"""Maximum number of periods of a difference."""

LONGEST_FIT = 32
"""Maximum window of the adaptive estimators [samples before the newest one]."""

_SETTLING = 1000  # number of samples after which the gain of a Kalman filter is constant

ESTIMATORS = ("difference", "end-fit", "best-fit", "kalman", "level-crossing", "tracker")
"""Names of the estimators; kernels use the index in this tuple."""


@documented
@dataclass(frozen=True)
class VelocitySettings(Checked):
    """Settings of the velocity estimate of a device that measures positions.

    A driver's settings derive from it with the keyword ``section="device"``, the table in messages.

    Raises
    ------
    ConfigurationError
        If a setting is invalid.
    """

    velocity_estimator: str = choice("tracker", ESTIMATORS, doc="method that estimates velocities from positions")
    velocity_window: int = bounded(
        1, minimum=1, maximum=LONGEST_WINDOW, doc="periods the velocity is averaged over (difference)"
    )
    velocity_memory: float = bounded(
        1.25e-3, minimum=1e-5, maximum=1.0, unit="s", doc="memory of the estimate at rest (tracker, kalman)"
    )
    velocity_acceleration: float = bounded(
        15.0,
        minimum=0.1,
        maximum=1000.0,
        unit="m/s^2",
        doc="acceleration at which the hand starts and stops (tracker, kalman)",
    )
    velocity_rest_gain: float = bounded(
        0.3, minimum=0.05, maximum=1.0, doc="gain for motions of about one count at rest (tracker)"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        where = f"{self.section}." if self.section else ""
        window, name = self.velocity_window, self.velocity_estimator
        if window > 1 and name != "difference":
            raise ConfigurationError(
                f"{where}velocity_window = {window}: only {where}velocity_estimator = 'difference' averages over a "
                f"window; with {name!r} it must be 1."
            )


def velocity_lag(settings: VelocitySettings, resolution: float, period: float) -> float:
    """Return the lag of the velocity of a handle at rest behind a backward difference [s].

    A sticking coupling loses stability by this lag. Adaptive windows are longest at rest. The tracker has no lag. For
    level crossings the lag is unknown until the next crossing.

    Parameters
    ----------
    settings : VelocitySettings
        Estimator and its parameters.
    resolution, period : float
        Resolution of the encoder [m], and time between two samples [s].
    """
    name = settings.velocity_estimator
    if name == "difference":
        return 0.5 * (settings.velocity_window - 1) * period
    if name in {"end-fit", "best-fit"} and resolution > 0.0:
        return 0.5 * (LONGEST_FIT - 1) * period
    if name == "kalman":
        # The lag of a settled Kalman filter with the acceleration intensity S: with settled gains g (position) and h/T
        # (velocity) the sum of the velocities is the estimated position minus (g/h - 1) T v.
        S, R, T = settings.velocity_acceleration**2 * settings.velocity_memory, resolution * resolution / 12.0, period
        a, b, c = R, 0.0, 1.0  # covariance: position, mixed, velocity
        for _ in range(_SETTLING):
            a, b, c = a + 2.0 * T * b + T * T * c + S * T**3 / 3.0, b + T * c + S * T * T / 2.0, c + S * T
            gain, velocity_gain = a / (a + R), b / (a + R)
            a, b, c = (1.0 - gain) * a, (1.0 - gain) * b, c - velocity_gain * b
        return max(gain / velocity_gain - T, 0.0)
    return 0.0


# --- timed events -----------------------------------------------------------------------------------------------------

LATEST = 1e7
"""Maximum start and duration of an event [s]; no run is longer."""

ROUNDING = 1e-9
"""Maximum difference between multiples of a period and times in settings [s]."""

_NUMBER = r"(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?"
_FORM = re.compile(rf"([^@]*)@({_NUMBER})(?:\+({_NUMBER}))?", re.ASCII | re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Timed:
    """Named event with its time; ``str()`` gives the text that `parts_of` parses.

    Attributes
    ----------
    name : str
        Name of the event.
    start : float
        Start on the clock of the run [s].
    duration : float or None
        Duration [s]; None for the default of the event.

    Raises
    ------
    ConfigurationError
        If the time is invalid.
    """

    KIND: ClassVar[str] = "event"

    name: str
    start: float
    duration: float | None = None

    def __post_init__(self) -> None:
        if not 0.0 <= self.start <= LATEST:
            raise ConfigurationError(
                f"{self.KIND} {self}: must begin at 0 s at the earliest and at {LATEST:g} s at the latest."
            )
        if self.duration is not None and not 0.0 < self.duration <= LATEST:
            raise ConfigurationError(f"{self.KIND} {self}: must last longer than 0 s and at most {LATEST:g} s.")

    def __str__(self) -> str:
        lasting = "" if self.duration is None else f"+{plain(self.duration)}"
        return f"{self.name}@{plain(self.start)}{lasting}"


def parts_of(text: str) -> tuple[str, float, float | None] | None:
    """Parse ``NAME@SECONDS+DURATION`` into name, start and duration [s]; None if the format is different."""
    form = _FORM.fullmatch(text.strip())
    if form is None:
        return None
    name, start, duration = form.groups()
    return name, float(start), None if duration is None else float(duration)


def plain(seconds: float) -> str:
    """Return the shortest text for exactly this number."""
    return repr(float(seconds)).removesuffix(".0")
