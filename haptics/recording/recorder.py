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
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np

from haptics.device import Causality
from haptics.errors import DeviceFault, HapticError, RecordingError, ServoLost
from haptics.files import append_line, parse_json, write_json
from haptics.recording.certificate import Fitness, RunSummary
from haptics.recording.recording import EVENTS, FORMAT, METADATA, ORIGIN, ORIGIN_UTC, PART, ROWS_SHA256, SETTINGS, TICKS
from haptics.recording.tick_file import TickFile, TickTable
from haptics.records import Rows, columns_with, units_with
from haptics.trace import Reader, Trace

_USUAL_RATE = 1000.0
_UNSTARTED = ".haptics-new-"
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

    def update_metadata(self, **facts: Any) -> None:
        """Add facts to ``recording.json``; raise `ValueError` and change nothing if they are not valid JSON."""
        json.dumps(facts, allow_nan=False)
        with self._noting:
            self.metadata |= facts
            write_json(self.folder / METADATA, self.metadata)

    def attach(self, reader: Reader) -> None:
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
                    self.update_metadata(**origin)

    def rows(self) -> Rows:
        """Map all rows recorded until now."""
        return TickTable(self.folder / PART).map()

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
        self.update_metadata(state="complete" if complete else "interrupted", **{ROWS_SHA256: digest}, **result)
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
    # Remove the remains of recordings whose processes were killed during the creation.
    for left in folder.parent.glob(f"{_UNSTARTED}*"):
        with contextlib.suppress(OSError):
            if time.time() - left.stat().st_mtime > _ABANDONED:
                shutil.rmtree(left)
    with tempfile.TemporaryDirectory(prefix=_UNSTARTED, dir=folder.parent) as hidden:
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


def complete_recording(folder: Path, reader: Reader | None, cause: str) -> None:
    """Complete the recording of an application that died, from the rows in its trace.

    The recording is marked as interrupted.

    Parameters
    ----------
    folder : Path
        Folder of the recording.
    reader : Reader or None
        Reader at the beginning of the trace; None if the application died before the trace was available.
    cause : str
        Cause of the end, recorded as ``error``.
    """
    metadata = parse_json((folder / METADATA).read_text(encoding="utf-8"))
    part = folder / PART
    facts: dict[str, Any] = {"state": "interrupted", "reason": "application lost", "error": cause}
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


# --- end of a run -----------------------------------------------------------------------------------------------------
#
# End of a run: fault handling, final state and certificate of the recording.
#
# The final state is written as soon as all rows are recorded, and the certificate after that. A process killed in
# between leaves a closed recording without a certificate.

FAULT = "fault"


def not_written(error: OSError, consequence: str) -> DeviceFault:
    """Return the fault of a run whose recording could not be written completely."""
    return DeviceFault(f"the recording could not be written ({error.strerror or error}): {consequence}.")


class RunCloser:
    """Record the first fault of a run and close its recording.

    Parameters
    ----------
    recorder : Recorder
        The recording.
    trace : Trace
        Trace of the run.
    notify : callable
        Displays a line to the user.

    Attributes
    ----------
    fault : HapticError or None
        First fault of the run.
    servo_lost : bool
        Whether the servo process died or was killed without an error message.
    """

    def __init__(self, recorder: Recorder, trace: Trace, notify: Callable[[str], None]) -> None:
        self._recorder = recorder
        self._trace = trace
        self._notify = notify
        self.fault: HapticError | None = None
        self.servo_lost = False

    def fail(self, fault: HapticError) -> None:
        """Record the first fault as the fault of the run; display later ones."""
        self.servo_lost |= isinstance(fault, ServoLost)
        if self.fault is None:
            self.fault = fault
        else:
            self._notify(str(fault))

    def end_reason(self, otherwise: str) -> str:
        """Return the reason for the end of the run: ``fault``, or `otherwise` without a fault."""
        return FAULT if self.fault is not None else otherwise

    def close(self, reason: str, *, complete: bool) -> None:
        """Write the final state of a recording whose rows are complete.

        Parameters
        ----------
        reason : str
            Reason for the end of the run if there was no fault.
        complete : bool
            Whether the run was started and ended regularly by the application.
        """
        try:
            path, count = self._recorder.folder / PART, self._recorder.count
            if (found := len(TickTable(path))) != count:
                raise RecordingError(f"{path} has {found} ticks; {count} were written to it.")
        except RecordingError as error:
            self.fail(DeviceFault(f"the recording was lost in mid-run: {error}"))
        if self.servo_lost:  # the process died without logging its end
            with contextlib.suppress(OSError):
                self._recorder.journal_event(
                    "servo lost", ticks=self._trace.count, noticed_monotonic_ns=time.monotonic_ns()
                )
        result = {"reason": self.end_reason(reason), "error": str(self.fault) if self.fault else None}
        try:
            self._recorder.close(result, complete=complete and not self.servo_lost)
        except OSError as error:
            with contextlib.suppress(OSError):
                self._recorder.update_metadata(state="interrupted", **result)
            self.fail(not_written(error, "its end is missing, its ticks are kept"))

    def certify(
        self,
        causality: Causality,
        *,
        fitness: Fitness | None = None,
        planned: int | None = None,
        used: Mapping[str, Any] | None = None,
        granted: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Add the certificate of a run to its closed recording and return it.

        Parameters
        ----------
        causality : Causality
            Causality of the device.
        fitness : Fitness, optional
            Limits for a fit run.
        planned : int or None
            See `haptics.recording.certificate.RunSummary.certificate`.
        used, granted : mapping, optional
            Resources that the servo used and was granted by the operating system; the latter are only recorded.
        """
        limits, summary = fitness or Fitness(), self._recorder.summary
        timing, forces = summary.certificate(self._trace.count, planned), summary.force_statistics(causality)
        timing |= {**self._verdict(limits, timing), **(used or {})}
        certificate, flags = {**timing, **(granted or {})}, summary.flags_seen()
        try:
            self._recorder.update_metadata(certificate=certificate, flags=flags, **forces)
        except OSError as error:
            self.fail(not_written(error, "its certificate is missing, its ticks are kept"))
        timing |= self._verdict(limits, timing)  # a failure to write the certificate makes the run unfit
        return {**timing, **forces}

    def _verdict(self, limits: Fitness, timing: dict[str, Any]) -> dict[str, Any]:
        """Return the verdict on a run with this timing certificate."""
        unfit = limits.evaluate(timing, str(self.fault) if self.fault is not None else None)
        return {"fit": not unfit, "unfit_because": unfit}
