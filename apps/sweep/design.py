"""Definition of a sweep: its settings, the points of its design, a job for each point, and the outcomes of a job.

`apps.settings.config` describes the session tables of the file.
"""

from __future__ import annotations

import hashlib
import importlib
import itertools
import json
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from apps.settings.config import TABLES as SESSION_TABLES
from apps.settings.config import SessionConfig, assign, complete
from apps.settings.models import Table, with_scene_in_session
from haptics.device import Causality
from haptics.errors import ConfigurationError
from haptics.files import read_toml
from haptics.records import Rows, Status
from haptics.settings import bounded, build, check, choice, documented, string, unknown_name, unrestricted

# --- outcomes of a session --------------------------------------------------------------------------------------------

UNSTABLE = int(Status.NOT_FINITE | Status.IMPLAUSIBLE | Status.SPEED | Status.ENERGY | Status.ASTRAY)
"""Status flags that mark a session as unstable."""

OUTCOMES: dict[str, str] = {
    "stable": "1 where no flag of trouble was set and the buzz is below sweep.buzz_limit; else 0",
    "stick_fraction": "share of the ticks in which the contact sticks",
    "friction_mean_n": "friction force while the contact slides, mean [N]",
    "friction_std_n": "friction force while the contact slides, standard deviation [N]",
    "friction_max_n": "largest friction force [N]",
    "breakaway_error": "how far friction_max_n is from the (largest) break-away force of the law, relative to that",
    "direction_error_deg": "angle between friction and sliding, mean while the contact slides [deg]",
    "felt_mean_n": "force of the hand along the sliding, mean [N]; none on an admittance device",
    "felt_error": "how far felt_mean_n is from friction_mean_n, relative to that",
    "buzz": "command above 10 Hz, root mean square [N or m]",
    "rest_buzz": "the same while the contact sticks [N or m]",
    "drift_m_per_s": "slope of the straight line that fits the position best [m/s]",
    "creep_m_per_s": "how fast the proxy goes away while the contact sticks: the way between its ends, over the time",
    "path_m": "path of the end effector [m]",
    "largest_speed_m_per_s": "largest speed of the end effector [m/s]",
    "largest_command": "largest command [N or m]",
    "injected_energy_j": "largest energy that the loop had injected [J]",
    "unusable_ticks": "ticks without a usable sample",
    "flags": "all flags that were set, as bits (haptics.Status)",
    "bound_growth_per_s": "what the bound says: growth of the sticking loop with the bare device, stable below 0 [1/s]",
}
"""Description of each outcome by name."""

Function = Callable[[Rows], Any]


def outcomes_of(sums: Any, config: SessionConfig, buzz_limit: float) -> dict[str, float | int | None]:
    """Return the outcomes of a session, except the bound, from one record of `apps.sweep.running.SUMS`."""
    element, causality = config.built_element, config.causality
    strongest = config.strongest_element.law.breakaway_force
    n, sliding = max(int(sums["ticks"]), 1), int(sums["sliding"])
    mean = _ratio(sums["slide"], sliding)
    square = _ratio(sums["slide_square"], sliding)
    impedance = causality is Causality.IMPEDANCE
    felt = _ratio(sums["felt"], int(sums["known"])) if impedance else None
    n_ticks, t, square_t = float(sums["ticks"]), float(sums["t"]), float(sums["t_square"])
    spread, drift = n_ticks * square_t - t * t, 0.0  # speed of the least-squares line through the positions
    if spread > 0.0:
        slopes = ((n_ticks * float(sums["x_t"][i]) - t * float(sums["x"][i])) / spread for i in range(2))
        drift = math.hypot(*slopes)
    rest = _ratio(sums["rest_buzz"], int(sums["sticking"]))
    buzz, friction_max = math.sqrt(float(sums["buzz"]) / n), float(sums["friction_max"])
    quiet = not impedance or buzz <= buzz_limit * friction_max
    return {
        "stable": int(quiet and not int(sums["flags"]) & UNSTABLE and int(sums["ticks"]) > 0),
        "stick_fraction": float(sums["sticking"]) / n,
        "friction_mean_n": mean,
        "friction_std_n": None if mean is None or square is None else math.sqrt(max(square - mean * mean, 0.0)),
        "friction_max_n": friction_max,
        "breakaway_error": _relative(friction_max, strongest),
        "direction_error_deg": None if not sliding else math.degrees(float(sums["aside"]) / sliding),
        "felt_mean_n": felt,
        "felt_error": _relative(felt, mean),
        "buzz": buzz,
        "rest_buzz": None if rest is None else math.sqrt(rest),
        "drift_m_per_s": drift,
        "creep_m_per_s": _ratio(math.hypot(*sums["crept"]) / element.period, int(sums["sticking"])),
        "path_m": float(sums["path"]),
        "largest_speed_m_per_s": float(sums["speed_max"]),
        "largest_command": float(sums["command_max"]),
        "injected_energy_j": float(sums["energy_max"]),
        "unusable_ticks": int(sums["unusable"]),
        "flags": int(sums["flags"]),
    }


