"""Reader of journals, which validates every line and reports the line number of errors."""

from __future__ import annotations

import json
import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from apps.experiment.journal.schema import FORMAT, Record, checked
from haptics.errors import RecordingError
from haptics.reading import open_nonblocking

LARGEST_JOURNAL = 200_000_000
"""Maximum size of a journal [bytes]."""

LONGEST_LINE = 8_000_000
"""Maximum length of a line [bytes]. The first line contains the whole design."""


@dataclass(frozen=True)
class Contents:
    """Content of a journal.

    Attributes
    ----------
    records : list of dict
        All records in order. The first one is the header.
    length : int
        Size of the complete lines [bytes].
    torn : int
        Size of an incomplete last line [bytes], which remains after a kill or power failure. The record was never
        confirmed.
    """

    records: list[Record]
    length: int
    torn: int

    @property
    def header(self) -> Record:
        """The first record."""
        return self.records[0]


def read_journal(path: Path) -> Contents:
    """Read a journal and ignore an incomplete last line.

    Raises
    ------
    RecordingError
        If the file cannot be read or is invalid. The message contains the line number, from 1, and the error.
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
        with open(path, "rb", opener=open_nonblocking) as file:
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
    """Parse JSON strictly.

    Raise `ValueError` for duplicate names, nan and infinity.
    """
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
