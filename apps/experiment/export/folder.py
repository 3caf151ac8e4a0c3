"""Folder of an export, which is written to a temporary folder and then moved into place.

It replaces only an earlier export.
"""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from haptics.errors import ConfigurationError, HapticError
from haptics.files import read_small
from haptics.recording.tick_file import digest_of

MANIFEST = ".haptics-export.json"
"""File with the SHA-256 of all files of an export, by which the next export recognises them."""

_UNBORN = ".haptics-export-"


@contextlib.contextmanager
def new_export(out: Path) -> Iterator[Path]:
    """Yield a new folder that replaces `out` at the end, unless an exception is raised.

    `out` must not exist, be an empty folder, or be an export without later changes.

    Raises
    ------
    ConfigurationError
        If `out` is anything else or cannot be written.
    """
    _require_ours(out)
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=_UNBORN, dir=out.parent) as hidden:
            unborn = Path(hidden) / "new"
            unborn.mkdir()
            yield unborn
            files = {name: digest_of(unborn / name) for name in sorted(_names(unborn))}
            manifest = json.dumps({"haptics": "export", "files": files}, indent=2) + "\n"
            (unborn / MANIFEST).write_text(manifest, encoding="utf-8")
            _require_ours(out)  # writing may have taken minutes
            if os.path.lexists(out):
                os.rename(out, Path(hidden) / "old")
            os.rename(unborn, out)
    except OSError as error:
        raise ConfigurationError(f"--out {out}: cannot be written ({error.strerror or error}).") from error


def _names(folder: Path) -> Iterator[str]:
    """Yield the relative paths of all files and links below a folder.

    Links are not followed.
    """
    for where, folders, files in os.walk(folder):
        links = [name for name in folders if os.path.islink(os.path.join(where, name))]
        for name in (*files, *links):
            yield (Path(where) / name).relative_to(folder).as_posix()


def _require_ours(out: Path) -> None:
    if not os.path.lexists(out):
        return
    if os.path.islink(out) or not out.is_dir():
        raise ConfigurationError(f"--out {out}: is there and is no folder; name a new one.")
    names = sorted(_names(out))
    if not names and not any(out.iterdir()):
        return
    try:
        files = dict(json.loads(read_small(out / MANIFEST))["files"])
    except (ValueError, LookupError, TypeError, RecursionError, HapticError) as error:
        raise ConfigurationError(f"--out {out}: holds files that are not of an export; name a new folder.") from error
    for name in names:
        path = out / name
        if name != MANIFEST and (name not in files or path.is_symlink() or digest_of(path) != files[name]):
            raise ConfigurationError(
                f"--out {out}: {name} was changed or added since the export; nothing was replaced. Move it away, "
                "or name a new folder."
            )


def write_text(folder: Path, name: str, text: str) -> None:
    """Write a file of an export and create its folders.

    Line ends are not converted.
    """
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "x", encoding="utf-8", newline="") as file:
        file.write(text)


def write_json(folder: Path, name: str, value: object) -> None:
    """Write a JSON file of an export."""
    write_text(folder, name, json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n")
