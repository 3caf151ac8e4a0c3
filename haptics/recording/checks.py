"""Consistency checks of a recording: its rows, columns, times and hash, without a replay.

A *finding* is one deviation from a regular recording, with its verdict: ``violated`` (the run cannot have written this
recording), ``incomplete`` (something is missing or could not be checked) or ``ok`` (for information only).
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from haptics import records
from haptics.device import DEAD_MAN_BUTTON, checked_channels
from haptics.errors import ConfigurationError, RecordingError
from haptics.recording.recording import FILE_SHA256, ORIGIN, ORIGIN_UTC, ROWS_SHA256, Recording
from haptics.records import Permission, Rows, Status

OK, VIOLATED, INCOMPLETE = "ok", "violated", "incomplete"

ORIGIN_SINCE = 3
"""First format that records the time of tick 0."""

_ROUNDING = 1e-9
_DURATIONS_AND_GATE = ("period_error", "tick_time", "write_time", "gate")
_STARTED_LATE, _ENDED_LATE = int(Status.STARTED_LATE), int(Status.ENDED_LATE)
_AFTER_SKIP = int(Status.AFTER_SKIP)
_ALL_FLAGS = sum(int(flag) for flag in Status)
_RELEASED, _ENDING = int(Permission.RELEASED), int(Permission.ENDING)


@dataclass(frozen=True)
class Finding:
    """One result of a check.

    Attributes
    ----------
    rule : str
        The checked rule.
    verdict : str
        ``ok``, ``violated`` or ``incomplete``.
    words : str
        Explanation in one sentence.
    tick : int or None
        Number of the first tick concerned, if any.
    """

    rule: str
    verdict: str
    words: str
    tick: int | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return the fields as a dictionary."""
        return asdict(self)


def verdict_of(findings: Iterable[Finding]) -> str:
    """Return the overall verdict: ``violated`` before ``incomplete`` before ``ok``."""
    found = {finding.verdict for finding in findings}
    return VIOLATED if VIOLATED in found else INCOMPLETE if INCOMPLETE in found else OK


def check_recording(recording: Recording, scan: Scan | None = None) -> Iterator[Finding]:
    """Yield the findings about state, tick table and columns of `recording`.

    Parameters
    ----------
    recording : Recording
        The recording.
    scan : Scan, optional
        Result of an earlier scan of the same recording.
    """
    scan = scan or Scan.of(recording)
    whole = True
    for finding in _missing(recording, scan):
        whole &= finding.verdict != INCOMPLETE or finding.rule == "state"
        yield finding
    yield from _hash(recording, whole)
    yield from _columns(recording)
    yield from _origin(recording)
    journal = [entry.get("version") for entry in recording.settings]
    if journal != list(range(len(journal))):
        words = f"the journal of settings has the versions {str(journal)[:60]}, which must count from 0."
        yield Finding("settings", VIOLATED, words)
    if scan.older_settings is not None:
        yield Finding("settings", VIOLATED, "older settings come into force again.", scan.older_settings)
    yield from scan.findings()


def _missing(recording: Recording, scan: Scan) -> Iterator[Finding]:
    """Yield findings about missing rows and about a recording that was not closed."""
    metadata, count = recording.metadata, len(recording)
    state, reason = metadata.get("state"), metadata.get("reason")
    if state != "complete":
        words = f"the recording was not closed properly (state {state!r}, reason {reason!r}): its end is not known."
        yield Finding("state", INCOMPLETE, words)
    logged = []  # the number of executed ticks that the servo logged at its end
    with contextlib.suppress(RecordingError):
        logged = [event["ticks"] for event in recording.events if "ticks" in event]
    certificate = metadata.get("certificate", {})
    executed = certificate.get("ticks", logged[-1] if logged and type(logged[-1]) is int else None)
    lost = certificate.get("lost_ticks", 0)
    if lost:
        yield Finding("rows", INCOMPLETE, f"{lost} ticks of the run were lost before they could be written.")
    elif executed is not None and count < executed:
        yield Finding("rows", INCOMPLETE, f"the recording holds {count} of the {executed} ticks of its run.")
    elif executed is not None and count > executed:
        yield Finding("rows", VIOLATED, f"the recording holds {count} ticks, but its run had {executed}.")
    elif not count:
        yield Finding("rows", INCOMPLETE, "the recording holds no tick: there is nothing to check.")
    if scan.back is not None:
        before, tick = scan.back
        yield Finding("tick", VIOLATED, f"tick {tick} comes after tick {before}.", tick)
    elif scan.gap < count:
        tick = scan.gap_tick
        yield Finding("tick", INCOMPLETE, f"ticks are missing before tick {tick}, and no deadline was missed.", tick)


