"""Sessions for the export, with their journals and tables of trials."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from apps.experiment.journal import SessionFolder, SessionState, read_journal, replay, sessions_below, trial_rows
from apps.experiment.journal.journal import require_same
from apps.experiment.journal.tables import Row
from haptics.errors import ConfigurationError


@dataclass(frozen=True)
class Session:
    """Session for the export.

    Attributes
    ----------
    place : SessionFolder
        Folder of the session.
    state : SessionState
        State from the journal.
    rows : list of dict
        Table of trials.
    """

    place: SessionFolder
    state: SessionState
    rows: list[Row]

    @property
    def fields(self) -> dict[str, Any]:
        """Data about the participant."""
        return dict(self.state.header["fields"])

    @property
    def recordings(self) -> list[str]:
        """Existing recording folders in order, relative to the session folder."""
        named = [one["recording"] for one in self.state.block_starts if one["recording"] is not None]
        return [name for name in dict.fromkeys(named) if self.place.inside(name).is_dir()]


def read_sessions(folders: Iterable[Path]) -> list[Session]:
    """Return the unique sessions in `folders`, sorted by participant and number.

    Raises
    ------
    ConfigurationError
        If two sessions have the same participant, number and task, or a blind session has not ended.
    RecordingError
        If there is no session, or a journal cannot be read.
    """
    found: dict[str, Session] = {}
    for place in {one.folder.resolve(): one for folder in folders for one in sessions_below(folder)}.values():
        if place.stem in found:
            raise ConfigurationError(f"{place.folder} and {found[place.stem].place.folder} are both {place.stem}.")
        contents = read_journal(place.journal)
        require_same(place, contents)
        state = replay(contents.records)
        if state.header["blind"] is not None and state.end is None:
            raise ConfigurationError(
                f"{place.folder} is blind and has not ended: its levels stay sealed until then. Leave it out, or end "
                f"it: haptics experiment resume {place.folder}"
            )
        found[place.stem] = Session(place, state, trial_rows(place))
    return [found[stem] for stem in sorted(found)]
