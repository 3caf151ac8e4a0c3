"""Definition of a sweep: shared settings of all sessions, and a job for each point of the design."""

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
from apps.settings.models import Table, with_scene_in_session
from apps.sweep.outcomes import OUTCOMES, load_function
from apps.sweep.settings import MOST_JOBS, AxisSettings, SweepSettings, read_axis
from haptics.errors import ConfigurationError
from haptics.files import read_toml
from haptics.settings import build, unknown_name

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
        names = [axis.setting for axis in self.axes]
        if self.settings.design == "grid":
            for values in itertools.product(*(axis.all() for axis in self.axes)):
                yield dict(zip(names, values, strict=True))
            return
        for shares in _drawn(self.settings, len(self.axes)):
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


def _drawn(settings: SweepSettings, width: int) -> Any:
    """Return the points of a random or Sobol design, shape (points, width), with values from 0 to 1."""
    if settings.design == "random":
        return np.random.default_rng(settings.seed).random((settings.points, width))
    from scipy.stats.qmc import Sobol

    # A power of two preserves the balance of the Sobol sequence. Excess points are dropped.
    exponent = math.ceil(math.log2(settings.points))
    return Sobol(width, rng=np.random.default_rng(settings.seed)).random_base2(exponent)[: settings.points]


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
            raise unknown_name("outcome", name, OUTCOMES)
    load_function(sweep.settings.function)
    sweep.config(next(sweep.jobs()))
