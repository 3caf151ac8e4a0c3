"""Erasure of a participant on request: sessions and reservations are deleted, and a record states that it happened.

The record ``erasures.jsonl`` in the folder of all sessions is written before and after the deletion. An erasure that
was interrupted is completed when it is repeated.
"""

from __future__ import annotations

import bz2
import gzip
import importlib.metadata
import json
import lzma
import os
import re
import secrets
import shutil
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

from apps.experiment.journal.exclusion import EXCLUSIONS
from apps.experiment.journal.folder import JournalFault, Lock, flush_folder, require_code, rewrite_entry
from haptics.errors import ConfigurationError
from haptics.files import open_nonblocking

RECORD = "erasures.jsonl"
"""Name of the record of erasures."""

_DELETED = ".erasing-"
_LARGEST_RESERVATION, _LARGEST_RECORD, _LARGEST_UNPACKED = 4096, 64_000_000, 1 << 33
_OVERLAP = 128  # of two chunks that are searched; longer than a code
_MANIFEST = ".haptics-export.json"  # of an export (`apps.experiment.export.formats`)
_TEXTS = frozenset((".jsonl", ".json", ".tsv", ".csv", ".html", ".md", ".txt", ".toml", ".m3u"))
_UNPACK: dict[str, Callable[[IO[bytes]], Any]] = {
    ".gz": gzip.open, ".tgz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open
}  # fmt: skip


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
        Files of other participants that contain the code, such as a note in a journal. They are never deleted.
    """

    code: str
    out: Path
    sessions: tuple[Path, ...]
    reservations: tuple[Path, ...]
    files: int
    bytes: int
    copies: tuple[Path, ...]
    mentions: tuple[Path, ...]

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
    reservations, copies, mentions = list[Path](), list[Path](), list[Path]()
    for path in _files(out):
        name = path.relative_to(out)
        if folder in path.parents or path == out / RECORD or name.parts[0].startswith(_DELETED):
            continue
        others = name.parts[0].startswith("sub-") or name.parts[0] == EXCLUSIONS
        if _reserves(path, code):
            reservations.append(path)
        elif word.search(str(name).encode()) or _contains(path, word, not others or path.suffix in _TEXTS):
            (mentions if others else copies).append(_export_of(path, out))
    states = [one.get("state") for one in read_record(out) if one.get("participant") == code]
    interrupted = states[-1:] == ["begun"]
    if not folder.is_dir() and not reservations and not interrupted and not (states and copies):
        raise ConfigurationError(f"--out {out}: there are no data of {code}; give the folder that was --out.")
    size = sum(os.lstat(path).st_size for path in (*own, *reservations))
    count = len(own) + len(reservations)
    return Erasure(code, out, sessions, tuple(reservations), count, size, tuple(dict.fromkeys(copies)), tuple(mentions))


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
        for path in found.copies if copies else ():
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
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


def _export_of(path: Path, out: Path) -> Path:
    """Return the folder of the export that contains a file, the file itself if it belongs to none."""
    folders = [one for one in path.parents if out in one.parents and (one / _MANIFEST).is_file()]
    return folders[-1] if folders else path


def _contains(path: Path, word: re.Pattern[bytes], searched: bool) -> bool:
    """Return True if a file, or its content if it is compressed, contains a word or cannot be read."""
    if not searched or path.is_symlink() or not path.is_file():
        return False
    try:
        with open(path, "rb", opener=open_nonblocking) as file:
            unpack = _UNPACK.get(path.suffix)
            if unpack is not None:
                with unpack(file) as contents:
                    return _finds(contents, word)
            if not zipfile.is_zipfile(file):
                file.seek(0)
                return _finds(file, word)
            with zipfile.ZipFile(file) as archive:
                for member in archive.infolist():
                    if word.search(member.filename.encode()):
                        return True
                    with archive.open(member) as contents:
                        if _finds(contents, word):
                            return True
    except (OSError, EOFError, RuntimeError, zipfile.BadZipFile, zlib.error, lzma.LZMAError):
        return True
    return False


def _finds(file: IO[bytes], word: re.Pattern[bytes]) -> bool:
    """Return True if a file contains a word, or is too large to search."""
    data, size = b"", 0
    while chunk := file.read(1 << 20):
        data, size = data[-_OVERLAP:] + chunk, size + len(chunk)
        if size > _LARGEST_UNPACKED or any(end < len(data) for end in _ends(data, size, word)):
            return True
    return any(True for _ in _ends(data, size, word))


def _ends(data: bytes, size: int, word: re.Pattern[bytes]) -> Iterator[int]:
    """Yield the ends of a word in the last `data` of `size` bytes; a word at their start may be part of another one."""
    return (found.end() for found in word.finditer(data) if found.start() or len(data) == size)


def _read(path: Path, most: int) -> bytes:
    """Return the bytes of a regular file of at most `most` bytes, empty for any other."""
    try:
        if path.is_symlink() or not path.is_file() or path.stat().st_size > most:
            return b""
        with open(path, "rb", opener=open_nonblocking) as file:
            return file.read(most)
    except OSError:
        return b""
