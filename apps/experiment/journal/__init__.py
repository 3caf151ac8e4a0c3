"""Journal of a session, the authoritative record; names and folders, arrival order, sealed codes.

This package needs no window, device or compiler.
"""

from apps.experiment.journal.blinding import Codes, decode, make_codes, open_codes, seal_codes
from apps.experiment.journal.columns import COLUMNS, STIMULUS_COLUMNS, TRIAL_COLUMNS, Column
from apps.experiment.journal.errors import JournalFault
from apps.experiment.journal.journal import Journal, write_sidecar
from apps.experiment.journal.names import (
    SessionFolder,
    require_code,
    require_impersonal,
    sessions_below,
    task_label,
)
from apps.experiment.journal.reading import Contents, read_journal
from apps.experiment.journal.schema import COMMON, KINDS, Record
from apps.experiment.journal.slots import reserve_slot
from apps.experiment.journal.state import Attempt, SessionState, replay
from apps.experiment.journal.tables import csv_of, trial_rows, tsv_of, write_table

__all__ = [
    "COLUMNS",
    "COMMON",
    "KINDS",
    "STIMULUS_COLUMNS",
    "TRIAL_COLUMNS",
    "Attempt",
    "Codes",
    "Column",
    "Contents",
    "Journal",
    "JournalFault",
    "Record",
    "SessionFolder",
    "SessionState",
    "csv_of",
    "decode",
    "make_codes",
    "open_codes",
    "read_journal",
    "replay",
    "require_code",
    "require_impersonal",
    "reserve_slot",
    "seal_codes",
    "sessions_below",
    "task_label",
    "trial_rows",
    "tsv_of",
    "write_sidecar",
    "write_table",
]
