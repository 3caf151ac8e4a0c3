"""Walls in a recording: their effect in every tick, and checks of normal force and proxy."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from apps.verify.envelope.admittance import braking
from apps.verify.envelope.history import History
from apps.verify.findings import Findings
from apps.verify.recorded import Stretch, Window
from apps.verify.walls.handles import Touch, Walls, on_a_handle
from apps.verify.walls.masses import Mass, on_a_mass
from apps.verify.walls.solids import on_the_surface

Floats = NDArray[np.float64]


class Touching:
    """Computes the effect of the walls over consecutive windows."""

    def __init__(self) -> None:
        self._tables: list[dict[str, Any]] = []
        self._touch = Touch()
        self._last: Walls | None = None

    def walls(self, run: Window, history: History, findings: Findings) -> Walls:
        """Return the effect of the walls in every tick of a window; zero in bad ticks and without walls."""
        found, versions = Walls(run.count), run.column("settings_version")
        if self._last is not None:
            _continued(found, self._last, run.skip)
        good = np.flatnonzero(run.good & ~run.in_motion)
        good = good[good >= run.skip]
        tables = {version: tables_of(run.journal.get(version, {})) for version in np.unique(versions).tolist()}
        changes = (np.flatnonzero(np.diff(versions[good])) + 1).tolist()
        begins = [k for k in changes if tables[versions[good[k]]] != tables[versions[good[k - 1]]]]
        for rows in np.split(good, begins):
            if len(rows):
                self._enter(run, history, tables[versions[rows[0]]], rows, found)
        _check_normal(run, good, found, findings)
        self._last = found
        return found

    def _enter(
        self, run: Window, history: History, walls: list[dict[str, Any]], rows: NDArray[np.int64], found: Walls
    ) -> None:
        """Add the effect of `walls` in some rows."""
        if walls != self._tables:
            self._tables, self._touch = walls, Touch()
        if not walls:
            return
        if run.impedance:
            anew = (history.after_bad[rows] > 0) | history.fresh[rows]
            anew[0] |= self._touch.place is None
            place, velocity = run.column("position")[rows], run.column("velocity")[rows]
            met = on_a_handle(walls, place, velocity, anew, run.period, self._touch, run.total)
        else:
            met = _on_an_arm(run, history, walls, rows)
        for one in fields(Walls):
            if one.name != "count":
                getattr(found, one.name)[rows] = getattr(met, one.name)


def _continued(walls: Walls, last: Walls, count: int) -> None:
    """Copy the first `count` ticks from the end of the previous window."""
    if count:
        for one in fields(Walls):
            if one.name != "count":
                getattr(walls, one.name)[:count] = getattr(last, one.name)[-count:]


def tables_of(settings: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the tables of the walls in some settings."""
    scene = settings.get("scene")
    return list(scene.get("walls", [])) if isinstance(scene, dict) else []


def _on_an_arm(run: Window, history: History, walls: list[dict[str, Any]], rows: NDArray[np.int64]) -> Walls:
    heard = np.where(braking(history, slice(0, run.count)), 1.0, history.share)
    before = np.concatenate((np.zeros((1, 2)), run.column("friction_force")[:-1]))
    through_a_spring = (run.parameter("stiffness") > 0.0) & ~history.fresh & (history.after_bad == 0)
    force = heard[:, None] * run.column("force") - np.where(through_a_spring[:, None], before, 0.0)
    mass = Mass(run.parameter("mass")[rows], run.last[rows], force[rows], float(run.limit("max_acceleration")))
    return on_a_mass(walls, run.reference[rows], mass, heard[rows], run.period, run.total)


def _check_normal(run: Window, good: NDArray[np.int64], met: Walls, findings: Findings) -> None:
    """Compare the recorded normal force with the computed one in ticks with walls."""
    walled = [version for version, entry in run.journal.items() if tables_of(entry)]
    rows = good[np.isin(run.column("settings_version")[good], walled)]
    off = run.column("normal_force")[rows] - met.normal[rows]
    words = "the normal force is not that of the walls at this depth"
    findings.residual("walls", "normal force", run.tick[rows], off, met.doubt[rows], "N", words)


def check_proxy(stretch: Stretch, proxy: Floats, findings: Findings) -> None:
    """Check that the recorded proxy is the projection of the proxy onto the surface of the walls."""
    expected = on_the_surface(tables_of(stretch.settings), proxy)
    off = np.abs(stretch["proxy"] - expected).max(axis=1)
    off[np.isnan(expected).any(axis=1) & np.isnan(stretch["proxy"]).any(axis=1)] = 0.0  # the position is unknown
    words = "the proxy is not on the surface of the wall"
    findings.residual("proxy", "proxy", stretch.tick, off, np.full(len(off), 1e-12), "m", words)