def _ratio(total: Any, count: int) -> float | None:
    return float(total) / count if count else None


def _relative(value: float | None, reference: float | None) -> float | None:
    """Return the relative deviation of a value from a reference."""
    return None if value is None or not reference else value / reference - 1.0


def bound_growth(config: SessionConfig) -> float | None:
    """Return the growth rate of the bare device while the contact sticks [1/s], or None without a bound.

    It is the rate of the dominant eigenvalue of `haptics.design.loops.stuck_matrix`. The hand is not modelled.
    """
    from haptics.design.loops import Coupling, Handle, growth, stuck_matrix

    handle, element = Handle.of(config.spec), config.built_element
    if config.causality is not Causality.IMPEDANCE or handle is None or not hasattr(element, "stiffness"):
        return None
    coupling = Coupling(element.coupling_stiffness, getattr(element, "damping", 0.0), element.period)
    return math.log(max(growth(stuck_matrix(coupling, handle)), 1e-300)) / element.period


def load_function(place: str) -> Function | None:
    """Return the function at ``MODULE:NAME``, or None for an empty string.

    Raises
    ------
    ConfigurationError
        If it cannot be imported or is not callable.
    """
    if not place:
        return None
    module, colon, name = place.partition(":")
    try:
        found = getattr(importlib.import_module(module), name) if colon else None
    except (ImportError, AttributeError, ValueError) as error:
        raise ConfigurationError(
            f"sweep.function = {place!r}: cannot be loaded ({error}); start where Python finds the module."
        ) from error
    if not callable(found):
        raise ConfigurationError(f"sweep.function = {place!r}: must be MODULE:NAME of a function of a session's rows.")
    result: Function = found
    return result


def numbers_of(place: str, value: Any) -> dict[str, float | None]:
    """Convert the return value of a user-defined function, a number or a table, to outcomes.

    Raises
    ------
    ConfigurationError
        If the value is neither.
    """
    name = place.partition(":")[2]
    table = value if isinstance(value, Mapping) else {name: value}
    try:
        numbers = {str(key): float(number) for key, number in table.items()}
    except (TypeError, ValueError) as error:
        raise ConfigurationError(
            f"sweep.function = {place!r}: must return a number or a table of numbers ({error})."
        ) from error
    return {key: number if math.isfinite(number) else None for key, number in numbers.items()}


