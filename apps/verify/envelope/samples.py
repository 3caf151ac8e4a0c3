"""Rules 1 to 3 of the envelope: which samples can be trusted, and what is sent where none can."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from apps.verify.contact.inclusion import length
from apps.verify.envelope.history import History
from apps.verify.facts import (
    ASTRAY,
    CLOCK_ROUNDING,
    ENVELOPE,
    EPS,
    FOLLOWING_ERROR,
    IMPLAUSIBLE,
    NOT_FINITE,
    STALE,
    UNUSABLE,
)
from apps.verify.findings import Findings
from apps.verify.recorded import Recorded

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

_REASONS = NOT_FINITE | STALE | IMPLAUSIBLE | FOLLOWING_ERROR
_NEAR = 8.0 * EPS


class _Samples:
    """The samples of a recording, and how they are judged."""

    def __init__(self, run: Recorded) -> None:
        self.run, self.tick, self.flags = run, run.tick, run.status & UNUSABLE
        self.position, self.velocity, self.force = (run.column(name) for name in ("position", "velocity", "force"))
        self.age = run.column("sample_age")
        self.expected = np.zeros(run.count, np.int64)
        self.doubtful = np.zeros(run.count, bool)

    def judge(self) -> None:
        """Apply the rules in their order: the first that a sample breaks is its flag."""
        run = self.run
        finite = np.ones(run.count, bool)
        for values in (self.position, self.velocity, self.force):
            finite &= np.isfinite(values[:, 0] + values[:, 1])
        self._set(~finite, NOT_FINITE)
        self._set(~(self.age <= float(run.limit("max_sample_age")) * CLOCK_ROUNDING), STALE)
        speed = float(run.limit("plausible_speed"))
        moved, time = self._moved()
        self._exceeds(moved, speed * time, IMPLAUSIBLE)
        self._exceeds(length(self.velocity), np.full(run.count, speed), IMPLAUSIBLE)
        if not run.impedance:
            range_of_sensor = float(run.sheet("max_force")) * CLOCK_ROUNDING
            self._exceeds(length(self.force), np.full(run.count, range_of_sensor), IMPLAUSIBLE)
            off = np.where(self._started()[:, None], self.position - run.reference, 0.0)
            self._exceeds(
                length(off), np.full(run.count, float(run.limit("max_following_error", 1000.0))), FOLLOWING_ERROR
            )

    def _set(self, broken: Mask, flag: int) -> None:
        self.expected[broken & (self.expected == 0)] = flag

    def _exceeds(self, value: Floats, limit: Floats, flag: int) -> None:
        with np.errstate(invalid="ignore"):
            self.doubtful |= (np.abs(value - limit) <= _NEAR * limit) & (self.expected == 0)
            self._set(value > limit, flag)

    def _started(self) -> Mask:
        """Return whether there was a sample before that was trusted."""
        sampled = (self.flags & _REASONS) == 0
        before = np.zeros(len(sampled), bool)
        before[1:] = np.logical_or.accumulate(sampled)[:-1]
        return before

    def _moved(self) -> tuple[Floats, Floats]:
        """Return how far [m] each sample is from the last plausible one, and the time that the handle had [s]."""
        n, T = self.run.count, self.run.period
        seen = (self.flags & (NOT_FINITE | STALE | IMPLAUSIBLE)) == 0
        reasonless = (self.flags & NOT_FINITE != 0) & np.isfinite(self.position).all(axis=1)
        plausible = seen | reasonless | self._beyond_sensor()
        counted = plausible | ((self.flags & IMPLAUSIBLE) != 0)
        place, when = _latest(plausible), _latest(counted)
        moved = np.where(
            (self._started() & (place >= 0))[:, None], self.position - self.position[np.maximum(place, 0)], 0.0
        )
        tick = np.where(when >= 0, self.tick[np.maximum(when, 0)], -1)
        age = np.where((when >= 0) & plausible[np.maximum(when, 0)], self.age[np.maximum(when, 0)], 0.0)
        time = np.maximum(self.tick - tick, 1) * T + np.maximum(age - self.age, 0.0)
        return length(moved) if n else np.zeros(0), time

    def _beyond_sensor(self) -> Mask:
        """Return where a sample was implausible for its force alone: its position was trusted."""
        if self.run.impedance:
            return np.zeros(self.run.count, bool)
        beyond = length(self.force) > float(self.run.sheet("max_force")) * CLOCK_ROUNDING
        still = length(self.velocity) <= float(self.run.limit("plausible_speed"))
        return np.asarray(((self.flags & IMPLAUSIBLE) != 0) & beyond & still)


def _latest(where: Mask) -> NDArray[np.int64]:
    """Return the index of the latest true entry before each; -1 without any."""
    index = np.where(where, np.arange(len(where)), -1)
    before = np.full(len(where), -1)
    before[1:] = np.maximum.accumulate(index)[:-1]
    return before


def check_samples(run: Recorded, findings: Findings) -> None:
    """Check that samples were refused where the rules say so, and nowhere else."""
    samples = _Samples(run)
    samples.judge()
    flags, expected = samples.flags, samples.expected
    of_output = (expected == 0) & ((flags == NOT_FINITE) | ((flags == ASTRAY) & run.in_motion))
    wrong = (flags != expected) & ~samples.doubtful & ~of_output
    findings.where(
        "sample",
        run.tick,
        wrong,
        lambda k: f"the sample was {_said(int(flags[k]))}, by the rules it is {_said(int(expected[k]))}",
    )
    said = np.flatnonzero(of_output & (flags == NOT_FINITE))
    if len(said):
        words = "the element's output is said to have been no finite number, which the rows cannot show"
        findings.lack("sample", f"{words} ({len(said)} ticks).", int(run.tick[said[0]]))


def _said(flag: int) -> str:
    words = {
        0: "usable",
        NOT_FINITE: "refused as not finite",
        STALE: "refused as too old",
        IMPLAUSIBLE: "refused as implausible",
        FOLLOWING_ERROR: "refused because the arm does not follow",
        ASTRAY: "refused because the motion is not followed",
    }
    return words.get(flag, f"refused with the flags {flag:#x}")


def check_safe_output(run: Recorded, history: History, findings: Findings) -> None:
    """Check that ticks without a usable sample sent the safe output, and that the element waited at rest."""
    bad = np.flatnonzero(~run.good)
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
        unborn = np.isnan(command) & (np.isnan(before) | (bad == 0)[:, None])  # there is no reference yet
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
