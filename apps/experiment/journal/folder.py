"""Folder of a session: names according to BIDS, atomic writes, lock, and places in the order of arrival.

::

    OUT/sub-P01/ses-01/sub-P01_ses-01_task-friction_journal.jsonl    journal
                      /session.json                                   data known before trial 1
                      /codes.json                                     sealed code table of a blind session
                      /blocks/block-01/                               recording of block 1
                      /blocks/block-01_2/                             recording of the second start of block 1
                      /sub-P01_ses-01_task-friction_beh.tsv, .json    table of trials, generated from the others
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import functools
import json
import os
import platform
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, Self

from haptics.errors import ConfigurationError, HapticError, RecordingError
from haptics.files import read_small, replacing_owned


class JournalFault(OSError):
    """A record could not be written, or the journal was moved or changed by another process.

    The session must be stopped in order. All previous records are kept, and `haptics experiment resume` continues after
    them.
    """


MOST_SESSIONS = 999
MOST_SLOTS = 10_000

SLOTS = "slots"
"""Folder of the places in the order of arrival, in the folder of all sessions."""

GROUPS = "groups"
"""Folder of the assignments to groups, in the folder of all sessions."""

EXPORT_MANIFEST = ".haptics-export.json"
"""File with the SHA-256 of all files of an export, by which the next export and the erasure recognise them."""

OWN_FRICTION_FILE = "own_friction.toml"
"""File in the session's folder with the friction of the device at the start of the session."""

_CODE = re.compile(r"[A-Za-z0-9]{1,32}")
_SLOT = re.compile(r"slot-[0-9]{4}")
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
            f"participant = {str(code)[:60]!r}: must be a code of 1 to 32 letters and digits and not a name, such "
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


LONGEST_REASON = 500
"""Maximum length of a reason."""


