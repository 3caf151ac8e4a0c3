"""Consistency checks of a recording: its rows, columns, times and hash, without a replay.

A *finding* is one thing that is not as it is in a recording of an ordinary run, with what it means for the verdict:
``violated`` (the recording cannot be what the run wrote), ``incomplete`` (something is missing, or could not be
checked), ``ok`` (worth knowing, no more).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray

from haptics.device import DEAD_MAN_BUTTON, checked_channels
from haptics.errors import ConfigurationError, RecordingError
from haptics.recording.columns import column, columns_with, missing_columns, units_with
from haptics.recording.recording import FILE_SHA256, ORIGIN, ORIGIN_UTC, ROWS_SHA256, Recording
from haptics.records import LATE_FRACTION, ROW_UNITS, Permission, Rows, Status

OK, VIOLATED, INCOMPLETE = "ok", "violated", "incomplete"

ORIGIN_SINCE = 3
"""Format from which on a recording says when tick 0 was."""

_ROUNDING = 1e-9
_STARTED_LATE, _ENDED_LATE = int(Status.STARTED_LATE), int(Status.ENDED_LATE)
_AFTER_SKIP = int(Status.AFTER_SKIP)
_ALL_FLAGS = sum(int(flag) for flag in Status)
_RELEASED, _ENDING = int(Permission.RELEASED), int(Permission.ENDING)


@dataclass(frozen=True)
class Finding:
    """One thing that was found.

    Attributes
    ----------
    rule : str
        What was checked.
    verdict : str
        What it means: ``ok``, ``violated`` or ``incomplete``.
    words : str
        One sentence for a person.
    tick : int or None
        Number of the first tick it is about, if of any.
    """

    rule: str
    verdict: str
    words: str
    tick: int | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return the fields for a result."""
        return asdict(self)


def verdict_of(findings: Iterable[Finding]) -> str:
    """Return what findings mean together: one violation violates, else one thing missing leaves it incomplete."""
    found = {finding.verdict for finding in findings}
    return VIOLATED if VIOLATED in found else INCOMPLETE if INCOMPLETE in found else OK


def gap_in(rows: Rows) -> int:
    """Return the index of the first row before which ticks are missing that no skipped deadline explains, or the end.

    A table whose first ticks are missing has it at 0.
    """
    ticks, skipped = np.array(rows["tick"]), (rows["status"] & _AFTER_SKIP) != 0
    unexplained = (ticks != np.concatenate(([0], ticks[:-1] + 1))) & ~skipped
    return int(np.argmax(unexplained)) if unexplained.any() else len(rows)


def check_recording(recording: Recording) -> Iterator[Finding]:
    """Yield what is wrong with the state, the table of ticks and the columns of `recording`."""
    rows, whole = recording.rows, True
    for finding in _missing(recording):
        whole &= finding.verdict != INCOMPLETE or finding.rule == "state"
        yield finding
    yield from _hash(recording, whole)
    yield from _columns(recording)
    yield from _origin(recording)
    yield from _versions(recording)
    if len(rows):
        period = 1.0 / recording.metadata["rate_hz"]
        yield from _times(rows, period)
        yield from _permissions(rows, str(recording.metadata.get("limits", {}).get("dead_man", "none")))


def _missing(recording: Recording) -> Iterator[Finding]:
    """Yield what says that rows are missing, or that nobody closed the recording."""
    metadata, rows = recording.metadata, recording.rows
    state, reason = metadata.get("state"), metadata.get("reason")
    if state != "complete":
        words = f"the recording was not closed properly (state {state!r}, reason {reason!r}): its end is not known."
        yield Finding("state", INCOMPLETE, words)
    certificate = metadata.get("certificate", {})
    lost, executed = certificate.get("lost_ticks", 0), certificate.get("ticks", _ticks_of_the_end(recording))
    if lost:
        yield Finding("rows", INCOMPLETE, f"{lost} ticks of the run were lost before they could be written.")
    elif executed is not None and len(rows) < executed:
        yield Finding("rows", INCOMPLETE, f"the recording holds {len(rows)} of the {executed} ticks of its run.")
    elif executed is not None and len(rows) > executed:
        yield Finding("rows", VIOLATED, f"the recording holds {len(rows)} ticks, but its run had {executed}.")
    elif not len(rows):
        yield Finding("rows", INCOMPLETE, "the recording holds no tick: there is nothing to check.")
    ticks, first = np.array(rows["tick"]), gap_in(rows)
    back = np.flatnonzero(ticks[1:] <= ticks[:-1])
    if len(back):
        tick = int(ticks[back[0] + 1])
        yield Finding("tick", VIOLATED, f"tick {tick} comes after tick {int(ticks[back[0]])}.", tick)
    elif first < len(rows):
        tick = int(ticks[first])
        yield Finding("tick", INCOMPLETE, f"ticks are missing before tick {tick}, and no deadline was missed.", tick)


def _ticks_of_the_end(recording: Recording) -> int | None:
    """Return how many ticks the servo said at its end that it had executed, if it did."""
    try:
        said = [event["ticks"] for event in recording.events if "ticks" in event]
    except RecordingError:
        return None
    return said[-1] if said and type(said[-1]) is int else None


