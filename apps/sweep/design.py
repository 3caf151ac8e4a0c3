"""A sweep as its file describes it: the session that all have in common, and a job for every point of the design."""

from __future__ import annotations

import hashlib
import itertools
import json
import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from apps.settings.config import TABLES as SESSION_TABLES
from apps.settings.config import SessionConfig, assign, complete
from apps.settings.models import Table
from apps.settings.scenes import with_scene_in_session
from apps.sweep.outcomes import OUTCOMES, load_function
from apps.sweep.settings import MOST_JOBS, AxisSettings, SweepSettings, read_axis
from haptics.errors import ConfigurationError
from haptics.reading import read_toml
from haptics.settings import build, unknown

_OWN = ("sweep", "axes")


@dataclass(frozen=True)
class Job:
    """One simulated session.

    Attributes
    ----------
    number : int
        Its place in the design.
    point : dict
        Settings of the axes, by name.
    seed : int
        Of everything random in the session.
    """

    number: int
    point: dict[str, Any]
    seed: int

    def key(self, common: str) -> str:
        """Return what a result is known by: the same for the same session of the same sweep, whatever its place."""
        words = json.dumps([common, self.point, self.seed], sort_keys=True)
        return hashlib.sha256(words.encode()).hexdigest()[:32]


@dataclass(frozen=True)
class Sweep:
    """A sweep.

    Attributes
    ----------
    settings : SweepSettings
        The table ``sweep``.
    axes : tuple of AxisSettings
        What varies.
    tables : dict
        Tables of the session that all jobs have in common.
    """

    settings: SweepSettings
    axes: tuple[AxisSettings, ...]
    tables: dict[str, Table]

    @property
    def common(self) -> str:
        """What all jobs have in common, as text: their results are only comparable if it is the same."""
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
        """Yield all jobs; each has a seed by its place in the design, and no job's depends on another's."""
        repeats = self.settings.repeats
        for number, point in enumerate(self._points()):
            for again in range(repeats):
                seed = np.random.SeedSequence(self.settings.seed, spawn_key=(number, again))
                yield Job(number * repeats + again, point, int(seed.generate_state(1, np.uint64)[0] >> 2))

    def _points(self) -> Iterator[dict[str, Any]]:
        names = [axis.setting for axis in self.axes]
        if self.settings.design == "grid":
            for values in itertools.product(*(axis.all() for axis in self.axes)):
                yield dict(zip(names, values, strict=True))
            return
        for shares in _drawn(self.settings, len(self.axes)):
            yield {axis.setting: axis.at(float(share)) for axis, share in zip(self.axes, shares, strict=True)}

    def config(self, job: Job) -> SessionConfig:
        """Return the session of a job, validated.

        Raises
        ------
        ConfigurationError
            If a point is not allowed.
        """
        tables: dict[str, Table] = json.loads(json.dumps(self.tables))
        for setting, value in job.point.items():
            table, _, name = setting.partition(".")
            assign(tables, table, name, value)
        own = {"clock": "off", "duration": self.settings.duration, "seed": job.seed, "picture": False}
        tables["session"] = tables.get("session", {}) | own
        return complete(tables)


def _drawn(settings: SweepSettings, width: int) -> Any:
    """Return the points of a design that is drawn, (points, width), each number from 0 to 1."""
    if settings.design == "random":
        return np.random.default_rng(settings.seed).random((settings.points, width))
    from scipy.stats.qmc import Sobol

    # A power of two keeps the balance of the sequence; what is beyond the number that was asked for is left out.
    exponent = math.ceil(math.log2(settings.points))
    return Sobol(width, rng=np.random.default_rng(settings.seed)).random_base2(exponent)[: settings.points]


def read_sweep(path: Path) -> Sweep:
    """Read a sweep's file and see that its first and last job can be run.

    Raises
    ------
    ConfigurationError
        On whatever is wrong with it.
    """
    tables = with_scene_in_session(read_toml(path, f"sweep {path}"))
    for name in tables:
        if name not in (*_OWN, *SESSION_TABLES):
            raise unknown(f"table in {path}:", name, (*_OWN, *SESSION_TABLES))
    settings = build(SweepSettings, _table(tables, "sweep"), "sweep")
    axes = tables.get("axes", [])
    if not isinstance(axes, list) or not axes:
        raise ConfigurationError(f"{path}: needs at least one table [[axes]] with a setting that varies.")
    session = {name: dict(_table(tables, name)) for name in SESSION_TABLES if name in tables}
    sweep = Sweep(settings, tuple(read_axis(axis) for axis in axes), session)
    _require_sound(sweep)
    return sweep


def _table(tables: dict[str, Any], name: str) -> dict[str, Any]:
    table = tables.get(name, {})
    if not isinstance(table, dict):
        raise ConfigurationError(f"{name}: must be a table, [{name}].")
    return table


def _require_sound(sweep: Sweep) -> None:
    names = [axis.setting for axis in sweep.axes]
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise ConfigurationError(f"axes: {', '.join(sorted(twice))} is there twice; one axis for each setting.")
    if sweep.count > MOST_JOBS:
        raise ConfigurationError(f"the sweep has {sweep.count} jobs; at most {MOST_JOBS} may be. Take fewer.")
    for name in sweep.settings.outcomes:
        if name not in OUTCOMES:
            raise unknown("outcome", name, OUTCOMES)
    load_function(sweep.settings.function)
    sweep.config(next(sweep.jobs()))
