from apps.experiment.export import export_sessions
from apps.experiment.export.formats import read_sessions
from apps.experiment.journal.folder import SessionFolder
from apps.experiment.journal.journal import Journal, SessionState, read_journal, replay
from apps.experiment.journal.tables import COLUMNS, trial_rows
from apps.experiment.procedures.methods import (
    Tracks,
    make_procedure,
    permuted_blocks,
    trial_seed,
    williams_order,
)
from apps.experiment.trial_log import TrialLog

__all__ = [
    "COLUMNS",
    "Journal",
    "SessionFolder",
    "SessionState",
    "Tracks",
    "TrialLog",
    "export_sessions",
    "make_procedure",
    "permuted_blocks",
    "read_journal",
    "read_sessions",
    "replay",
    "trial_rows",
    "trial_seed",
    "williams_order",
]
