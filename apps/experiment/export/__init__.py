"""Exports of sessions: wide CSV with a script for R, three columns for psignifit, BIDS, Psych-DS."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from apps.experiment.export.bids import export_bids
from apps.experiment.export.formats import (
    export_csv,
    export_psignifit,
    export_psych_ds,
    new_export,
    note_left_out,
    select_sessions,
)
from apps.experiment.journal.exclusion import LeftOut
from apps.experiment.journal.tables import Session
from haptics.errors import ConfigurationError

FORMATS = {"csv": export_csv, "psignifit": export_psignifit, "bids": export_bids, "psych-ds": export_psych_ds}
"""Functions that write the sessions of a data set, by format."""


def export_sessions(folders: Iterable[str | Path], out: str | Path, to: str = "csv") -> list[Session]:
    """Write the sessions in `folders` as a data set of another program, and return them.

    Sessions of excluded participants and training are left out, and listed in the data set.

    Parameters
    ----------
    folders : iterable of str or Path
        Folders of sessions, or folders that contain them.
    out : str or Path
        New folder, or an earlier export without later changes, which is replaced.
    to : {"csv", "psignifit", "bids", "psych-ds"}
        Format.

    Raises
    ------
    ConfigurationError
        If the format is unknown, `out` holds other files, a blind session has not ended, or all sessions are left out.
    RecordingError
        If there is no session, or a journal is damaged.

    Examples
    --------
    >>> from apps.experiment import TrialLog, export_sessions
    >>> with TrialLog.open("data", "P01", "wood or ice", axis="law.force") as log:
    ...     block = log.begin_block()
    ...     trial, markers = log.begin_trial(0.5, values=(2.0, 2.5), comparison=2)  # N
    ...     log.finish_trial("2", correct=True)
    >>> [session] = export_sessions(["data"], "tables", to="csv")
    >>> session.rows[0]["asked_2"], session.rows[0]["axis_unit"]
    (2.5, 'N')
    """
    return export_data_set(folders, out, to)[0]


def export_data_set(
    folders: Iterable[str | Path], out: str | Path, to: str = "csv"
) -> tuple[list[Session], list[LeftOut]]:
    """Write a data set like `export_sessions`; return its sessions, and those that are left out."""
    if to not in FORMATS:
        raise ConfigurationError(f"to = {to!r}: must be one of {', '.join(FORMATS)}.")
    sessions, left_out = select_sessions(Path(folder) for folder in folders)
    with new_export(Path(out)) as folder:
        FORMATS[to](folder, sessions)
        if left_out:
            note_left_out(folder, left_out)
    return sessions, left_out
