"""Recordings: a folder per run, written while it runs, complete even if the run is killed.

The folder appears under its name in one step, with its description and an empty table of ticks in it, and from then on
can be read at every moment. What has been written survives the death of any process at once. It is forced to the disk
only at the end: to wait for a disk in mid-run would cost more than the seconds that a power cut can take.

=================  =============================================================================================
file               holds
=================  =============================================================================================
recording.json     configuration, versions, device, columns with units; written before the first tick, with what
                   the device said of itself when it was open, with the first ticks when tick 0 was, and at the end
                   with the result and the timing certificate
ticks.npy.part     every tick as a NumPy structured array, appended to; a valid ``.npy`` file at every moment
ticks.npy          the same, renamed when the run was closed in order
ticks.npz          the same in less room, if somebody has packed it
settings.jsonl     one line per change of parameters: version and the parameters in force from then on
events.jsonl       one line per event: keys that a person pressed, and the end of the run; what, which tick, when
                   (monotonic clock, ns)
=================  =============================================================================================
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from haptics.errors import ConfigurationError, RecordingError
from haptics.recording.json_files import parsed_json, small_text, whole_lines
from haptics.recording.packed import PackedTable
from haptics.recording.tick_file import CHUNK_ROWS, Table, TableInMemory, TickTable
from haptics.records import Rows

if TYPE_CHECKING:
    import pandas

METADATA = "recording.json"
TICKS = "ticks.npy"
PART = "ticks.npy.part"
PACKED = "ticks.npz"
"""In place of ``ticks.npy`` where a recording was packed (`haptics.recording.packed`)."""
SETTINGS = "settings.jsonl"
EVENTS = "events.jsonl"

FORMAT = 3
"""Format of the recordings that are made; those of a higher one are refused."""

ROWS_SHA256, FILE_SHA256 = "rows_sha256", "ticks_sha256"
"""What a description calls the hash of the ticks: `TickTable.sha256`, and in older recordings that of the file."""

ORIGIN, ORIGIN_UTC = "origin_monotonic_ns", "origin_utc"
"""What a description calls the instant of tick 0: by the monotonic clock [ns], and as date and time."""

_TABLES = ("device", "limits", "configuration", "certificate", "versions", "columns")
"""Parts of a description that are tables, where it has them."""


def stated_hash(metadata: Mapping[str, Any]) -> str:
    """Return the hash that the description of a recording states of its ticks; empty if nobody has closed it."""
    return str(metadata.get(ROWS_SHA256) or metadata.get(FILE_SHA256) or "")


class Recording:
    """A recording on disk, complete or not.

    Attributes
    ----------
    folder : Path
        Where it is.
    metadata : dict
        The content of ``recording.json``.
    table : Table
        The recorded ticks on the disk, with the columns of the file: those of `haptics.records.COLUMNS` as far as its
        format had them, the channels of its device, and others that it may have besides (`haptics.recording.columns`).
    settings : list of dict
        The parameters of every version, in order.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        try:
            self.metadata: dict[str, Any] = parsed_json(small_text(folder / METADATA))
            self.settings = [parsed_json(line) for line in whole_lines(folder / SETTINGS)]
        except (OSError, ValueError, RecursionError) as error:
            raise RecordingError(
                f"{folder} is not a readable recording: {error}. Give the folder that holds {METADATA}."
            ) from error
        self._require_known()
        path = self.ticks
        self.table: Table = PackedTable(path) if path.name == PACKED else TickTable(path)
        self._rows: Rows | None = None

    def __len__(self) -> int:
        """Return the number of recorded ticks."""
        return len(self.table)

    def chunks(
        self, columns: Sequence[str] | None = None, rows: int = CHUNK_ROWS, *, start: int = 0, stop: int | None = None
    ) -> Iterator[Rows]:
        """Yield the recorded ticks in pieces, in constant memory; a piece is valid until the next is asked for.

        See `haptics.recording.tick_file.Table.chunks` for the parameters.
        """
        return self.table.chunks(columns, rows, start=start, stop=stop)

    def read(self, start: int = 0, stop: int | None = None, columns: Sequence[str] | None = None) -> Rows:
        """Return the ticks from row `start` to `stop` in memory of their own."""
        return self.table.read(start, stop, columns)

    @property
    def rows(self) -> Rows:
        """Every recorded tick, as an array that must not be written to: mapped from the file, unless it is packed.

        Convenient for short recordings. What is looked at stays in memory, as long as there is enough of it, and an
        hour at 8 kHz takes 7.5 GB of addresses: programs for recordings of any length use `chunks` and `read`.
        """
        if self._rows is None:
            self._rows = self.table.map()
        return self._rows

    @rows.setter
    def rows(self, rows: Rows) -> None:
        """Look at other rows from now on; nothing is written."""
        self.table, self._rows = TableInMemory(rows, self.table), rows

    @property
    def events(self) -> list[dict[str, Any]]:
        """What happened, in the order in which it was written down; read anew every time.

        Every entry says by ``event`` what it was: ``key`` (a key that went down or up: ``name``, ``down``, ``tick``,
        ``monotonic_ns``), or how the run ended.

        Raises
        ------
        RecordingError
            If the file is damaged.
        """
        where = self.folder / EVENTS
        try:
            events = [parsed_json(line) for line in whole_lines(where)]
        except (OSError, ValueError, RecursionError) as error:
            raise RecordingError(f"{where} cannot be read: {error}.") from error
        if not all(isinstance(event, dict) for event in events):
            raise RecordingError(f"{where}: every line must be a JSON object.")
        return events

    def to_frame(self) -> pandas.DataFrame:
        """Return the rows as a data frame of pandas, one number a cell and the units in the names of the columns.

        Raises
        ------
        ConfigurationError
            If pandas is not installed.
        """
        from haptics.recording.flat import flat_columns

        try:
            import pandas
        except ImportError as error:
            raise ConfigurationError("a data frame needs pandas: pip install 'haptics[export]'.") from error
        return pandas.DataFrame(flat_columns(self))

    @property
    def ticks(self) -> Path:
        """The file that the rows are in."""
        complete, packed = self.folder / TICKS, self.folder / PACKED
        return complete if complete.exists() else packed if packed.exists() else self.folder / PART

    def _require_known(self) -> None:
        """Raise `RecordingError` unless the description has a form, and is of a format, that this version knows."""
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
