"""Recordings: one folder per run, written during the run and readable even if the run is killed.

The folder appears atomically with its metadata and an empty table of ticks, and is readable from then on. Written data
survive the death of any process. They are forced to the disk only at the end: waiting for the disk during a run would
cost more than the few seconds of data that a power failure can destroy.

=================  =============================================================================================
file               holds
=================  =============================================================================================
recording.json     configuration, versions, device, columns with units; written before the first tick. Facts reported by
                   the opened device, the time of tick 0, the result and the timing certificate are added later
ticks.npy.part     all ticks as a NumPy structured array, appended during the run; always a valid ``.npy`` file
ticks.npy          the same file, renamed when the run was closed regularly
ticks.npz          the same data in compressed form, if the recording was packed
settings.jsonl     one line per change of parameters: version and the parameters that apply from then on
events.jsonl       one line per event: keys pressed by the user, and the end of the run, each with tick and time
                   (monotonic clock, ns)
=================  =============================================================================================
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from haptics.errors import ConfigurationError, RecordingError
from haptics.files import complete_lines, parse_json, read_small_text
from haptics.recording.tick_file import CHUNK_ROWS, PackedTable, Table, TableInMemory, TickTable
from haptics.records import Rows, flatten

if TYPE_CHECKING:
    import pandas
    from matplotlib.figure import Figure

METADATA = "recording.json"
TICKS = "ticks.npy"
PART = "ticks.npy.part"
PACKED = "ticks.npz"
"""Replaces ``ticks.npy`` in a packed recording (`haptics.recording.tick_file`)."""
SETTINGS = "settings.jsonl"
EVENTS = "events.jsonl"

FORMAT = 3
"""Format of new recordings; recordings of a higher format are rejected."""

ROWS_SHA256, FILE_SHA256 = "rows_sha256", "ticks_sha256"
"""Metadata keys of the hash of the ticks: `TickTable.sha256`, and the file hash of older recordings."""

ORIGIN, ORIGIN_UTC = "origin_monotonic_ns", "origin_utc"
"""Metadata keys of the time of tick 0: on the monotonic clock [ns], and as date and time."""

# Optional entries of the metadata that must be tables.
_TABLES = ("device", "limits", "configuration", "certificate", "versions", "columns")


def stated_hash(metadata: Mapping[str, Any]) -> str:
    """Return the hash of the ticks from the metadata of a recording; empty if it was not closed."""
    return str(metadata.get(ROWS_SHA256) or metadata.get(FILE_SHA256) or "")


class Recording:
    """A recording on disk, complete or not.

    Parameters
    ----------
    folder : Path or str
        Folder of the recording.

    Attributes
    ----------
    folder : Path
        Folder of the recording.
    metadata : dict
        Content of ``recording.json``.
    table : Table
        Recorded ticks on disk, with the columns of the file: `haptics.records.COLUMNS` as far as its format defines
        them, the channels of its device and possibly foreign columns (`haptics.records`).
    settings : list of dict
        Parameters of every version, in order.
    """

    def __init__(self, folder: Path | str) -> None:
        self.folder = folder = Path(folder)
        try:
            self.metadata: dict[str, Any] = parse_json(read_small_text(folder / METADATA))
            self.settings = [parse_json(line) for line in complete_lines(folder / SETTINGS)]
        except (OSError, ValueError, RecursionError) as error:
            raise RecordingError(
                f"{folder} is not a readable recording: {error}. Give the folder that holds {METADATA}."
            ) from error
        where, metadata = self.folder / METADATA, self.metadata
        if not isinstance(metadata, dict):
            raise RecordingError(f"{where} is not a recording's description: it must be a JSON object.")
        found = metadata.get("format")
        if type(found) is not int or not 1 <= found <= FORMAT:
            raise RecordingError(
                f"{where} is of format {str(found)[:20]}: this version reads up to {FORMAT}. Use the version that made "
                "it, or a newer one."
            )
        for name in _TABLES:
            if not isinstance(metadata.get(name, {}), dict):
                raise RecordingError(f"{where}: {name} must be a JSON object.")
        if not all(isinstance(entry, dict) for entry in self.settings):
            raise RecordingError(f"{self.folder / SETTINGS}: every line must be a JSON object.")
        path = self.ticks
        self.table: Table = PackedTable(path) if path.name == PACKED else TickTable(path)
        self._rows: Rows | None = None

    def __len__(self) -> int:
        """Return the number of recorded ticks."""
        return len(self.table)

    def chunks(
        self, columns: Sequence[str] | None = None, rows: int = CHUNK_ROWS, *, start: int = 0, stop: int | None = None
    ) -> Iterator[Rows]:
        """Yield the recorded ticks in chunks, in constant memory.

        A chunk is valid until the next one is requested.

        See `haptics.recording.tick_file.Table.chunks` for the parameters.
        """
        return self.table.chunks(columns, rows, start=start, stop=stop)

    def read(self, start: int = 0, stop: int | None = None, columns: Sequence[str] | None = None) -> Rows:
        """Return a copy of the ticks from row `start` to `stop`."""
        return self.table.read(start, stop, columns)

    @property
    def rows(self) -> Rows:
        """All recorded ticks as a read-only array, mapped from the file unless it is packed.

        Convenient for short recordings. Accessed pages stay in memory while enough is free, and an hour at 8 kHz
        occupies 7.5 GB of address space: use `chunks` and `read` for recordings of any length.
        """
        if self._rows is None:
            self._rows = self.table.map()
        return self._rows

    @rows.setter
    def rows(self, rows: Rows) -> None:
        """Replace the rows in memory; the file is not changed."""
        self.table, self._rows = TableInMemory(rows, self.table), rows

    @property
    def events(self) -> list[dict[str, Any]]:
        """Logged events in order; the file is read at every access.

        The entry ``event`` is the kind of the event: ``key`` for a key that was pressed or released (with ``name``,
        ``down``, ``tick``, ``monotonic_ns``), or the end of the run.

        Raises
        ------
        RecordingError
            If the file is damaged.
        """
        where = self.folder / EVENTS
        try:
            events = [parse_json(line) for line in complete_lines(where)]
        except (OSError, ValueError, RecursionError) as error:
            raise RecordingError(f"{where} cannot be read: {error}.") from error
        if not all(isinstance(event, dict) for event in events):
            raise RecordingError(f"{where}: every line must be a JSON object.")
        return events

    def to_frame(self) -> pandas.DataFrame:
        """Return the rows as a pandas data frame of scalar columns with units in their names.

        Raises
        ------
        ConfigurationError
            If pandas is not installed.
        """
        try:
            import pandas
        except ImportError as error:
            raise ConfigurationError("a data frame needs pandas: pip install 'haptics[export]'.") from error
        return pandas.DataFrame(flat_columns(self))

    # The applications draw; they are above this package and are imported on use.

    def plot(self) -> Figure:
        """Return a Matplotlib figure: path with force vectors, friction force over time and over speed."""
        figure: Figure = importlib.import_module("apps.shared.notebook").plot(self)
        return figure

    def _repr_html_(self) -> str:
        """Return the display of a notebook: the main facts, and a sketch of the path."""
        return str(importlib.import_module("apps.shared.notebook").recording_html(self))

    @property
    def ticks(self) -> Path:
        """Path of the file with the rows."""
        complete, packed = self.folder / TICKS, self.folder / PACKED
        return complete if complete.exists() else packed if packed.exists() else self.folder / PART


def flat_columns(recording: Recording) -> dict[str, NDArray[Any]]:
    """Return the columns of a recording as scalar columns, by name with unit, each of shape (n,).

    A vector of two gets ``_x`` and ``_y``, any other ``_1``, ``_2`` ... before the unit: ``position_x_m``,
    ``velocity_y_m_per_s``, ``channel_joint_angles_2_rad``. Columns without a unit, such as ``tick``, get no suffix. The
    unit of a command is N for an impedance device and m for an admittance device.
    """
    metadata = recording.metadata
    causality = str(metadata.get("device", {}).get("causality", ""))
    known = metadata.get("columns", {})
    return flatten(recording.rows, {name: known.get(name, "") for name in recording.rows.dtype.names or ()}, causality)
