"""Names and folders of a session, according to BIDS (Brain Imaging Data Structure).

::

    OUT/sub-P01/ses-01/sub-P01_ses-01_task-friction_journal.jsonl    journal
                      /session.json                                   data known before trial 1
                      /codes.json                                     sealed code table of a blind session
                      /blocks/block-01/                               recording of block 1
                      /blocks/block-01_2/                             recording of the second start of block 1
                      /sub-P01_ses-01_task-friction_beh.tsv, .json    table of trials, generated from the others
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Self

from haptics.errors import ConfigurationError, RecordingError

MOST_SESSIONS = 999
_CODE = re.compile(r"[A-Za-z0-9]{1,32}")
_LIKE_A_NAME = re.compile(r"[A-Z][a-z]{2,}")
_FIELD = re.compile(r"[a-z][a-z0-9_]{0,39}")
_PERSONAL = frozenset(
    ("name", "first_name", "last_name", "surname", "email", "mail", "phone", "address", "birthday", "date_of_birth")
)
_JOURNAL = re.compile(r"sub-([A-Za-z0-9]{1,32})_ses-(\d{2,3})_task-([A-Za-z0-9]{1,64})_journal\.jsonl")


def require_code(code: str) -> str:
    """Return a validated participant code: 1 to 32 letters and digits that do not resemble a name.

    Raises
    ------
    ConfigurationError
        If the code is invalid.
    """
    if not isinstance(code, str) or not _CODE.fullmatch(code) or _LIKE_A_NAME.fullmatch(code):
        raise ConfigurationError(
            f"participant = {str(code)[:60]!r}: must be a code of 1 to 32 letters and digits that names nobody, such "
            "as P01; keep the list of codes and people elsewhere."
        )
    return code


def require_impersonal(fields: Mapping[str, Any]) -> None:
    """Raise `ConfigurationError` if the data about a participant could identify the person."""
    for name, value in fields.items():
        if not _FIELD.fullmatch(name) or name in _PERSONAL:
            raise ConfigurationError(
                f"participant field {str(name)[:60]!r}: must be small letters, digits and underscores, and nothing "
                "that tells who it is, such as age_band, handedness or consent_id."
            )
        if isinstance(value, str) and "@" in value:
            raise ConfigurationError(f"participant field {name!r}: looks like an address; people are codes here.")


def task_label(name: str) -> str:
    """Return the letters and digits of an experiment's name as a BIDS label.

    Raises
    ------
    ConfigurationError
        If the label is empty or too long.
    """
    label = re.sub(r"[^A-Za-z0-9]", "", name)
    if not 1 <= len(label) <= 64:
        raise ConfigurationError(f"experiment name {name[:80]!r}: must have 1 to 64 letters (a-z) and digits.")
    return label


@dataclass(frozen=True)
class SessionFolder:
    """Folder of a session of a participant, and its file names.

    Attributes
    ----------
    folder : Path
        The folder ``ses-01``.
    participant : str
        Code of the participant.
    session : int
        Session number, from 1.
    task : str
        Label of the experiment.
    """

    folder: Path
    participant: str
    session: int
    task: str

    @classmethod
    def new(cls, out: Path, participant: str, session: int, experiment: str) -> Self:
        """Return the folder of a session below `out` without creating it.

        Raises
        ------
        ConfigurationError
            If code, session or experiment is invalid.
        """
        code, task = require_code(participant), task_label(experiment)
        if not 1 <= session <= MOST_SESSIONS:
            raise ConfigurationError(f"session = {session}: must be a whole number from 1 to {MOST_SESSIONS}.")
        return cls(out / f"sub-{code}" / f"ses-{session:02d}", code, session, task)

    @classmethod
    def of(cls, path: Path) -> Self:
        """Return the session in an existing folder, given by the folder or its journal.

        Raises
        ------
        RecordingError
            If there is not exactly one journal.
        """
        folder = path.parent if path.suffix == ".jsonl" else path
        names = [path.name] if path.suffix == ".jsonl" else sorted(one.name for one in folder.glob("*_journal.jsonl"))
        found = [match for name in names if (match := _JOURNAL.fullmatch(name))]
        if len(found) != 1 or not (folder / found[0].string).is_file():
            raise RecordingError(
                f"{path} is no session of an experiment: there must be one file "
                "sub-CODE_ses-NN_task-NAME_journal.jsonl in it."
            )
        code, session, task = found[0].groups()
        return cls(folder, code, int(session), task)

    @property
    def stem(self) -> str:
        """Common prefix of the file names."""
        return f"sub-{self.participant}_ses-{self.session:02d}_task-{self.task}"

    @property
    def journal(self) -> Path:
        """Path of the journal."""
        return self.folder / f"{self.stem}_journal.jsonl"

    @property
    def sidecar(self) -> Path:
        """Path of the sidecar with the data known before the first trial."""
        return self.folder / "session.json"

    @property
    def codes(self) -> Path:
        """Path of the sealed code table of a blind session."""
        return self.folder / "codes.json"

    @property
    def table(self) -> Path:
        """Path of the table of trials."""
        return self.folder / f"{self.stem}_beh.tsv"

    @property
    def lock(self) -> Path:
        """Path of the lock file, held by the process that writes the journal."""
        return self.folder / ".lock"

    def inside(self, relative: str) -> Path:
        """Return the path of a recording named in the journal.

        Raises
        ------
        RecordingError
            If it is not inside the session's folder.
        """
        path = PurePosixPath(relative)
        if path.is_absolute() or ".." in path.parts or "\0" in relative:
            raise RecordingError(f"{self.journal}: the recording {relative[:80]!r} is not in the session's folder.")
        return self.folder / path

    def recording(self, block: int, attempt: int = 1) -> Path:
        """Return the path of the recording of a block.

        `attempt` counts the starts of the block.
        """
        again = f"_{attempt}" if attempt > 1 else ""
        return self.folder / "blocks" / f"block-{block:02d}{again}"


def sessions_below(path: Path) -> list[SessionFolder]:
    """Return the sessions at `path`, which is the folder of a session, a participant or an experiment.

    Raises
    ------
    RecordingError
        If there is no session.
    """
    for pattern in ("*_journal.jsonl", "ses-*/*_journal.jsonl", "sub-*/ses-*/*_journal.jsonl"):
        found = sorted({journal.parent for journal in path.glob(pattern)})
        if found:
            return [SessionFolder.of(folder) for folder in found]
    raise RecordingError(f"{path} holds no session of an experiment: give the folder that was --out, or one below it.")
