"""Reading a journal, whoever it came from: every line is judged, and a damaged one is named."""

from __future__ import annotations

import json
import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from apps.experiment.journal.schema import FORMAT, Record, checked
from haptics.errors import RecordingError
from haptics.reading import without_waiting

LARGEST_JOURNAL = 200_000_000
"""Bytes that a journal may have."""

LONGEST_LINE = 8_000_000
"""Bytes that a line may have; the first one holds the whole design."""


@dataclass(frozen=True)
class Contents:
    """What a journal holds.

    Attributes
    ----------
    records : list of dict
        Every record, in order; the first one is the header.
    length : int
        Bytes of the lines they are in.
    torn : int
        Bytes after them: a last line that was not finished when the writer was killed, or the power failed. Nobody was
        told that it is kept.
    """

    records: list[Record]
    length: int
    torn: int

    @property
    def header(self) -> Record:
        """The first record."""
        return self.records[0]


def read_journal(path: Path) -> Contents:
    """Return what is in a journal; a last line without its end is cut off.

    Raises
    ------
    RecordingError
        If it cannot be read or is anything but a journal, naming the line (the first is 1) and what is wrong with it.
    """
    data = _bytes(path)
    length = data.rfind(b"\n") + 1
    if not length:
        raise RecordingError(f"{path} holds no whole record: the session was killed before it began. Begin it again.")
    records: list[Record] = []
    for number, line in enumerate(data[:length].split(b"\n")[:-1]):
        try:
            records.append(_record(line, number))
        except (ValueError, RecursionError) as error:
            words = error if isinstance(error, ValueError) else "is nested too deeply"
            raise RecordingError(f"{path}, line {number + 1}: {words}.") from error
    return Contents(records, length, len(data) - length)


def _bytes(path: Path) -> bytes:
    try:
        with open(path, "rb", opener=without_waiting) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise RecordingError(f"{path} is no file.")
            data = file.read(LARGEST_JOURNAL + 1)
    except (OSError, ValueError) as error:
        if isinstance(error, RecordingError):
            raise
        raise RecordingError(f"{path} cannot be read ({getattr(error, 'strerror', None) or error}).") from error
    if len(data) > LARGEST_JOURNAL:
        raise RecordingError(f"{path} is too large; a journal has at most {LARGEST_JOURNAL // 1_000_000} MB.")
    return data


def _record(line: bytes, number: int) -> Record:
    if len(line) > LONGEST_LINE:
        raise ValueError(f"has {len(line)} bytes; {LONGEST_LINE} at most")
    record = parsed(line)
    if number == 0 and isinstance(record, dict):
        found = record.get("format")
        if record.get("record") == "header" and type(found) is int and found > FORMAT:
            raise ValueError(f"is of format {str(found)[:20]}; this version reads up to {FORMAT}: use a newer one")
    record = checked(record)
    if record["number"] != number:
        raise ValueError(f"number = {record['number']}: must be {number}; lines are missing, doubled or out of order")
    if (record["record"] == "header") != (number == 0):
        raise ValueError(f"is a record {record['record']!r}: the header comes first, and once")
    return record


def parsed(data: bytes) -> Any:
    """Return the JSON in `data`; a name that is there twice, nan and infinity are a `ValueError`."""
    try:
        return json.loads(data.decode("utf-8"), parse_constant=_no_constant, object_pairs_hook=_once)
    except json.JSONDecodeError as error:
        raise ValueError(f"is no JSON ({error.msg} at character {error.pos})") from error
    except UnicodeDecodeError as error:
        raise ValueError(f"is no text (byte {error.start} is not UTF-8)") from error


def _no_constant(word: str) -> None:
    raise ValueError(f"holds {word}, which is no JSON")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("has a name twice")
    return found
