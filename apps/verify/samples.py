"""Checks of rules 1 to 3 of the envelope: validity of the samples, and the safe output."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from apps.verify.findings import Findings
from apps.verify.history import History
from apps.verify.inclusion import length
from apps.verify.recorded import (
    ASTRAY,
    CLOCK_ROUNDING,
    ENVELOPE,
    EPS,
    FOLLOWING_ERROR,
    IMPLAUSIBLE,
    NOT_FINITE,
    STALE,
    UNUSABLE,
    Window,
)

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

_REASONS = NOT_FINITE | STALE | IMPLAUSIBLE | FOLLOWING_ERROR
_NEAR = 8.0 * EPS


@dataclass
class _Known:
    """State of the sample checks before a window.

    Attributes
    ----------
    started : bool
        Whether any sample was trusted.
    place : (2,) array or None
        Position of the last plausible sample.
    tick : int
        Tick of the last sample that counted; -1 if none.
    age : float
        Age of that sample, if it was plausible.
    """

    started: bool = False
    place: Floats | None = None
    tick: int = -1
    age: float = 0.0


class _Samples:
    """Samples of a window with the expected flags."""

    def __init__(self, run: Window, known: _Known) -> None:
        own = slice(run.skip, None)
        self.run, self.known, self.tick, self.flags = run, known, run.tick[own], run.status[own] & UNUSABLE
        self.count = len(self.tick)
        self.position, self.velocity, self.force = (run.column(name)[own] for name in ("position", "velocity", "force"))
        self.age, self.reference = run.column("sample_age")[own], run.reference[own]
        self.expected = np.zeros(self.count, np.int64)
        self.doubtful = np.zeros(self.count, bool)

    def apply_rules(self) -> None:
        """Apply the rules in their order.

        The first rule that a sample breaks determines its flag.
        """
        run = self.run
        finite = np.ones(self.count, bool)
        for values in (self.position, self.velocity, self.force):
            finite &= np.isfinite(values[:, 0] + values[:, 1])
        self._set(~finite, NOT_FINITE)
        self._set(~(self.age <= float(run.limit("max_sample_age")) * CLOCK_ROUNDING), STALE)
        speed = float(run.limit("plausible_speed"))
        moved, time = self._moved()
        self._exceeds(moved, speed * time, IMPLAUSIBLE)
        self._exceeds(length(self.velocity), np.full(self.count, speed), IMPLAUSIBLE)
        if not run.impedance:
            range_of_sensor = float(run.sheet("max_force")) * CLOCK_ROUNDING
            self._exceeds(length(self.force), np.full(self.count, range_of_sensor), IMPLAUSIBLE)
            off = np.where(self._started()[:, None], self.position - self.reference, 0.0)
            self._exceeds(
                length(off), np.full(self.count, float(run.limit("max_following_error", 1000.0))), FOLLOWING_ERROR
            )

    def _set(self, broken: Mask, flag: int) -> None:
        self.expected[broken & (self.expected == 0)] = flag

    def _exceeds(self, value: Floats, limit: Floats, flag: int) -> None:
        with np.errstate(invalid="ignore"):
            self.doubtful |= (np.abs(value - limit) <= _NEAR * limit) & (self.expected == 0)
            self._set(value > limit, flag)

    def _started(self) -> Mask:
        """Return whether any earlier sample was trusted."""
        sampled = (self.flags & _REASONS) == 0
        before = np.zeros(len(sampled), bool)
        before[1:] = np.logical_or.accumulate(sampled)[:-1]
        return before | self.known.started

    def _moved(self) -> tuple[Floats, Floats]:
        """Return the distance of each sample to the last plausible one [m], and the time between them [s]."""
        known, T = self.known, self.run.period
        plausible, counted = self._plausible()
        place, when = _latest(plausible), _latest(counted)
        origin = np.broadcast_to(np.zeros(2) if known.place is None else known.place, (self.count, 2))
        before = np.where((place >= 0)[:, None], self.position[np.maximum(place, 0)], origin)
        has_place = (place >= 0) | (known.place is not None)
        moved = np.where((self._started() & has_place)[:, None], self.position - before, 0.0)
        tick = np.where(when >= 0, self.tick[np.maximum(when, 0)], known.tick)
        aged = np.where(plausible[np.maximum(when, 0)], self.age[np.maximum(when, 0)], 0.0)
        age = np.where(when >= 0, aged, known.age)
        time = np.maximum(self.tick - tick, 1) * T + np.maximum(age - self.age, 0.0)
        return length(moved), time

    def _plausible(self) -> tuple[Mask, Mask]:
        """Return which samples were plausible, and which count as the last sample."""
        seen = (self.flags & (NOT_FINITE | STALE | IMPLAUSIBLE)) == 0
        reasonless = (self.flags & NOT_FINITE != 0) & np.isfinite(self.position).all(axis=1)
        plausible = seen | reasonless | self._beyond_sensor()
        return plausible, plausible | ((self.flags & IMPLAUSIBLE) != 0)

    def after(self) -> _Known:
        """Return the state after the window."""
        plausible, counted = self._plausible()
        known = _Known(**vars(self.known))
        known.started = bool(known.started or ((self.flags & _REASONS) == 0).any())
        if plausible.any():
            known.place = self.position[np.flatnonzero(plausible)[-1]]
        if counted.any():
            last = np.flatnonzero(counted)[-1]
            known.tick, known.age = int(self.tick[last]), float(self.age[last]) if plausible[last] else 0.0
        return known

    def _beyond_sensor(self) -> Mask:
        """Return the samples that were implausible only because of their force; their position was trusted."""
        if self.run.impedance:
            return np.zeros(self.count, bool)
        beyond = length(self.force) > float(self.run.sheet("max_force")) * CLOCK_ROUNDING
        still = length(self.velocity) <= float(self.run.limit("plausible_speed"))
        return np.asarray(((self.flags & IMPLAUSIBLE) != 0) & beyond & still)


def _latest(where: Mask) -> NDArray[np.int64]:
    """Return the index of the latest true entry before each entry; -1 if none."""
    index = np.where(where, np.arange(len(where)), -1)
    before = np.full(len(where), -1)
    before[1:] = np.maximum.accumulate(index)[:-1]
    return before


class Samples:
    """Checks samples over consecutive windows."""

    def __init__(self) -> None:
        self._known = _Known()

    def check(self, run: Window, findings: Findings) -> None:
        """Check that exactly the samples that break a rule were rejected."""
        samples = _Samples(run, self._known)
        samples.apply_rules()
        self._known = samples.after()
        flags, expected = samples.flags, samples.expected
        of_output = (expected == 0) & ((flags == NOT_FINITE) | ((flags == ASTRAY) & run.in_motion[run.skip :]))
        wrong = (flags != expected) & ~samples.doubtful & ~of_output
        findings.where(
            "sample",
            samples.tick,
            wrong,
            lambda k: (
                f"the sample was {_flag_words(int(flags[k]))}, by the rules it is {_flag_words(int(expected[k]))}"
            ),
        )
        words = "the element's output is said to have been no finite number, which the rows cannot show"
        findings.lack_where("sample", samples.tick, of_output & (flags == NOT_FINITE), words)


def _flag_words(flag: int) -> str:
    words = {
        0: "usable",
        NOT_FINITE: "refused as not finite",
        STALE: "refused as too old",
        IMPLAUSIBLE: "refused as implausible",
        FOLLOWING_ERROR: "refused because the arm does not follow",
        ASTRAY: "refused because the motion is not followed",
    }
    return words.get(flag, f"refused with the flags {flag:#x}")


def check_safe_output(run: Window, history: History, findings: Findings) -> None:
    """Check that ticks without a usable sample sent the safe output while the element stayed at rest."""
    bad = np.flatnonzero(~run.good)
    bad = bad[bad >= run.skip]
    if not len(bad):
        return
    ticks, last = run.tick[bad], run.last[bad] if run.impedance else run.reference[bad]
    command = run.column("command")[bad]
    first = history.bad[bad] == 1
    if run.impedance:
        anew = history.started_anew[bad]
        safe = np.where((first & ~anew)[:, None], 0.5, 0.0) * last
        words = "the safe output is half of the last force, then none"
    else:
        safe, words = last, "the safe output is the last reference"
        before = run.column("command")[np.maximum(bad - 1, 0)]
        unborn = np.isnan(command) & (np.isnan(before) | (bad + run.first == 0)[:, None])  # before the first reference
        command, safe = np.where(unborn, 0.0, command), np.where(unborn, 0.0, safe)
    findings.where("safe output", ticks, (command != safe).any(axis=1), f"{words}, but another command was sent")
    own = (run.status[bad] & ENVELOPE) != (run.status[bad] & UNUSABLE)
    findings.where("flag", ticks, own, "a tick with the safe output has flags of rules that were not applied")
    still = np.zeros(len(bad), bool)
    for name in ("friction_force", "sliding_velocity"):
        still |= (run.column(name)[bad] != 0.0).any(axis=1)
    still |= run.column("sticking")[bad] != 0
    findings.where("safe output", ticks, still, "the element did not wait at rest while no sample could be trusted")
    unlimited = run.column("command_unlimited")[bad]
    same = (unlimited == run.column("command")[bad]) | np.isnan(unlimited)
    findings.where("safe output", ticks, ~same.all(axis=1), "another output than the safe one is recorded")
