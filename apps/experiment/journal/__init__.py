"""Journal of a session, the authoritative record; names and folders, arrival order, sealed codes.

This package needs no window, device or compiler.
"""

from apps.experiment.journal.folder import SessionFolder, sessions_below
from apps.experiment.journal.journal import Journal, read_journal, replay
from apps.experiment.journal.tables import trial_rows

__all__ = ["Journal", "SessionFolder", "read_journal", "replay", "sessions_below", "trial_rows"]