def _hash(recording: Recording, whole: bool) -> Iterator[Finding]:
    metadata = recording.metadata
    stored = metadata.get(ROWS_SHA256, metadata.get(FILE_SHA256))
    if stored is None:
        verdict = OK if metadata.get("state") == "complete" else INCOMPLETE
        words = "the recording has no hash of its rows: it was made by an older version, or not closed."
        yield Finding("hash", verdict, words)
    elif not whole:
        yield Finding("hash", INCOMPLETE, "the hash is that of all rows: with rows missing it cannot be compared.")
    else:
        try:
            table = recording.table
            same = (table.sha256() if ROWS_SHA256 in metadata else table.file_sha256()) == stored
        except RecordingError as error:
            yield Finding("hash", INCOMPLETE, str(error))
            return
        if not same:
            words = f"{recording.ticks.name} has changed since the recording was closed: its SHA-256 is different."
            yield Finding("hash", VIOLATED, words)


def _columns(recording: Recording) -> Iterator[Finding]:
    """Yield findings about the columns and their units."""
    dtype, units = recording.table.dtype, recording.metadata.get("columns", {})
    names = dtype.names or ()
    missing = records.missing_columns(names, recording.metadata["format"])
    if missing:
        yield Finding("columns", INCOMPLETE, f"the table of ticks lacks {', '.join(missing)}.")
    try:
        channels = checked_channels(recording.metadata.get("device", {}).get("channels", []), "the device described")
    except ConfigurationError as error:
        yield Finding("columns", VIOLATED, str(error))
        return
    ours, expected = records.units_with(channels), records.columns_with(channels)
    described = sorted(names) == sorted(units) and all(unit == ours.get(name, unit) for name, unit in units.items())
    if not described:
        words = "the described columns differ from those of the table of ticks, or have other units."
        yield Finding("columns", VIOLATED, words)
    for name in ours.keys() - records.ROW_UNITS.keys():
        if name not in names or dtype[name] != expected[name]:
            yield Finding(
                "columns", VIOLATED, f"the table of ticks lacks the column {name}, which its device measures."
            )


def _origin(recording: Recording) -> Iterator[Finding]:
    """Yield findings about the time of tick 0, which is recorded from format 3 on."""
    metadata = recording.metadata
    stated = [metadata.get(name) for name in (ORIGIN, ORIGIN_UTC)]
    if metadata["format"] < ORIGIN_SINCE or not len(recording):
        return
    if None in stated:
        yield Finding("origin", INCOMPLETE, "the recording lacks the time of tick 0.")
        return
    monotonic, utc = stated[0], str(stated[1])
    try:
        sound = type(monotonic) is int and monotonic > 0 and datetime.fromisoformat(utc).utcoffset() == timedelta(0)
    except (TypeError, ValueError):
        sound = False
    if not sound:
        words = f"the time of tick 0 cannot be {str(monotonic)[:40]} ns, {str(utc)[:40]}."
        yield Finding("origin", VIOLATED, words)


# Name and description of the rules for single rows, in the order of their findings.
_RULES = {
    "time": ("time", "time is not tick times period"),
    "lateness": ("period_error", "a lateness must be at least 0 and less than a period"),
    "handed_over": ("write_time", "a command was handed over before its tick began, or after it ended"),
    "started_late": ("started_late", "the flag STARTED_LATE and the times disagree"),
    "ended_late": ("ended_late", "the flag ENDED_LATE and the times disagree"),
    "after_skip": ("after_skip", "the flag AFTER_SKIP and the times disagree"),
    "undefined_flag": ("status", "an undefined flag is set"),
    "gate": ("gate", "the gate is outside 0 to 1"),
    "undefined_bit": ("permission", "an undefined bit is set"),
    "went_on": ("permission", "a run that was ending went on"),
    "no_dead_man": ("permission", "a dead-man's switch was released, but the run has none"),
    "button": ("buttons", "the dead-man's button and its release disagree"),
}


