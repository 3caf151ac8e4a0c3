"""The folder of an export: written beside its place and put there whole, over an earlier export and nothing else."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from haptics.errors import ConfigurationError, HapticError
from haptics.reading import read_small
from haptics.recording.tick_file import digest_of

MANIFEST = ".haptics-export.json"
"""Lists the files of an export with their SHA-256, so that the next one knows what it may replace."""

_UNBORN = ".haptics-export-"


@contextlib.contextmanager
def new_export(out: Path) -> Iterator[Path]:
    """Give a new folder to write in; at the end it takes the place of `out`, unless an exception comes first.

    What is at `out` must be nothing, an empty folder, or an export in which nobody has changed or added anything.

    Raises
    ------
    ConfigurationError
        If something else is there, or nothing can be written.
    """
    _require_ours(out)
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=_UNBORN, dir=out.parent) as hidden:
            unborn = Path(hidden) / "new"
            unborn.mkdir()
            yield unborn
            _list_files(unborn)
            _require_ours(out)  # that may have taken minutes
            if os.path.lexists(out):
                os.rename(out, Path(hidden) / "old")
            os.rename(unborn, out)
    except OSError as error:
        raise ConfigurationError(f"--out {out}: cannot be written ({error.strerror or error}).") from error


def _list_files(folder: Path) -> None:
    files = {name: digest_of(folder / name) for name in sorted(_names(folder))}
    manifest = {"haptics": "export", "files": files}
    (folder / MANIFEST).write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")


def _names(folder: Path) -> Iterator[str]:
    """Yield everything below a folder that is no plain folder, by its name from there; links are not followed."""
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
    files = _listed(out)
    for name in names:
        path = out / name
        if name != MANIFEST and (name not in files or path.is_symlink() or digest_of(path) != files[name]):
            raise ConfigurationError(
                f"--out {out}: {name} is not what an export put there; nothing was replaced. Move it away, or name a "
                "new folder."
            )


def _listed(out: Path) -> dict[str, str]:
    try:
        manifest = json.loads(read_small(out / MANIFEST))
        return {str(name): str(digest) for name, digest in dict(manifest["files"]).items()}
    except (ValueError, LookupError, TypeError, RecursionError, HapticError) as error:
        raise ConfigurationError(f"--out {out}: holds files of somebody's; name a new folder.") from error


def write_text(folder: Path, name: str, text: str) -> None:
    """Write a file of an export, and the folders it is in; line ends stay as they are."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "x", encoding="utf-8", newline="") as file:
        file.write(text)


def write_json(folder: Path, name: str, value: object) -> None:
    """Write a JSON file of an export."""
    write_text(folder, name, json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n")
