"""Checks of prescribed motions: reference table, bounds, progress and control force.

The reference is a file of the recording, named in the journal with its SHA-256: rows of position [m], velocity [m/s]
and force [N]. It advances by one row per tick, and waits while the output is faded. An impedance device receives the
force ``F - K e + B (v - u) + L``, limited to the bound, with the position error e and ``L_k = L_(k-1) - I T e``. An
admittance device receives the velocity that takes its reference to the next row, limited to the bound.
"""

from __future__ import annotations

import hashlib
import io
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from apps.verify.commands import output_of, velocity_blur
from apps.verify.findings import Findings
from apps.verify.history import History
from apps.verify.inclusion import length
from apps.verify.recorded import ASTRAY, PATIENCE, UNUSABLE, Stretch, rounding

Floats = NDArray[np.float64]

_LARGEST = 200_000_000
_WIDTH = 6


@dataclass
class _Course:
    """Progress of a motion."""

    number: int = -1
    row: int = 0
    begun: bool = False
    racing: int = 0
    astray: bool = False


class Motions:
    """Checks motions over consecutive stretches."""

    def __init__(self) -> None:
        self._course = _Course()
        self._origin, self._load, self._steps = np.zeros(2), np.zeros(2), 0

    def check(self, stretch: Stretch, history: History, findings: Findings) -> None:
        """Check the ticks of a stretch."""
        settings = stretch.settings
        table, wrong = _table(stretch.run.source.folder, settings)
        if table is None:
            findings.violate("motion", wrong)
            return
        motion = settings["motion"]
        number = int(settings.get("program", 0))
        if number != self._course.number:
            self._course = _Course(number)
        rows, moved = self._rows(stretch, history, table, motion)
        at = np.maximum(rows, 0)
        place = stretch["position"] - stretch["displacement"]
        origins = self._origins(stretch, rows, motion)
        off = place - origins - table[at, :2]
        if not stretch.run.impedance:  # an arm that holds its position has no error
            off = np.where((history.share[stretch.rows] == 0.0)[:, None], stretch["displacement"], off)
        good, tick = stretch.good & (rows >= 0), stretch.tick
        size = rounding(stretch["position"], table[at, :2], origins)
        findings.residual(
            "motion", "place of the reference", tick, off, size, "m", "the motion went on otherwise", good
        )
        differs = np.where(moved[:, None], table[at, 2:4], 0.0) != stretch["sliding_velocity"]
        findings.where("motion", tick, good & differs.any(axis=1), "the velocity is not that of the reference")
        ended = (stretch["sticking"] != 0) != (at + 1 >= len(table))
        findings.where("sticking", tick, good & ended, "the motion is said to be at its end or not, and is not")
        self._bounds(stretch, motion, findings)
        if stretch.run.impedance:
            self._drawn(stretch, history, (table, at, rows), motion, findings)
        else:
            _led(stretch, origins + table[at, :2], float(motion["bound"]), good, findings)

    def _rows(
        self, stretch: Stretch, history: History, table: Floats, motion: dict[str, Any]
    ) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Return the table row of each tick, -1 if none, and whether the row advanced."""
        course, run, last = self._course, stretch.run, len(table) - 1
        rows, moved = np.full(len(stretch), -1), np.zeros(len(stretch), bool)
        status, tick, gate = run.status[stretch.rows], stretch.tick, stretch["gate"]
        through = history.share[stretch.rows] if not run.impedance else self._before(stretch, history) * gate
        periods = np.maximum(tick - stretch.back("tick", 1), 1)
        for k in range(len(stretch)):
            if status[k] & UNUSABLE and not status[k] & ASTRAY:
                continue
            if history.fresh[stretch.start + k]:
                course.row, course.begun, course.astray = 0, False, False
            if course.begun and not course.astray and through[k] >= 1.0 and course.row < last:
                course.row = min(course.row + (int(periods[k]) if run.impedance else 1), last)
                moved[k] = True
            course.begun, rows[k] = True, course.row
            course.astray |= bool(status[k] & ASTRAY)
        return rows, moved

    @staticmethod
    def _before(stretch: Stretch, history: History) -> Floats:
        """Return the fade gain before each tick."""
        gain = np.zeros(len(stretch))
        gain[1:] = history.gain[stretch.rows][:-1]
        gain[:1] = history.gain[stretch.start - 1] if stretch.start else 0.0
        return np.where(history.started_anew[stretch.rows], 0.0, gain)

    def _origins(self, stretch: Stretch, rows: NDArray[np.int64], motion: dict[str, Any]) -> Floats:
        """Return the origin of the reference positions, (n, 2) [m].

        It is the device position at the start if the motion is relative, else 0.
        """
        if not motion.get("relative"):
            return np.zeros((len(stretch), 2))
        first = self._first(stretch, rows)
        if first is not None:
            self._origin = (stretch["position"] if stretch.run.impedance else stretch.reference)[first]
        return np.broadcast_to(self._origin, (len(stretch), 2))

    def _first(self, stretch: Stretch, rows: NDArray[np.int64]) -> int | None:
        """Return the index of the tick in a stretch at which its motion began, or None."""
        before: dict[str, Any] = {}
        if stretch.start:
            version = stretch.run.column("settings_version", stretch.start - 1, stretch.start)[0]
            before = stretch.run.journal.get(int(version), {})
        same = before.get("program", -1) == stretch.settings.get("program", 0)
        sampled = np.flatnonzero(rows >= 0)
        return int(sampled[0]) if len(sampled) and not same else None

    def _bounds(self, stretch: Stretch, motion: dict[str, Any], findings: Findings) -> None:
        """Check that the motion was aborted if the device did not follow it, and only then."""
        course, off = self._course, length(stretch["displacement"])
        fast = length(stretch["velocity"]) > float(motion["max_speed"])
        far = off > float(motion["max_error"])
        astray = (stretch.run.status[stretch.rows] & ASTRAY) != 0
        late = np.zeros(len(stretch), bool)
        for k, one in enumerate(fast.tolist()):
            course.racing = course.racing + 1 if one else 0
            late[k] = course.racing * stretch.run.period > PATIENCE
        words = "the end effector was farther off, or faster, than the motion allows, and was not let go of"
        findings.where("motion", stretch.tick, stretch.good & (far | late), words)
        first = astray & ~np.concatenate(([False], astray[:-1])) & ~far & ~late
        first[:1] = False
        findings.where("motion", stretch.tick, first, "the motion was given up, though it was followed")

    def _drawn(
        self,
        stretch: Stretch,
        history: History,
        where: tuple[Floats, NDArray[np.int64], NDArray[np.int64]],
        motion: dict[str, Any],
        findings: Findings,
    ) -> None:
        """Check the force on an impedance device."""
        table, at, rows = where
        K, B, rate = (float(motion[name]) for name in ("stiffness", "damping", "integration"))
        e, bound, T = stretch["displacement"], float(motion["bound"]), stretch.run.period
        pull = table[at, 4:6] - K * e + B * (stretch["sliding_velocity"] - stretch["velocity"])
        first, whole = self._first(stretch, rows), self._before(stretch, history) * stretch["gate"] == 1.0
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


def _led(stretch: Stretch, place: Floats, bound: float, good: NDArray[np.bool_], findings: Findings) -> None:
    """Check the velocity of an admittance device's reference."""
    wanted = (place - stretch.reference) / stretch.run.period
    size = np.maximum(length(wanted), 1e-300)[:, None]
    expected = np.where(size > bound, wanted * (bound / size), wanted)
    slack = rounding(place, stretch.reference) / stretch.run.period + velocity_blur(stretch)
    words = "the output does not lead to the next place of the reference"
    findings.residual(
        "motion", "velocity of the motion", stretch.tick, output_of(stretch) - expected, slack, "m/s", words, good
    )


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