class Scan:
    """Consistency checks of the rows of a recording, accumulated in one pass.

    Attributes
    ----------
    gap : int
        Index of the first row before which ticks are missing without a skipped deadline; the number of rows if there is
        no such gap. It is 0 if the first ticks are missing.
    gap_tick : int
        Tick number of that row.
    back : (int, int) or None
        Tick numbers of the first pair of consecutive rows that is not increasing.
    older_settings : int or None
        First tick whose settings version is lower than in the row before.
    """

    COLUMNS = (
        *("tick", "time", "status", "settings_version", "period_error", "tick_time", "write_time", "gate"),
        *("permission", "buttons"),
    )

    def __init__(self, period: float, dead_man: str) -> None:
        self._period, self._dead_man = period, dead_man
        self.gap, self.gap_tick = 0, 0
        self.back: tuple[int, int] | None = None
        self.older_settings: int | None = None
        self._broken: dict[str, tuple[int, int]] = {}
        self._tick, self._version, self._ending, self._has_gap, self._started = -1, 0, False, False, False

    @classmethod
    def of(cls, recording: Recording) -> Self:
        """Scan a recording, without checks of the times if the rate is missing."""
        rate: Any = recording.metadata.get("rate_hz")
        period = 1.0 / rate if isinstance(rate, int | float) and rate > 0.0 else np.nan
        scan = cls(period, str(recording.metadata.get("limits", {}).get("dead_man", "none")))
        for rows in recording.chunks(cls.COLUMNS):
            scan.add(rows)
        return scan

    def add(self, rows: Rows) -> None:
        """Process the next rows."""
        ticks, status = np.array(rows["tick"]), np.array(rows["status"])
        before, first = np.concatenate(([self._tick], ticks[:-1])), not self._started
        unexplained = (ticks != before + 1) & ((status & _AFTER_SKIP) == 0)
        if not self._has_gap and unexplained.any():
            place = int(np.argmax(unexplained))
            self.gap, self.gap_tick, self._has_gap = self.gap + place, int(ticks[place]), True
        elif not self._has_gap:
            self.gap += len(ticks)
        back = np.flatnonzero(ticks[first:] <= before[first:])
        if self.back is None and len(back):
            place = int(back[0]) + first
            self.back = int(before[place]), int(ticks[place])
        versions = rows["settings_version"]
        last = versions[0] if first else self._version
        older = np.flatnonzero(versions < np.concatenate(([last], versions[:-1])))
        if self.older_settings is None and len(older):
            self.older_settings = int(ticks[older[0]])
        self._version = int(versions[-1])
        period, skipped = self._period, ticks != before + 1
        if not np.isnan(period):
            late, taken, written, gate = (np.array(rows[name]) for name in _DURATIONS_AND_GATE)
            with np.errstate(all="ignore"):
                self._count(ticks, "time", rows["time"] != ticks * period)
                self._count(ticks, "lateness", ~((late >= -_ROUNDING) & (late < period + _ROUNDING)))
                orderly = (written >= -_ROUNDING) & (written <= taken + _ROUNDING) & np.isfinite(taken)
                self._count(ticks, "handed_over", ~orderly)
                started_late = late > records.LATE_FRACTION * period
                self._count(ticks, "started_late", ((status & _STARTED_LATE) != 0) != started_late)
                self._count(ticks, "ended_late", ((status & _ENDED_LATE) != 0) != (late + taken > period))
                self._count(ticks, "after_skip", ((status & _AFTER_SKIP) != 0) & ~skipped)
                self._count(ticks, "undefined_flag", (status & ~np.uint32(_ALL_FLAGS)) != 0)
                self._count(ticks, "gate", ~((gate >= 0.0) & (gate <= 1.0)))
        permission = np.array(rows["permission"])
        released, ending = (permission & _RELEASED) != 0, (permission & _ENDING) != 0
        self._count(ticks, "undefined_bit", (permission & ~np.uint32(_RELEASED | _ENDING)) != 0)
        self._count(ticks, "went_on", np.diff(ending, prepend=self._ending) & ~ending)
        self._ending = bool(ending[-1])
        if self._dead_man == "none":
            self._count(ticks, "no_dead_man", released)
        elif self._dead_man == "button":
            self._count(ticks, "button", released == ((rows["buttons"] & DEAD_MAN_BUTTON) != 0))
        self._tick, self._started = int(ticks[-1]), True

    def findings(self) -> Iterator[Finding]:
        """Yield a finding for each violated rule."""
        for key in (key for key in _RULES if key in self._broken):
            (rule, words), (count, tick) = _RULES[key], self._broken[key]
            yield Finding(rule, VIOLATED, f"{words}, first in tick {tick} ({count} ticks).", tick)

    def _count(self, ticks: NDArray[np.int64], rule: str, where: NDArray[np.bool_]) -> None:
        count = int(np.count_nonzero(where))
        if count:
            known, first = self._broken.get(rule, (0, int(ticks[int(np.argmax(where))])))
            self._broken[rule] = known + count, first
