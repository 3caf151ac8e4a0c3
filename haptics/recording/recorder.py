"""Writer of recordings; see `recording` for the files."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import shutil
import tempfile
import threading
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np

from haptics.errors import RecordingError
from haptics.recording.certificate import RunSummary
from haptics.recording.columns import columns_with, units_with
from haptics.recording.json_files import append_line, parsed_json, write_json
from haptics.recording.recording import EVENTS, FORMAT, METADATA, ORIGIN, ORIGIN_UTC, PART, ROWS_SHA256, SETTINGS, TICKS
from haptics.recording.tick_file import TickFile, TickTable, read_ticks
from haptics.records import Rows
from haptics.trace import Reader

_USUAL_RATE = 1000.0
_UNBORN = ".haptics-new-"
_ABANDONED = 3600.0


class Recorder:
    """Write one recording, from before the first tick to its end.

    Parameters
    ----------
    folder : Path
        A folder that does not exist yet.
    metadata : dict
        Content of ``recording.json`` besides the columns; the channels in its table ``device`` become columns.

    Attributes
    ----------
    metadata : dict
        Present content of ``recording.json``.
    summary : RunSummary
        Running summary of the written rows; the certificate is available as soon as the last row is written.
    """

    def __init__(self, folder: Path, metadata: dict[str, Any]) -> None:
        self.folder = folder
        channels = metadata.get("device", {}).get("channels", ())
        self.metadata: dict[str, Any] = {"format": FORMAT, "state": "running", **metadata}
        self.metadata["columns"] = units_with(channels)
        self._ticks = _begin(folder, self.metadata, columns_with(channels))
        self.summary = RunSummary(1.0 / metadata.get("rate_hz", _USUAL_RATE))
        self._reader: Reader | None = None
        self._noting = threading.Lock()

    def note(self, **facts: Any) -> None:
        """Add facts to ``recording.json``; raise `ValueError` and change nothing if they are not valid JSON."""
        json.dumps(facts, allow_nan=False)
        with self._noting:
            self.metadata |= facts
            write_json(self.folder / METADATA, self.metadata)

    def follow(self, reader: Reader) -> None:
        """Record the rows of `reader` from now on."""
        self._reader = reader

    @property
    def count(self) -> int:
        """Number of rows written."""
        return self._ticks.count

    def drain(self) -> None:
        """Write the new rows of the trace, and with the first rows the time of tick 0."""
        if self._reader is not None:
            rows = self._reader.read()
            self._ticks.append(rows)
            self.summary.add(rows)
            if self._ticks.count and ORIGIN not in self.metadata and (origin := _origin(self._reader)):
                with contextlib.suppress(OSError):  # rows have priority; the next note includes the origin too
                    self.note(**origin)

    def rows(self) -> Rows:
        """Map all rows recorded until now."""
        return read_ticks(self.folder / PART)

    def require_rows(self) -> None:
        """Raise `RecordingError` if the file no longer contains all rows that were written."""
        found = len(TickTable(self.folder / PART))
        if found != self.count:
            raise RecordingError(f"{self.folder / PART} has {found} ticks; {self.count} were written to it.")

    def journal_settings(self, version: int, parameters: dict[str, Any]) -> None:
        """Append parameters to the journal before they take effect as `version`."""
        append_line(self.folder / SETTINGS, {"version": version, **parameters})

    def journal_event(self, event: str, **facts: Any) -> None:
        """Append an event to the journal."""
        append_line(self.folder / EVENTS, {"event": event, **facts})

    def close(self, result: dict[str, Any], *, complete: bool) -> None:
        """Close the recording with its `result`.

        If `complete` is false, the run did not end regularly, and the table of ticks keeps its ``.part`` name. The rows
        are complete in either case.
        """
        digest = self._ticks.close()
        self.note(state="complete" if complete else "interrupted", **{ROWS_SHA256: digest}, **result)
        if complete:
            os.replace(self.folder / PART, self.folder / TICKS)


def _origin(reader: Reader) -> dict[str, Any]:
    """Return the metadata entries for the time of tick 0; empty if it is unknown."""
    monotonic, utc = reader.origin
    if not monotonic:
        return {}
    instant = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=utc // 1000)
    return {ORIGIN: monotonic, ORIGIN_UTC: instant.isoformat(timespec="microseconds")}


def _begin(folder: Path, metadata: dict[str, Any], columns: np.dtype[Any]) -> TickFile:
    """Create a new recording without ticks under a hidden name, then rename it."""
    if os.path.lexists(folder):  # os.rename would replace an empty folder
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(folder))
    folder.parent.mkdir(parents=True, exist_ok=True)
    _sweep(folder.parent)
    with tempfile.TemporaryDirectory(prefix=_UNBORN, dir=folder.parent) as hidden:
        unborn = Path(hidden) / folder.name
        unborn.mkdir()
        write_json(unborn / METADATA, metadata)
        ticks = TickFile(unborn / PART, columns)
        try:
            os.rename(unborn, folder)
        except OSError as error:
            ticks.close()
            if error.errno in (errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR):  # another process created it first
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(folder)) from error
            raise
    return ticks


def _sweep(parent: Path) -> None:
    """Remove the remains of recordings whose processes were killed during the creation.

    The creation takes milliseconds, so older remains are considered abandoned.
    """
    for left in parent.glob(f"{_UNBORN}*"):
        with contextlib.suppress(OSError):
            if time.time() - left.stat().st_mtime > _ABANDONED:
                shutil.rmtree(left)


def salvage(folder: Path, reader: Reader | None) -> None:
    """Complete the recording of an application that died, from the rows in its trace.

    The recording is marked as interrupted.

    Parameters
    ----------
    folder : Path
        Folder of the recording.
    reader : Reader or None
        Reader at the beginning of the trace; None if the application died before the trace was available.
    """
    metadata = parsed_json((folder / METADATA).read_text(encoding="utf-8"))
    part = folder / PART
    facts: dict[str, Any] = {"state": "interrupted", "reason": "application lost"}
    if reader is not None and part.exists():
        facts |= _origin(reader)
        ticks = TickFile(part, append=True)
        rows = reader.read()
        newest = int(TickTable(part).read(ticks.count - 1, columns=("tick",))["tick"][-1]) if ticks.count else -1
        ticks.append(rows[rows["tick"] > newest])
        facts[ROWS_SHA256] = ticks.close()
    if metadata["state"] == "running":
        write_json(folder / METADATA, {**metadata, **facts})
    elif metadata["state"] == "complete" and part.exists():  # it died between its last entry and the renaming
        os.replace(part, folder / TICKS)