# --- sweeps -----------------------------------------------------------------------------------------------------------

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
        if not self.is_range:
            return
        for name in ("start", "stop"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
                raise ConfigurationError(f"axis {self.setting}: {name} = {value!r}: must be a number.")
        low, high = self.ends
        if not low < high:
            raise ConfigurationError(f"axis {self.setting}: start = {low:g} must be less than stop = {high:g}.")
        if self.scale == "log" and low <= 0.0:
            raise ConfigurationError(f"axis {self.setting}: start = {low:g} must be greater than 0 on a log scale.")

    @property
    def is_range(self) -> bool:
        """Whether the axis is a range."""
        return self.start is not None or self.stop is not None

    @property
    def ends(self) -> tuple[float, float]:
        """Lowest and highest value of a range."""
        return float(self.start or 0.0), float(self.stop or 0.0)

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


_OWN = ("sweep", "axes")


@dataclass(frozen=True)
class Job:
    """One simulated session.

    Attributes
    ----------
    number : int
        Index in the design.
    point : dict
        Values of the axes by setting.
    seed : int
        Seed of the session.
    """

    number: int
    point: dict[str, Any]
    seed: int

    def key(self, common: str) -> str:
        """Return the key of the result, which depends on the session and the sweep but not on the job's index."""
        words = json.dumps([common, self.point, self.seed], sort_keys=True)
        return hashlib.sha256(words.encode()).hexdigest()[:32]


@dataclass(frozen=True)
class Sweep:
    """Definition of a sweep.

    Attributes
    ----------
    settings : SweepSettings
        The table ``sweep``.
    axes : tuple of AxisSettings
        The axes.
    tables : dict
        Session tables that all jobs share.
    """

    settings: SweepSettings
    axes: tuple[AxisSettings, ...]
    tables: dict[str, Table]

    @property
    def common(self) -> str:
        """Shared settings of all jobs as text.

        Results are comparable only if it is identical.
        """
        kept = ("duration", "settle", "outcomes", "function", "buzz_limit")
        own = {name: value for name, value in asdict(self.settings).items() if name in kept}
        return json.dumps([own, self.tables], sort_keys=True)

    @property
    def count(self) -> int:
        """Number of jobs."""
        sizes = [len(axis.all()) for axis in self.axes]
        points = math.prod(sizes) if self.settings.design == "grid" else self.settings.points
        return points * self.settings.repeats

    def jobs(self) -> Iterator[Job]:
        """Yield all jobs.

        The seed of a job depends only on its index in the design.
        """
        repeats = self.settings.repeats
        for number, point in enumerate(self._points()):
            for again in range(repeats):
                seed = np.random.SeedSequence(self.settings.seed, spawn_key=(number, again))
                yield Job(number * repeats + again, point, int(seed.generate_state(1, np.uint64)[0] >> 2))

    def _points(self) -> Iterator[dict[str, Any]]:
        settings, names = self.settings, [axis.setting for axis in self.axes]
        if settings.design == "grid":
            for values in itertools.product(*(axis.all() for axis in self.axes)):
                yield dict(zip(names, values, strict=True))
            return
        rng, shape = np.random.default_rng(settings.seed), (settings.points, len(names))
        if settings.design == "random":
            drawn = rng.random(shape)
        else:
            from scipy.stats.qmc import Sobol

            # A power of two preserves the balance of the Sobol sequence. Excess points are dropped.
            exponent = math.ceil(math.log2(settings.points))
            drawn = Sobol(len(names), rng=rng).random_base2(exponent)[: settings.points]
        for shares in drawn:
            yield {axis.setting: axis.at(float(share)) for axis, share in zip(self.axes, shares, strict=True)}

    def config(self, job: Job) -> SessionConfig:
        """Return the validated session settings of a job.

        Raises
        ------
        ConfigurationError
            If a value of the point is invalid.
        """
        tables: dict[str, Table] = json.loads(json.dumps(self.tables))
        for setting, value in job.point.items():
            table, _, name = setting.partition(".")
            assign(tables, table, name, value)
        own = {"clock": "off", "duration": self.settings.duration, "seed": job.seed, "picture": False}
        tables["session"] = tables.get("session", {}) | own
        return complete(tables)


def read_sweep(path: Path) -> Sweep:
    """Read the file of a sweep and validate its settings and its first job.

    Raises
    ------
    ConfigurationError
        If the file or a setting is invalid.
    """
    tables = with_scene_in_session(read_toml(path, f"sweep {path}"))
    for name in tables:
        if name not in (*_OWN, *SESSION_TABLES):
            raise unknown_name(f"table in {path}:", name, (*_OWN, *SESSION_TABLES))
    settings = build(SweepSettings, _table(tables, "sweep"), "sweep")
    axes = tables.get("axes", [])
    if not isinstance(axes, list) or not axes:
        raise ConfigurationError(f"{path}: needs at least one table [[axes]] with a setting that varies.")
    session = {name: dict(_table(tables, name)) for name in SESSION_TABLES if name in tables}
    if not all(isinstance(axis, dict) for axis in axes):
        raise ConfigurationError("axes: must be tables, [[axes]].")
    sweep = Sweep(settings, tuple(build(AxisSettings, axis, "axes") for axis in axes), session)
    names = [axis.setting for axis in sweep.axes]
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise ConfigurationError(f"axes: {', '.join(sorted(twice))} is there twice; one axis for each setting.")
    if sweep.count > MOST_JOBS:
        raise ConfigurationError(f"the sweep has {sweep.count} jobs; at most {MOST_JOBS} may be. Take fewer.")
    for name in settings.outcomes:
        if name not in OUTCOMES:
            raise unknown_name("outcome", name, OUTCOMES)
    load_function(settings.function)
    sweep.config(next(sweep.jobs()))
    return sweep


def _table(tables: dict[str, Any], name: str) -> dict[str, Any]:
    table = tables.get(name, {})
    if not isinstance(table, dict):
        raise ConfigurationError(f"{name}: must be a table, [{name}].")
    return table
