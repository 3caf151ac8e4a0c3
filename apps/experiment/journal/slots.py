"""Positions in the order of arrival, which select the order of conditions.

Concurrent stations are supported. A position is a file named by its number, created atomically with the participant's
code. Two stations never receive the same position, and a participant has the same position in every session.
"""

from __future__ import annotations

import json
import os
import secrets
from pathlib import Path

from apps.experiment.journal.errors import JournalFault
from apps.experiment.journal.names import require_code, task_label
from apps.experiment.journal.own_files import flush_folder
from haptics.errors import ConfigurationError, HapticError
from haptics.reading import read_small

MOST_SLOTS = 10_000


def reserve_slot(out: Path, experiment: str, participant: str) -> int:
    """Return the position of a participant, from 0: the earlier position, or the first free one.

    With n orders (the rows of a Williams square), the participant has order ``slot % n``.

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
    code, folder = require_code(participant), out / "slots" / f"task-{task_label(experiment)}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        own = _own(folder, code)
        return own[0] if own else _settled(folder, code, _claimed(folder, code))
    except OSError as error:
        raise JournalFault(
            f"{folder}: no place can be reserved ({error.strerror or error}); --out must be a folder that all stations "
            "can write, on a disk with hard links"
        ) from error


def _own(folder: Path, code: str) -> list[int]:
    """Return the positions of a participant in ascending order."""
    return [number for number, owner in sorted(_owners(folder).items()) if owner == code]


def _owners(folder: Path) -> dict[int, str]:
    found = {}
    for place in folder.glob("slot-[0-9][0-9][0-9][0-9]"):
        try:
            found[int(place.name[-4:])] = require_code(json.loads(read_small(place))["participant"])
        except (ValueError, LookupError, TypeError, RecursionError, HapticError) as error:
            if not os.path.lexists(place):  # removed by another station in the meantime
                continue
            raise ConfigurationError(f"{place} is no reserved place: move it away.") from error
    return found


def _claimed(folder: Path, code: str) -> int:
    """Claim the first free position.

    The position is a hard link to a complete file. Its creation fails if the position is taken.
    """
    whole = folder / f".{secrets.token_hex(8)}"
    with open(whole, "x", encoding="utf-8") as file:
        file.write(json.dumps({"participant": code}) + "\n")
        file.flush()
        os.fsync(file.fileno())
    try:
        for number in range(MOST_SLOTS):
            try:
                os.link(whole, _place(folder, number), follow_symlinks=False)
            except FileExistsError:
                continue
            return number
    finally:
        whole.unlink()
        flush_folder(folder)
    raise ConfigurationError(f"{folder}: all {MOST_SLOTS} places are taken.")


def _settled(folder: Path, code: str, number: int) -> int:
    """Keep the lowest position of a participant.

    Two stations may have started the same participant concurrently.
    """
    first = _own(folder, code)[0]
    if first != number:
        _place(folder, number).unlink()
    return first


def _place(folder: Path, number: int) -> Path:
    return folder / f"slot-{number:04d}"
