"""Tables of the file of a sweep, except the session tables, which are in `apps.settings.config`."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from haptics.errors import ConfigurationError
from haptics.settings import bounded, build, check, choice, documented, string, unrestricted

MOST_JOBS = 1_000_000

_TABLES = ("session", "device", "hand", "law", "element", "envelope")
"""Session tables whose settings an axis may vary."""

_NUMBERS = "a list of at least one value"


@documented
@dataclass(frozen=True)
class SweepSettings:
    """Table ``sweep``: duration of the sessions, points of the design, and outcomes."""

    duration: float = bounded(2.0, above=0.0, maximum=1e5, unit="s", doc="length of each session, simulated")
    settle: float = bounded(0.5, minimum=0.0, maximum=1e5, unit="s", doc="time at the beginning that does not count")
    design: str = choice("grid", ("grid", "random", "sobol"), doc="which points: all combinations, or drawn ones")
    points: int = bounded(64, minimum=1, maximum=MOST_JOBS, doc="number of points of a design that is drawn")
    repeats: int = bounded(1, minimum=1, maximum=10000, doc="sessions at each point, each with a seed of its own")
    seed: int = bounded(1, minimum=0, maximum=2**62, doc="seed of the design and of all sessions")
    outcomes: Any = unrestricted((), "a list of outcomes; all if empty", doc="what is kept of a session")
    function: str = string("", allowed="MODULE:NAME", doc="function of one's own: of the rows of a session, to numbers")
    buzz_limit: float = bounded(
        0.15, above=0.0, maximum=10.0, doc="stable means less buzz than this share of the largest friction force"
    )

    def __post_init__(self) -> None:
        check(self, "sweep")
        if not self.settle < self.duration:
            raise ConfigurationError(
                f"sweep.settle = {self.settle:g} s: must be less than sweep.duration = {self.duration:g} s."
            )
        names = self.outcomes
        if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
            raise ConfigurationError(f"sweep.outcomes = {names!r}: must be a list of names of outcomes.")
        object.__setattr__(self, "outcomes", tuple(names))


@documented
@dataclass(frozen=True)
class AxisSettings:
    """Table ``axes``: a setting that varies, with a list of values or a range."""

    setting: str = string(allowed="a setting such as element.stiffness", doc="the setting that varies")
    values: Any = unrestricted((), _NUMBERS, doc="its values, numbers or texts")
    start: float | None = unrestricted(None, "a number", doc="lowest value of a range")
    stop: float | None = unrestricted(None, "a number", doc="highest value of a range")
    count: int = bounded(10, minimum=2, maximum=100_000, doc="values of a range, where all of them are taken")
    scale: str = choice("linear", ("linear", "log"), doc="equal differences, or equal ratios")

    def __post_init__(self) -> None:
        check(self, "axes")
        table, dot, name = self.setting.partition(".")
        if not dot or not name or table not in _TABLES:
            raise ConfigurationError(
                f"axes.setting = {self.setting!r}: must be a setting of {', '.join(_TABLES)}, such as law.force."
            )
        if not isinstance(self.values, list | tuple):
            raise ConfigurationError(f"axes.values = {self.values!r}: must be {_NUMBERS}.")
        object.__setattr__(self, "values", tuple(self.values))
        if bool(self.values) == self.is_range:
            raise ConfigurationError(f"axis {self.setting}: needs either values, or start and stop.")
        if self.is_range:
            self._require_range()

    @property
    def is_range(self) -> bool:
        """Whether the axis is a range."""
        return self.start is not None or self.stop is not None

    @property
    def ends(self) -> tuple[float, float]:
        """Lowest and highest value of a range."""
        return float(self.start or 0.0), float(self.stop or 0.0)

    def _require_range(self) -> None:
        for name in ("start", "stop"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
                raise ConfigurationError(f"axis {self.setting}: {name} = {value!r}: must be a number.")
        low, high = self.ends
        if not low < high:
            raise ConfigurationError(f"axis {self.setting}: start = {low:g} must be less than stop = {high:g}.")
        if self.scale == "log" and low <= 0.0:
            raise ConfigurationError(f"axis {self.setting}: start = {low:g} must be greater than 0 on a log scale.")

    def at(self, share: float) -> Any:
        """Return the value at the relative position `share`, from 0 to 1, of the axis."""
        if not self.is_range:
            return self.values[min(int(share * len(self.values)), len(self.values) - 1)]
        low, high = self.ends
        if self.scale == "log":
            return low * (high / low) ** share
        return low + (high - low) * share

    def all(self) -> list[Any]:
        """Return all grid values in order.

        Both ends of a range are exact.
        """
        if not self.is_range:
            return list(self.values)
        low, high = self.ends
        return [low, *(self.at(k / (self.count - 1)) for k in range(1, self.count - 1)), high]


def read_axis(table: Any) -> AxisSettings:
    """Return the axis described by a table of the file."""
    if not isinstance(table, dict):
        raise ConfigurationError("axes: must be tables, [[axes]].")
    return build(AxisSettings, table, "axes")
