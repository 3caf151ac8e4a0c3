"""Erasure of a participant on request: sessions and reservations are deleted, and a record states that it happened.

The record ``erasures.jsonl`` in the folder of all sessions is written before and after the deletion. An erasure that
was interrupted is completed when it is repeated.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import re
import secrets
import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path, PurePath
from typing import Any

from apps.experiment.journal.exclusion import EXCLUSIONS
from apps.experiment.journal.folder import (
    EXPORT_MANIFEST,
    GROUPS,
    SLOTS,
    JournalFault,
    Lock,
    flush_folder,
    forget_slots,
    require_code,
    rewrite_entry,
)
from apps.experiment.journal.search import contains
from haptics.errors import ConfigurationError
from haptics.files import open_nonblocking

RECORD = "erasures.jsonl"
"""Name of the record of erasures."""

_DELETED = ".erasing-"
_LARGEST_RESERVATION, _LARGEST_RECORD = 4096, 64_000_000
_LARGEST_MANIFEST = 256_000_000
_PARTICIPANT = re.compile(r"sub-([A-Za-z0-9]{1,32})(?![A-Za-z0-9])")
_OTHERS, _STRUCTURE, _SETTINGS = "data of others", "reservations", "recordings and settings"
_TEXTS = frozenset((".jsonl", ".json", ".tsv", ".csv", ".html", ".md", ".txt", ".toml", ".m3u"))


@dataclass(frozen=True)
class Erasure:
    """Files of a participant.

    Attributes
    ----------
    code : str
        Code of the participant.
    out : Path
        Folder of all sessions.
    sessions : tuple of Path
        Folders of the sessions.
    reservations : tuple of Path
        Files that reserve a place for the participant, such as a slot.
    files, bytes : int
        Number and total size of all files to delete.
    copies : tuple of Path
        Other files below `out` that contain the code, such as reports and archives, and exports as whole folders. They
        are deleted on request.
    mentions : tuple of Path
        Files that contain the code as a word but do not belong to the participant: data and reservations of other
        participants, recordings, experiment files. They are never deleted.
    unsearched : tuple of Path
        Files that could not be searched completely: damaged, encrypted, too large, or archives in too many layers. They
        are never deleted.
    """

    code: str
    out: Path
    sessions: tuple[Path, ...]
    reservations: tuple[Path, ...]
    files: int
    bytes: int
    copies: tuple[Path, ...]
    mentions: tuple[Path, ...]
    unsearched: tuple[Path, ...]

    @property
    def folder(self) -> Path:
        """Folder of the participant."""
        return self.out / f"sub-{self.code}"


def find_participant(out: Path, code: str) -> Erasure:
    """Return all files of a participant below the folder of all sessions.

    Raises
    ------
    ConfigurationError
        If the code is invalid, the participant has no data, or the folder is a link.
    """
    folder = out / f"sub-{require_code(code)}"
    if folder.is_symlink():
        raise ConfigurationError(f"{folder} is a link: erase the folder that it leads to, and remove the link.")
    sessions = tuple(sorted(one for one in folder.glob("ses-*") if one.is_dir() and not one.is_symlink()))
    own = list(_files(folder)) if folder.is_dir() else []
    word = re.compile(rb"(?<![A-Za-z0-9])" + code.encode() + rb"(?![A-Za-z0-9])")
    exported = _exported_files(out)
    reservations, copies, mentions, unsearched = list[Path](), list[Path](), list[Path](), list[Path]()
    for path in _files(out):
        name = path.relative_to(out)
        if folder in path.parents or path == out / RECORD or name.parts[0].startswith(_DELETED):
            continue
        export = exported.get(path)
        kind = "" if export else _protection(path, name, code)
        if kind != _OTHERS and not export and _reserves(path, code):
            reservations.append(path)
            continue
        # the path of a reservation contains the experiment's name
        found: bool | None = bool(word.search((path.name if kind == _STRUCTURE else str(name)).encode()))
        if not found and (kind in ("", _STRUCTURE) or path.suffix in _TEXTS):
            found = contains(path, word)
        if found is None:
            unsearched.append(path)
        elif found:
            (mentions if kind else copies).append(export or path)
    states = [one.get("state") for one in read_record(out) if one.get("participant") == code]
    interrupted = states[-1:] == ["begun"]
    if not folder.is_dir() and not reservations and not interrupted and not (states and copies):
        raise ConfigurationError(f"--out {out}: there are no data of {code}; give the folder that was --out.")
    size = sum(os.lstat(path).st_size for path in (*own, *reservations))
    count = len(own) + len(reservations)
    others = [tuple(dict.fromkeys(paths)) for paths in (copies, mentions, unsearched)]
    return Erasure(code, out, sessions, tuple(reservations), count, size, *others)


def _protection(path: Path, name: PurePath, code: str) -> str:
    """Return why a file must not be deleted as a copy, by its place in a folder of all sessions or a copy of one."""
    for part in reversed(name.parts[:-1]):
        if found := _PARTICIPANT.match(part):
            return "" if found[1] == code else _OTHERS
        if part in (SLOTS, GROUPS, EXCLUSIONS):
            return _STRUCTURE
    journals = [_PARTICIPANT.match(one.name) for one in path.parent.glob("*_journal.jsonl")]
    if any(one is None or one[1] != code for one in journals):
        return _OTHERS  # a session that was copied without the folder of its participant
    recorded = any((path.parent / one).is_file() for one in ("recording.json", "ticks.npy", "ticks.npy.part"))
    return _SETTINGS if recorded or path.suffix == ".toml" else ""


def erase(found: Erasure, reason: str = "", *, copies: bool = False) -> dict[str, Any]:
    """Delete the files of a participant, with `copies` also those in ``found.copies``; return the record.

    Raises
    ------
    ConfigurationError
        If a session of the participant is being written.
    JournalFault
        If a file cannot be deleted, or the record cannot be written.
    """
    facts = {"participant": found.code, "sessions": len(found.sessions), "files": found.files, "bytes": found.bytes}
    facts |= {"copies": len(found.copies)} if copies else {}
    facts |= {"reason": reason, "haptics": importlib.metadata.version("haptics")}
    try:
        with ExitStack() as stack:
            for session in found.sessions:
                stack.callback(Lock(session / ".lock").close)
            _append(found.out, {"state": "begun", **facts})
            if found.folder.is_dir():
                os.rename(found.folder, found.out / f"{_DELETED}{secrets.token_hex(8)}")
                flush_folder(found.out)
        for folder in sorted(found.out.glob(f"{_DELETED}*")):  # also of an interrupted erasure
            shutil.rmtree(folder)
        for path in found.reservations:
            if path.name.startswith(("assignment-", "entry-")):
                _anonymise(path)
            else:
                path.unlink(missing_ok=True)
                flush_folder(path.parent)
                forget_slots(path.parent)
        for path in found.copies if copies else ():
            if path.is_dir() and not path.is_symlink():
                _delete_export(path)
            else:
                path.unlink(missing_ok=True)
            flush_folder(path.parent)
        return _append(found.out, {"state": "erased", **facts})
    except OSError as error:
        if isinstance(error, JournalFault):
            raise
        raise JournalFault(
            f"{found.out}: {found.code} could not be erased completely ({error.strerror or error}); remove the cause "
            "and repeat the command"
        ) from error


def read_record(out: Path) -> list[dict[str, Any]]:
    """Return the records of erasures in the folder of all sessions, without damaged lines."""
    try:
        with open(out / RECORD, "rb", opener=open_nonblocking) as file:
            lines = file.read(_LARGEST_RECORD).splitlines()
    except OSError:
        return []
    found = []
    for line in lines:
        try:
            one = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(one, dict):
            found.append(one)
    return found


def _append(out: Path, facts: dict[str, Any]) -> dict[str, Any]:
    """Append a record to ``erasures.jsonl`` and flush it to disk."""
    record = {"record": "erasure", "utc": datetime.now(UTC).isoformat(timespec="seconds"), **facts}
    flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(out / RECORD, flags, 0o666)
    try:
        size = os.fstat(descriptor).st_size
        torn = bool(size) and os.pread(descriptor, 1, size - 1) != b"\n"
        os.write(descriptor, (b"\n" if torn else b"") + (json.dumps(record, ensure_ascii=False) + "\n").encode())
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    flush_folder(out)
    return record


def _anonymise(path: Path) -> None:
    """Remove the code and the reason from an entry of a log, which later entries still need.

    An assignment to a group counts for the balance; entries about exclusions are numbered.
    """
    table = json.loads(_read(path, _LARGEST_RESERVATION))
    rewrite_entry(path, table | {"participant": None} | ({"reason": ""} if "reason" in table else {}))


def _files(folder: Path) -> Iterator[Path]:
    """Yield all files and links below a folder. Links are not followed."""
    for where, folders, files in os.walk(folder):
        for name in (*files, *(one for one in folders if os.path.islink(os.path.join(where, one)))):
            yield Path(where) / name


def _reserves(path: Path, code: str) -> bool:
    """Return True if a file is a JSON object that belongs to the participant, such as a slot."""
    data = _read(path, _LARGEST_RESERVATION)
    try:
        found = json.loads(data) if data else None
    except (ValueError, RecursionError):
        return False
    return isinstance(found, dict) and found.get("participant") == code and "record" not in found


def _exported_files(out: Path) -> dict[Path, Path]:
    """Return the folder of the export for each file of an export below a folder, by the manifests.

    A file that was added to an export's folder later does not belong to the export.
    """
    found = dict[Path, Path]()
    for manifest in sorted(out.rglob(EXPORT_MANIFEST), key=lambda path: len(path.parts)):
        if manifest.parent != out:
            for path in _files_of_export(manifest.parent):
                found.setdefault(path, manifest.parent)
    return found


def _files_of_export(folder: Path) -> list[Path]:
    """Return the files of an export that its manifest names, and the manifest; none if it is invalid."""
    try:
        names = json.loads(_read(folder / EXPORT_MANIFEST, _LARGEST_MANIFEST))["files"]
        names = {*names, EXPORT_MANIFEST}
    except (ValueError, LookupError, TypeError, RecursionError):
        return []
    return [path for path in _files(folder) if path.relative_to(folder).as_posix() in names]


def _delete_export(folder: Path) -> None:
    """Delete the files of an export, its manifest last, and the folders that are empty then."""
    for path in sorted(_files_of_export(folder), key=lambda path: path.name == EXPORT_MANIFEST):
        path.unlink(missing_ok=True)
    for where, _, _ in os.walk(folder, topdown=False):
        if not os.listdir(where):
            os.rmdir(where)


def _read(path: Path, most: int) -> bytes:
    """Return the bytes of a regular file of at most `most` bytes, empty for any other."""
    try:
        if path.is_symlink() or not path.is_file() or path.stat().st_size > most:
            return b""
        with open(path, "rb", opener=open_nonblocking) as file:
            return file.read(most)
    except OSError:
        return b""
