"""Checks of prescribed motions: reference table, bounds, progress and control force.

The reference is a file of the recording, named in the journal with its SHA-256: rows of position [m], velocity [m/s]
and force [N]. It advances by one row per tick, and waits while the output is faded. An impedance device receives the
force ``F - K e + B (v - u) + L``, limited to the bound, with the position error e and ``L_k = L_(k-1) - I T e``. An
admittance device receives the velocity that takes its reference to the next row, limited to the bound.
"""

from __future__ import annotations

import hashlib
import io
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from apps.verify.envelope import History, output_of, velocity_blur
from apps.verify.findings import Findings
from apps.verify.laws import length
from apps.verify.recorded import UNUSABLE, Flag, Floats, Stretch, rounding

_LARGEST = 200_000_000
_WIDTH = 6

PATIENCE = 0.02
"""Time for which the end effector may exceed the maximum speed of a motion [s]."""


class Motions:
    """Checks motions over consecutive stretches."""

    def __init__(self) -> None:
        self._number, self._row, self._begun, self._racing, self._astray = -1, 0, False, 0, False
        self._origin, self._load, self._steps = np.zeros(2), np.zeros(2), 0

    def check(self, stretch: Stretch, history: History, findings: Findings) -> None:
        """Check the ticks of a stretch."""
        settings, run = stretch.settings, stretch.run
        table, wrong = _table(run.source.folder, settings)
        if table is None:
            findings.violate("motion", wrong)
            return
        motion = settings["motion"]
        number = int(settings.get("program", 0))
        if number != self._number:
            self._number, self._row, self._begun, self._racing, self._astray = number, 0, False, 0, False
        rows, moved = self._rows(stretch, history, table)
        at, sampled = np.maximum(rows, 0), np.flatnonzero(rows >= 0)
        # The tick at which the motion began, if it is in this stretch.
        before: dict[str, Any] = {}
        if stretch.start:
            version = run.column("settings_version", stretch.start - 1, stretch.start)[0]
            before = run.journal.get(int(version), {})
        begins = len(sampled) and before.get("program", -1) != settings.get("program", 0)
        first = int(sampled[0]) if begins else None
        origins = np.zeros((len(stretch), 2))
        if motion.get("relative"):  # to the device position at the start
            if first is not None:
                self._origin = (stretch["position"] if run.impedance else stretch.reference)[first]
            origins = np.broadcast_to(self._origin, origins.shape)
        off = stretch["position"] - stretch["displacement"] - origins - table[at, :2]
        if not run.impedance:  # an arm that holds its position has no error
            off = np.where((history.share[stretch.rows] == 0.0)[:, None], stretch["displacement"], off)
        good, tick = stretch.good & (rows >= 0), stretch.tick
        size = rounding(stretch["position"], table[at, :2], origins)
        words = "the motion went on otherwise"
        findings.residual("motion", "place of the reference", tick, off, size, "m", words, good)
        differs = np.where(moved[:, None], table[at, 2:4], 0.0) != stretch["sliding_velocity"]
        findings.where("motion", tick, good & differs.any(axis=1), "the velocity is not that of the reference")
        ended = (stretch["sticking"] != 0) != (at + 1 >= len(table))
        findings.where("sticking", tick, good & ended, "the motion is said to be at its end or not, and is not")
        self._bounds(stretch, motion, findings)
        if run.impedance:
            self._drawn(stretch, history, (table, at, rows, first), motion, findings)
            return
        # The velocity of an admittance device's reference.
        place, bound = origins + table[at, :2], float(motion["bound"])
        wanted = (place - stretch.reference) / run.period
        speed = np.maximum(length(wanted), 1e-300)[:, None]
        expected = np.where(speed > bound, wanted * (bound / speed), wanted)
        slack = rounding(place, stretch.reference) / run.period + velocity_blur(stretch)
        words, off = "the output does not lead to the next place of the reference", output_of(stretch) - expected
        findings.residual("motion", "velocity of the motion", tick, off, slack, "m/s", words, good)

    def _rows(self, stretch: Stretch, history: History, table: Floats) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Return the table row of each tick, -1 if none, and whether the row advanced."""
        run, last = stretch.run, len(table) - 1
        rows, moved = np.full(len(stretch), -1), np.zeros(len(stretch), bool)
        status, tick, gate = run.status[stretch.rows], stretch.tick, stretch["gate"]
        through = history.share[stretch.rows] if not run.impedance else self._before(stretch, history) * gate
        periods = np.maximum(tick - stretch.back("tick", 1), 1)
        for k in range(len(stretch)):
            if status[k] & UNUSABLE and not status[k] & Flag.ASTRAY:
                continue
            if history.fresh[stretch.start + k]:
                self._row, self._begun, self._astray = 0, False, False
            if self._begun and not self._astray and through[k] >= 1.0 and self._row < last:
                self._row = min(self._row + (int(periods[k]) if run.impedance else 1), last)
                moved[k] = True
            self._begun, rows[k] = True, self._row
            self._astray |= bool(status[k] & Flag.ASTRAY)
        return rows, moved

    @staticmethod
    def _before(stretch: Stretch, history: History) -> Floats:
        """Return the fade gain before each tick."""
        gain = np.zeros(len(stretch))
        gain[1:] = history.gain[stretch.rows][:-1]
        gain[:1] = history.gain[stretch.start - 1] if stretch.start else 0.0
        return np.where(history.started_anew[stretch.rows], 0.0, gain)

    def _bounds(self, stretch: Stretch, motion: dict[str, Any], findings: Findings) -> None:
        """Check that the motion was aborted if the device did not follow it, and only then."""
        astray = (stretch.run.status[stretch.rows] & Flag.ASTRAY) != 0
        lost = length(stretch["displacement"]) > float(motion["max_error"])
        for k, fast in enumerate((length(stretch["velocity"]) > float(motion["max_speed"])).tolist()):
            self._racing = self._racing + 1 if fast else 0
            lost[k] |= self._racing * stretch.run.period > PATIENCE
        words = "the end effector was farther off, or faster, than the motion allows, and was not let go of"
        findings.where("motion", stretch.tick, stretch.good & lost, words)
        first = astray & ~np.concatenate(([False], astray[:-1])) & ~lost
        first[:1] = False
        findings.where("motion", stretch.tick, first, "the motion was given up, though it was followed")

    def _drawn(
        self,
        stretch: Stretch,
        history: History,
        where: tuple[Floats, NDArray[np.int64], NDArray[np.int64], int | None],
        motion: dict[str, Any],
        findings: Findings,
    ) -> None:
        """Check the force on an impedance device."""
        table, at, rows, first = where
        K, B, rate = (float(motion[name]) for name in ("stiffness", "damping", "integration"))
        e, bound, T = stretch["displacement"], float(motion["bound"]), stretch.run.period
        pull = table[at, 4:6] - K * e + B * (stretch["sliding_velocity"] - stretch["velocity"])
        whole = self._before(stretch, history) * stretch["gate"] == 1.0
        expected, loads, steps = np.zeros_like(pull), np.zeros_like(pull), np.zeros(len(pull))
        for k in np.flatnonzero(rows >= 0).tolist():
            if k == first:
                self._load = stretch.last[k] - pull[k]
                if rate == 0.0 or np.hypot(*self._load) > bound:
                    self._load = np.zeros(2)
                self._steps = 0
            loads[k], steps[k] = self._load, self._steps
            force = pull[k] + self._load
            size = float(np.hypot(*force))
            expected[k] = force * (bound / size) if size > bound else force
            if size <= bound and whole[k]:
                self._load = self._load - rate * T * e[k]
                self._steps += 1
        terms = (K * e, B * stretch["velocity"], table[at, 4:6], B * stretch["sliding_velocity"])
        slack = rounding(*terms, loads, bound) * (1.0 + 0.1 * steps[:, None])
        off, good = stretch["command_unlimited"] - expected, stretch.good & (rows >= 0)
        words = "the force is not that of the motion's controller"
        findings.residual("motion", "controller of the motion", stretch.tick, off, slack, "N", words, good)


def _table(folder: Path, settings: dict[str, Any]) -> tuple[Floats | None, str]:
    """Return the table of a motion, or None and the error message."""
    name = f"motion_{int(settings.get('program', 0)):04d}.npy"
    try:
        if (folder / name).stat().st_size > _LARGEST:
            raise ValueError("it is too large")
        data = (folder / name).read_bytes()
        table = np.load(io.BytesIO(data), allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        return None, f"the reference {name} cannot be read ({error})"
    if hashlib.sha256(data).hexdigest() != settings.get("table_sha256"):
        return None, f"the reference {name} is not the one that was followed: its SHA-256 is another"
    if table.ndim != 2 or table.shape[1] != _WIDTH or not len(table) or not np.isfinite(table).all():
        return None, f"the reference {name} has the shape {table.shape}, or no finite numbers"
    return np.asarray(table, float), ""
