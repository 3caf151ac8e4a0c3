"""Recordings: a folder per run, written while it runs, complete even if the run is killed.

The folder appears under its name in one step, with its description and an empty table of ticks in it, and from then on
can be read at every moment. What has been written survives the death of any process at once. It is forced to the disk
only at the end: to wait for a disk in mid-run would cost more than the seconds that a power cut can take.

=================  =============================================================================================
file               holds
=================  =============================================================================================
recording.json     configuration, versions, device, columns with units; written before the first tick, and
                   once more at the end with the result and the timing certificate
ticks.npy.part     every tick as a NumPy structured array, appended to; a valid ``.npy`` file at every moment
ticks.npy          the same, renamed when the run was closed in order
settings.jsonl     one line per change of parameters: version and the parameters in force from then on
events.jsonl       one line per event at the end of a run: what, which tick, when (monotonic clock, ns)
=================  =============================================================================================
"""

from __future__ import annotations

import contextlib
import errno
import io
import json
import os
import shutil
import tempfile
import time
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from haptics.errors import RecordingError
from haptics.trace import ROW, ROW_UNITS, Reader, Rows

METADATA = "recording.json"
TICKS = "ticks.npy"
PART = "ticks.npy.part"
SETTINGS = "settings.jsonl"
EVENTS = "events.jsonl"

_UNBORN = ".haptics-new-"
_ABANDONED = 3600.0


class TickFile:
    """Appends rows to a ``.npy`` file whose header always tells the rows that are in it.

    NumPy pads the header so that the number of rows can grow in place; each append writes the rows first and the new
    header after them, so that a reader, or a crash, in between finds a shorter but valid file. The header is one write
    within the first page of the file: a kill comes before it or after it.
    """

    def __init__(self, path: Path, *, append: bool = False) -> None:
        self._file: IO[bytes] = open(path, "rb+" if append else "xb+")
        self.count = _rows_in(self._file) if append else 0
        self._data_offset = self._file.tell() if append else self._write_header()

    def append(self, rows: Rows) -> None:
        """Write `rows` at the end and make them part of the file."""
        if not len(rows):
            return
        self._file.seek(self._data_offset + self.count * ROW.itemsize)  # a write that failed may have left it elsewhere
        self._file.write(np.ascontiguousarray(rows, dtype=ROW).tobytes())
        self._file.flush()
        self.count += len(rows)
        self._write_header()

    def close(self) -> None:
        """Flush to the disk and close; closing twice does nothing."""
        if self._file.closed:
            return
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()

    def _write_header(self) -> int:
        """Write the header for the present number of rows and return its length, which never changes."""
        header = io.BytesIO()
        facts = {"descr": npy.dtype_to_descr(ROW), "fortran_order": False, "shape": (self.count,)}
        npy.write_array_header_1_0(header, facts)
        return os.pwrite(self._file.fileno(), header.getbuffer(), 0)


def _rows_in(file: IO[bytes]) -> int:
    """Return how many whole rows are in `file` and leave it at the first of them."""
    npy.read_magic(file)
    shape, _, dtype = npy.read_array_header_1_0(file)
    if dtype != ROW:
        raise RecordingError(f"{file.name} holds other columns than this version records.")
    return min(int(shape[0]), (os.fstat(file.fileno()).st_size - file.tell()) // ROW.itemsize)


def append_line(path: Path, value: dict[str, Any]) -> None:
    """Append one JSON line to a journal and hand it to the operating system at once."""
    with open(path, "a", encoding="utf-8") as file:
        file.write(json.dumps(value, allow_nan=False) + "\n")


def write_json(path: Path, value: dict[str, Any]) -> None:
    """Replace `path` by `value` in one step: readers see the old file or the new one."""
    temporary = path.with_suffix(".tmp")
    temporary.write_text(json.dumps(value, indent=2, allow_nan=False) + "\n", encoding="utf-8")
    os.replace(temporary, path)


class Recorder:
    """Writes one recording, from before the first tick to its end.

    Parameters
    ----------
    folder : Path
        A folder that does not exist yet.
    metadata : dict
        What `recording.json` shall say besides the columns.

    Attributes
    ----------
    metadata : dict
        The present content of ``recording.json``.
    """

    def __init__(self, folder: Path, metadata: dict[str, Any]) -> None:
        self.folder = folder
        self.metadata: dict[str, Any] = {"format": 2, "state": "running", **metadata, "columns": dict(ROW_UNITS)}
        self._ticks = _begin(folder, self.metadata)
        self._reader: Reader | None = None

    def note(self, **facts: Any) -> None:
        """Add facts to ``recording.json``."""
        self.metadata |= facts
        write_json(self.folder / METADATA, self.metadata)

    def follow(self, reader: Reader) -> None:
        """Record what `reader` gives from now on."""
        self._reader = reader

    def drain(self) -> None:
        """Write what the trace has gained since the last call."""
        if self._reader is not None:
            self._ticks.append(self._reader.read())

    def rows(self) -> Rows:
        """Return every row recorded so far."""
        return _read_ticks(self.folder / PART)

    def journal_settings(self, version: int, parameters: dict[str, Any]) -> None:
        """Write down parameters before they come into force as `version`."""
        append_line(self.folder / SETTINGS, {"version": version, **parameters})

    def close(self, result: dict[str, Any], *, complete: bool) -> None:
        """End the recording with its `result`.

        A run that was not closed in order (`complete` false) keeps its ``.part`` name; nothing else is missing.
        """
        self._ticks.close()
        self.note(state="complete" if complete else "interrupted", **result)
        if complete:
            os.replace(self.folder / PART, self.folder / TICKS)


def _begin(folder: Path, metadata: dict[str, Any]) -> TickFile:
    """Make a new recording without ticks under a hidden name, then give it its own."""
    if os.path.lexists(folder):  # an empty folder would be replaced
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(folder))
    folder.parent.mkdir(parents=True, exist_ok=True)
    _sweep(folder.parent)
    with tempfile.TemporaryDirectory(prefix=_UNBORN, dir=folder.parent) as hidden:
        unborn = Path(hidden) / folder.name
        unborn.mkdir()
        write_json(unborn / METADATA, metadata)
        ticks = TickFile(unborn / PART)
        try:
            os.rename(unborn, folder)
        except OSError as error:
            ticks.close()
            if error.errno in (errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR):  # another process was faster
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(folder)) from error
            raise
    return ticks