def _hash(recording: Recording, whole: bool) -> Iterator[Finding]:
    metadata = recording.metadata
    stored = metadata.get(ROWS_SHA256, metadata.get(FILE_SHA256))
    if stored is None:
        verdict = OK if metadata.get("state") == "complete" else INCOMPLETE
        words = "the recording has no hash of its rows: an older version made it, or nobody closed it."
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
    """Yield what is wrong with the columns and their units."""
    dtype, units = recording.rows.dtype, recording.metadata.get("columns", {})
    names = dtype.names or ()
    missing = missing_columns(names, recording.metadata["format"])
    if missing:
        yield Finding("columns", INCOMPLETE, f"the table of ticks lacks {', '.join(missing)}.")
    try:
        channels = checked_channels(recording.metadata.get("device", {}).get("channels", []), "the device described")
    except ConfigurationError as error:
        yield Finding("columns", VIOLATED, str(error))
        return
    ours, expected = units_with(channels), columns_with(channels)
    described = sorted(names) == sorted(units) and all(unit == ours.get(name, unit) for name, unit in units.items())
    if not described:
        words = "the described columns differ from those of the table of ticks, or have other units."
        yield Finding("columns", VIOLATED, words)
    for name in ours.keys() - ROW_UNITS.keys():
        if name not in names or dtype[name] != expected[name]:
            yield Finding(
                "columns", VIOLATED, f"the table of ticks lacks the column {name}, which its device measures."
            )


def _origin(recording: Recording) -> Iterator[Finding]:
    """Yield what is wrong with the instant of tick 0, which recordings have from format 3 on."""
    metadata = recording.metadata
    stated = [metadata.get(name) for name in (ORIGIN, ORIGIN_UTC)]
    if metadata["format"] < ORIGIN_SINCE or not len(recording.rows):
        return
    if None in stated:
        yield Finding("origin", INCOMPLETE, "the recording lacks the time of tick 0.")
    elif not _is_origin(*stated):
        yield Finding(
            "origin", VIOLATED, f"the time of tick 0 cannot be {str(stated[0])[:40]} ns, {str(stated[1])[:40]}."
        )


def _is_origin(monotonic: Any, utc: Any) -> bool:
    try:
        return type(monotonic) is int and monotonic > 0 and datetime.fromisoformat(utc).utcoffset() == timedelta(0)
    except (TypeError, ValueError):
        return False


def _versions(recording: Recording) -> Iterator[Finding]:
    """Yield what is wrong with the versions of the settings, in the journal and in the rows."""
    journal = [entry.get("version") for entry in recording.settings]
    if journal != list(range(len(journal))):
        yield Finding(
            "settings",
            VIOLATED,
            f"the journal of settings has the versions {str(journal)[:60]}, which must count from 0.",
        )
    used = np.array(recording.rows["settings_version"])
    back = np.flatnonzero(used[1:] < used[:-1])
    if len(back):
        tick = int(recording.rows["tick"][back[0] + 1])
        yield Finding("settings", VIOLATED, "older settings come into force again.", tick)


def _times(rows: Rows, period: float) -> Iterator[Finding]:
    """Yield what does not fit in the columns that have to do with time."""
    ticks, status = np.array(rows["tick"]), np.array(rows["status"])
    late, taken = np.array(rows["period_error"]), np.array(rows["tick_time"])
    written, gate = np.array(rows["write_time"]), column(rows, "gate")
    skipped = np.concatenate(([ticks[0] != 0], ticks[1:] != ticks[:-1] + 1))
    with np.errstate(all="ignore"):
        wrong = {
            "time": (rows["time"] != ticks * period, "time is not tick times period"),
            "period_error": (
                ~((late >= -_ROUNDING) & (late < period + _ROUNDING)),
                "a lateness must be at least 0 and less than a period",
            ),
            "write_time": (
                ~((written >= -_ROUNDING) & (written <= taken + _ROUNDING) & np.isfinite(taken)),
                "a command was handed over before its tick began, or after it ended",
            ),
            "started_late": (_flagged(status, _STARTED_LATE, late > LATE_FRACTION * period), _flag("STARTED_LATE")),
            "ended_late": (_flagged(status, _ENDED_LATE, late + taken > period), _flag("ENDED_LATE")),
            "after_skip": (_flagged(status, _AFTER_SKIP, skipped) & (status & _AFTER_SKIP != 0), _flag("AFTER_SKIP")),
            "status": ((status & ~np.uint32(_ALL_FLAGS)) != 0, "an undefined flag is set"),
            "gate": (~((gate >= 0.0) & (gate <= 1.0)), "the gate is outside 0 to 1"),
        }
    for rule, (where, words) in wrong.items():
        yield from _first(rows, rule, where, words)


def _flag(name: str) -> str:
    return f"the flag {name} and the times disagree"


def _flagged(status: NDArray[np.uint32], flag: int, expected: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return where `flag` is set and should not be, or the other way round."""
    return np.asarray(((status & flag) != 0) != expected)


def _permissions(rows: Rows, dead_man: str) -> Iterator[Finding]:
    """Yield what does not fit in the permissions of the envelope and the buttons."""
    permission = np.array(rows["permission"])
    released, ending = (permission & _RELEASED) != 0, (permission & _ENDING) != 0
    yield from _first(
        rows, "permission", (permission & ~np.uint32(_RELEASED | _ENDING)) != 0, "an undefined bit is set"
    )
    yield from _first(rows, "permission", np.diff(ending, prepend=False) & ~ending, "a run that was ending went on")
    if dead_man == "none":
        yield from _first(rows, "permission", released, "a dead-man's switch was released, but the run has none")
    elif dead_man == "button":
        held = (rows["buttons"] & DEAD_MAN_BUTTON) != 0
        yield from _first(rows, "buttons", released == held, "the dead-man's button and its release disagree")


def _first(rows: Rows, rule: str, where: NDArray[np.bool_], words: str) -> Iterator[Finding]:
    """Yield the finding of a rule that is broken `where`; nothing if nowhere."""
    count = int(np.count_nonzero(where))
    if count:
        tick = int(rows["tick"][int(np.argmax(where))])
        yield Finding(rule, VIOLATED, f"{words}, first in tick {tick} ({count} ticks).", tick)
