"""Checks of ticks, times and timing flags; of permissions and buttons; and of the time of tick 0."""

from __future__ import annotations

import math
from datetime import datetime, timedelta

import numpy as np
from numpy.typing import NDArray

from apps.verify.facts import (
    AFTER_SKIP,
    DEAD_MAN_BUTTON,
    ENDED_LATE,
    FADE_OUT,
    FLAGS,
    LATE_SHARE,
    STARTED_LATE,
    TOLD_ENDING,
    TOLD_RELEASED,
)
from apps.verify.findings import Findings
from apps.verify.recorded import Recorded, Window

_ROUNDING = 1e-9
ORIGIN_SINCE = 3
"""First recording format that contains the time of tick 0."""


def check_ticks(run: Recorded, findings: Findings) -> None:
    """Check that the ticks are complete and increasing."""
    order = run.order
    if order.back is not None:
        before, after = order.back
        findings.violate("tick", f"tick {after} comes after tick {before}", after)
    elif order.gap < len(run.source):
        words = f"ticks are missing before tick {order.gap_tick}, and no deadline was missed."
        findings.lack("tick", words, order.gap_tick)
    if not len(run.source):
        findings.lack("rows", "the recording holds no tick: there is nothing to check.")


def check_times(run: Window, findings: Findings) -> None:
    """Check times, lateness, durations and the corresponding flags."""
    T, tick, status = run.period, run.tick, run.status
    late, taken, written = (run.column(name) for name in ("period_error", "tick_time", "write_time"))
    where = findings.where
    where("time", tick, run.column("time") != tick * T, "the time is not the number of the tick times the period")
    with np.errstate(invalid="ignore"):
        within = (late >= -_ROUNDING) & (late < T + _ROUNDING)
        where("timing", tick, ~within, "a lateness must be at least 0 and less than a period")
        orderly = (written >= -_ROUNDING) & (written <= taken + _ROUNDING) & np.isfinite(taken)
        where("timing", tick, ~orderly, "a command was handed over before its tick began, or after it ended")
        _flag(run, findings, STARTED_LATE, late > LATE_SHARE * T, "started")
        _flag(run, findings, ENDED_LATE, late + taken > T, "ended")
    jumped = np.diff(tick, prepend=-1) != 1
    said = ((status & AFTER_SKIP) != 0) & ~jumped
    where("timing", tick, said, "deadlines are said to have been skipped, but no tick is missing")
    unknown = (status & ~sum(FLAGS.values())) != 0
    where("flag", tick, unknown, "a flag is set that there is not")
    age = run.column("sample_age")
    where("timing", tick, ~(age >= 0.0) & ~np.isnan(age), "a sample is younger than its tick")


def _flag(run: Window, findings: Findings, flag: int, expected: NDArray[np.bool_], word: str) -> None:
    broken = ((run.status & flag) != 0) != expected
    findings.where("timing", run.tick, broken, f"the flag that a tick {word} late and its times disagree")


def check_permissions(run: Window, findings: Findings) -> None:
    """Check the dead-man's switch against the buttons, and that an ending run did not continue."""
    tick, permission = run.tick, run.column("permission").astype(np.int64)
    released, ending = (permission & TOLD_RELEASED) != 0, (permission & TOLD_ENDING) != 0
    where, dead_man = findings.where, str(run.limit("dead_man", "none"))
    where("permission", tick, (permission & ~(TOLD_RELEASED | TOLD_ENDING)) != 0, "an undefined bit is set")
    where("permission", tick, np.diff(ending, prepend=False) & ~ending, "a run that was ending went on")
    if dead_man == "none":
        where("permission", tick, released, "a dead-man's switch was released, but the run has none")
    elif dead_man == "button":
        held = (run.column("buttons").astype(np.int64) & DEAD_MAN_BUTTON) != 0
        where("permission", tick, released == held, "the dead-man's button and its release disagree")


def check_ending(run: Window, findings: Findings) -> None:
    """Check that a run of planned length fades out at its planned end, and that its last ticks exist."""
    session = run.metadata.get("configuration", {}).get("session", {})
    duration = session.get("duration")
    if run.metadata.get("reason") != "completed" or not isinstance(duration, int | float):
        return
    planned = round(duration / run.period)
    begins = planned - min(_ticks_to_rest(run), planned // 2)
    ending = (run.column("permission").astype(np.int64) & TOLD_ENDING) != 0
    wrong = ending != (run.tick >= begins)
    findings.where("permission", run.tick, wrong, f"the planned end begins at tick {begins}, the rows say otherwise")
    findings.where("tick", run.tick, run.tick >= planned, f"the run was planned to have {planned} ticks")
    if run.is_last and planned - 1 - int(run.tick[-1]) > _ticks_in(
        run, FADE_OUT
    ):  # fewer ticks may be missing because the last deadlines were missed
        words = f"the last ticks of the {planned} that were planned are missing, or their deadlines were missed."
        findings.lack("end", words, int(run.tick[-1]))


def _ticks_to_rest(run: Recorded) -> int:
    """Return the number of ticks from the beginning of the fade-out to the planned end."""
    if run.impedance:
        return _ticks_in(run, FADE_OUT)
    braking = float(run.limit("max_speed")) / float(run.limit("max_acceleration"))
    return max(_ticks_in(run, FADE_OUT), _ticks_in(run, braking))


def _ticks_in(run: Recorded, duration: float) -> int:
    """Return the number of ticks in a duration [s], plus one for rounding."""
    return math.ceil(duration / run.period * (1.0 - 1e-9)) + 1


def check_origin(run: Recorded, findings: Findings) -> None:
    """Check the time of tick 0."""
    monotonic, utc = (run.metadata.get(name) for name in ("origin_monotonic_ns", "origin_utc"))
    if int(run.metadata["format"]) < ORIGIN_SINCE or not len(run.source):
        return
    if monotonic is None or utc is None:
        findings.lack("origin", "the recording lacks the time of tick 0.")
        return
    try:
        right = type(monotonic) is int and monotonic > 0 and datetime.fromisoformat(utc).utcoffset() == timedelta(0)
    except (TypeError, ValueError):
        right = False
    if not right:
        findings.violate("origin", f"the time of tick 0 cannot be {str(monotonic)[:40]} ns, {str(utc)[:40]}")