def _sweep(parent: Path) -> None:
    """Remove what is left of recordings whose makers were killed before they had a name; that takes milliseconds."""
    for left in parent.glob(f"{_UNBORN}*"):
        with contextlib.suppress(OSError):
            if time.time() - left.stat().st_mtime > _ABANDONED:
                shutil.rmtree(left)


def salvage(folder: Path, reader: Reader | None) -> None:
    """Complete the recording of an application that died, from what its trace still holds, and say so in its metadata.

    Parameters
    ----------
    folder : Path
        The recording.
    reader : Reader or None
        Reads the trace from its beginning; None if the application died before the trace could be had.
    """
    metadata = _parsed((folder / METADATA).read_text(encoding="utf-8"))
    part = folder / PART
    if reader is not None and part.exists():
        ticks = TickFile(part, append=True)
        rows = reader.read()
        newest = int(_read_ticks(part)["tick"][-1]) if ticks.count else -1
        ticks.append(rows[rows["tick"] > newest])
        ticks.close()
    if metadata["state"] == "running":
        write_json(folder / METADATA, {**metadata, "state": "interrupted", "reason": "application lost"})
    elif metadata["state"] == "complete" and part.exists():  # it died with its last words spoken
        os.replace(part, folder / TICKS)


class Recording:
    """A recording on disk, complete or not.

    Attributes
    ----------
    folder : Path
        Where it is.
    metadata : dict
        The content of ``recording.json``.
    rows : structured array
        Every recorded tick (dtype `haptics.trace.ROW`).
    settings : list of dict
        The parameters of every version, in order.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        try:
            self.metadata: dict[str, Any] = _parsed((folder / METADATA).read_text(encoding="utf-8"))
            self.settings = [_parsed(line) for line in _lines(folder / SETTINGS)]
        except (OSError, ValueError, RecursionError) as error:
            raise RecordingError(
                f"{folder} is not a readable recording: {error}. Give the folder that holds {METADATA}."
            ) from error
        if not isinstance(self.metadata, dict):
            raise RecordingError(f"{folder / METADATA} is not a recording's description: it must be a JSON object.")
        complete = folder / TICKS
        self.rows = _read_ticks(complete if complete.exists() else folder / PART)


def _parsed(text: str) -> Any:
    """Return the JSON in `text`; nan and infinity, which JSON does not have, are a `ValueError`."""

    def refuse(word: str) -> None:
        raise ValueError(f"{word} is no JSON")

    return json.loads(text, parse_constant=refuse)


def _lines(path: Path) -> list[str]:
    """Return the whole lines of a journal; a last line cut short by a crash is left out."""
    if not path.exists():
        return []
    return [line for line in path.read_text(encoding="utf-8").splitlines(keepends=True) if line.endswith("\n")]


def _read_ticks(path: Path) -> NDArray[Any]:
    """Map the rows of a ``.npy`` file; of one that was cut short, the whole rows that are left."""
    try:
        with open(path, "rb") as file:
            npy.read_magic(file)
            shape, _, dtype = npy.read_array_header_1_0(file)
            offset, size = file.tell(), os.fstat(file.fileno()).st_size
        count = min(shape[0] if len(shape) == 1 else 0, (size - offset) // dtype.itemsize)
        # An empty file cannot be mapped.
        rows = np.memmap(path, dtype, "r", offset, (count,)) if count else np.zeros(0, dtype)
    except (OSError, ValueError, EOFError) as error:
        raise RecordingError(f"{path} cannot be read: {error}.") from error
    columns = rows.dtype.fields or {}
    missing = [name for name in ROW.names or () if name not in columns or columns[name][0] != ROW[name]]
    if missing:
        raise RecordingError(f"{path} lacks the columns {', '.join(missing)}: it is not a recording of ours.")
    return np.asarray(rows)