def require_reason(reason: str, option: str = "--reason") -> str:
    """Return a reason for a log, with single blanks between words.

    Raises
    ------
    ConfigurationError
        If the reason is empty, too long, or could identify a person.
    """
    text = " ".join(reason.split())
    if not text or len(text) > LONGEST_REASON:
        raise ConfigurationError(
            f"{option}: must be given, with at most {LONGEST_REASON} characters and without names."
        )
    if "@" in text:
        raise ConfigurationError(f"{option}: looks like an address; people are codes here.")
    return text


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
    stem : str
        Common prefix of the file names.
    journal, sidecar, codes, table, friction : Path
        Files of the session: journal, data known before the first trial, sealed code table of a blind session, table of
        trials, and friction of the device that is compensated.
    lock : Path
        Lock file, held by the process that writes the journal.
    """

    folder: Path
    participant: str
    session: int
    task: str
    stem: str = field(init=False)
    journal: Path = field(init=False)
    sidecar: Path = field(init=False)
    codes: Path = field(init=False)
    table: Path = field(init=False)
    friction: Path = field(init=False)
    lock: Path = field(init=False)

    def __post_init__(self) -> None:
        stem = f"sub-{self.participant}_ses-{self.session:02d}_task-{self.task}"
        files = {"journal": f"{stem}_journal.jsonl", "sidecar": "session.json", "codes": "codes.json"}
        files |= {"table": f"{stem}_beh.tsv", "friction": OWN_FRICTION_FILE, "lock": ".lock"}
        object.__setattr__(self, "stem", stem)
        for name, file in files.items():
            object.__setattr__(self, name, self.folder / file)

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


def put(path: Path, text: str) -> None:
    """Write a file atomically and flush it to disk.

    An existing file is replaced if it is not a link and begins like `text`, up to the first field of a table or the
    first entry of a JSON object.

    Raises
    ------
    OSError
        If the file cannot be written, or another file exists.
    """
    data = text.encode()
    if data.startswith(b"{"):
        length = data.index(b"\n", data.index(b"\n") + 1) + 1
    else:
        length = min(place for place in map(data.find, (b"\t", b",", b"\n")) if place >= 0) + 1
    with replacing_owned(path, lambda start: start == data[:length], length) as descriptor:
        with open(descriptor, "wb", closefd=False) as file:
            file.write(data)
            file.flush()
            os.fsync(descriptor)
    flush_folder(path.parent)


def flush_folder(folder: Path) -> None:
    """Flush the directory entries of a folder to disk."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_durably(path: Path, data: bytes) -> None:
    """Create a file and flush its contents to disk."""
    with open(path, "xb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def create_entry(path: Path, entry: Mapping[str, object]) -> bool:
    """Create a JSON file of a log, complete and on disk. Return False if the file exists."""
    whole = path.with_name(f".{secrets.token_hex(8)}")
    try:
        write_durably(whole, (json.dumps(entry) + "\n").encode())
        os.link(whole, path, follow_symlinks=False)
    except FileExistsError:
        return False
    finally:
        whole.unlink(missing_ok=True)
    flush_folder(path.parent)
    return True


def rewrite_entry(path: Path, entry: Mapping[str, object]) -> None:
    """Replace a JSON file of a log atomically."""
    whole = path.with_name(f".{secrets.token_hex(8)}")
    write_durably(whole, (json.dumps(entry) + "\n").encode())
    os.replace(whole, path)
    flush_folder(path.parent)


def require_no_gap(path: Path) -> None:
    """Raise `ConfigurationError` if the next entry of a log is missing although later entries exist.

    A log with a gap would be read up to the gap only, and the missing number would be used again.
    """
    like = re.compile(re.sub(r"[0-9]{4}", "[0-9]{4}", re.escape(path.name)))
    names = os.listdir(path.parent) if path.parent.is_dir() else []
    later = [name for name in names if like.fullmatch(name) and name > path.name]
    if later and not os.path.lexists(path):  # another station may have appended both in the meantime
        raise ConfigurationError(f"{path} is missing, and later entries such as {min(later)} exist: restore it.")


class Lock:
    """Lock of a session's folder, which permits a single writer, held until `close` or the end of the process.

    Parameters
    ----------
    path : Path
        The lock file. It is never deleted, because a recreated file could be locked twice.

    Raises
    ------
    ConfigurationError
        If another process writes the session.
    JournalFault
        If the file cannot be created or locked.
    """

    def __init__(self, path: Path) -> None:
        try:
            self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
        except OSError as error:
            raise JournalFault(
                f"{path} cannot be opened ({error.strerror}); it must be a regular file, not a link"
            ) from error
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            try:
                owner = json.loads(os.pread(self._descriptor, 300, 0))
                holder = f"process {int(owner['process'])} on {str(owner['station'])!a}"
            except (OSError, ValueError, LookupError, TypeError, RecursionError):
                holder = "another process"
            os.close(self._descriptor)
            if error.errno in (errno.EAGAIN, errno.EACCES):
                raise ConfigurationError(
                    f"{path.parent} is being written by {holder}: end that session first, or choose another one."
                ) from error
            raise JournalFault(f"{path} cannot be locked ({error.strerror}); use a folder on another disk") from error
        owner = json.dumps({"process": os.getpid(), "station": platform.node()[:100]})
        with contextlib.suppress(OSError):  # informative only, and the disk may be full
            os.ftruncate(self._descriptor, 0)
            os.pwrite(self._descriptor, owner.encode(), 0)

    def close(self) -> None:
        """Release the lock.

        May be called repeatedly.
        """
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


# --- positions in the order of arrival ---


def reserve_slot(out: Path, experiment: str, participant: str) -> int:
    """Return the position of a participant, from 0: the earlier position, or the first free one.

    With n orders (the rows of a Williams square), the participant has order ``slot % n``. Concurrent stations are
    supported. A position is a file named by its number, created atomically with the participant's code. Two stations
    never receive the same position, and a participant has the same position in every session.

    Parameters
    ----------
    out : Path
        Folder of all sessions, shared by all stations.
    experiment : str
        Name of the experiment.
    participant : str
        Code of the participant.

    Raises
    ------
    ConfigurationError
        If a name is invalid, or a position file is not valid.
    JournalFault
        If the position cannot be written.
    """
    code, folder = require_code(participant), out / SLOTS / f"task-{task_label(experiment)}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        slots = _slots_in(folder)
        while True:
            slots.refresh()
            number = slots.of_code.get(code)
            if number is None:
                number = slots.first_free()
                if number >= MOST_SLOTS:
                    raise ConfigurationError(f"{folder}: all {MOST_SLOTS} places are taken.")
                if not create_entry(slots.path(number), {"participant": code}):
                    continue  # another station was faster, perhaps with the same participant
                slots.add(number, code)
                return number
            if slots.read(number) == code:
                return number
            slots.forget()  # another process has transferred or erased it
    except OSError as error:
        raise JournalFault(
            f"{folder}: no place can be reserved ({error.strerror or error}); --out must be a folder that all stations "
            "can write, on a disk with hard links"
        ) from error


def has_slot(out: Path, experiment: str, participant: str) -> bool:
    """Return True if a participant has a position."""
    slots = _Slots(out / SLOTS / f"task-{task_label(experiment)}")
    slots.refresh()
    return participant in slots.of_code


def transfer_slot(out: Path, experiment: str, participant: str, replacement: str) -> None:
    """Give the position of a participant to another one, unless that has been done.

    Raises
    ------
    JournalFault
        If the position cannot be written.
    """
    slots = _Slots(out / SLOTS / f"task-{task_label(experiment)}")
    try:
        slots.refresh()
        for number in [one for one, holder in slots.holders.items() if holder == participant]:
            rewrite_entry(slots.path(number), {"participant": require_code(replacement)})
    except OSError as error:
        raise JournalFault(f"{slots.folder}: cannot be written ({error.strerror or error})") from error
    forget_slots(slots.folder)


class _Slots:
    """Positions in a folder, as far as this process has read them.

    The folder is listed and every file read once. Afterwards only the numbers that are next to be reserved are looked
    up, since all stations reserve the first free one, and read it if another station was faster. A position is read
    again before it is returned, because another process may have transferred or erased it. Places that another process
    frees are noticed when the folder is listed again, by the next process.

    Attributes
    ----------
    holders : dict
        Participants by their positions.
    of_code : dict
        First position of each participant.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.holders: dict[int, str] = {}
        self.of_code: dict[str, int] = {}
        self._free, self._top = 0, -1

    def forget(self) -> None:
        """List the folder and read all files again when they are needed."""
        self.holders.clear()
        self.of_code.clear()
        self._free, self._top = 0, -1

    def path(self, number: int) -> Path:
        """Return the file of a position."""
        return self.folder / f"slot-{number:04d}"

    def refresh(self) -> None:
        """Read new files.

        Raises
        ------
        ConfigurationError
            If a file is invalid.
        """
        if self._top < 0:
            names = os.listdir(self.folder) if self.folder.is_dir() else []
            numbers = sorted(int(name[-4:]) for name in names if _SLOT.fullmatch(name))
            self._top = numbers[-1] + 1 if numbers else 0
            for number in numbers:
                self._look_up(number)
        while self._look_up(self._top):
            self._top += 1
        while self.first_free() < self._top and self._look_up(self._free):
            pass

    def read(self, number: int) -> str | None:
        """Return the participant of a position, None if it is free; raise `ConfigurationError` if it is invalid."""
        path = self.path(number)
        try:
            return require_code(json.loads(read_small(path))["participant"])
        except (ValueError, LookupError, TypeError, RecursionError, OSError, HapticError) as error:
            if not os.path.lexists(path):
                return None
            raise ConfigurationError(
                f"{path} is no reserved place: restore it. The header of the journal of its participant has the "
                "number, 'slot'."
            ) from error

    def _look_up(self, number: int) -> bool:
        """Read a position unless it is free."""
        code = self.read(number) if os.path.lexists(self.path(number)) else None
        if code is not None:
            self.add(number, code)
        return code is not None

    def add(self, number: int, code: str) -> None:
        """Add a position."""
        self.holders[number] = code
        self.of_code[code] = min(number, self.of_code.get(code, number))
        self._top = max(self._top, number + 1)

    def first_free(self) -> int:
        """Return the first position that is free as far as known."""
        while self._free in self.holders:
            self._free += 1
        return self._free


@functools.lru_cache(maxsize=64)
def _slots_of(folder: Path, device: int, inode: int) -> _Slots:
    return _Slots(folder)


def _slots_in(folder: Path) -> _Slots:
    """Return the positions that this process has read in an existing folder."""
    status = folder.stat()
    return _slots_of(folder, status.st_dev, status.st_ino)


def forget_slots(folder: Path) -> None:
    """Read the positions in a folder again when they are needed, after one was changed or deleted."""
    if folder.is_dir():
        _slots_in(folder).forget()
