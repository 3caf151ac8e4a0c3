"""Places in the order of arrival, which choose a participant's order of conditions; several stations may ask at once.

A place is a file with its number as its name, made in one step with the participant's code in it. Two stations never
get the same one, and a participant gets the same one again in every session.
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
    """Return the place of a participant, 0 for the first: that of an earlier session, or the first one free.

    With n orders (the rows of a Williams square), order ``slot % n`` is theirs.

    Parameters
    ----------
    out : Path
        The folder of all sessions, the same for every station.
    experiment : str
        Name of the experiment.
    participant : str
        Code.

    Raises
    ------
    ConfigurationError
        If the names cannot be, or a place is no file of ours.
    JournalFault
        If it cannot be written.
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
    """Return the places of a participant, the first one first."""
    return [number for number, owner in sorted(_owners(folder).items()) if owner == code]


def _owners(folder: Path) -> dict[int, str]:
    found = {}
    for place in folder.glob("slot-[0-9][0-9][0-9][0-9]"):
        try:
            found[int(place.name[-4:])] = require_code(json.loads(read_small(place))["participant"])
        except (ValueError, LookupError, TypeError, RecursionError, HapticError) as error:
            if not os.path.lexists(place):  # given back meanwhile
                continue
            raise ConfigurationError(f"{place} is no reserved place: move it away.") from error
    return found


def _claimed(folder: Path, code: str) -> int:
    """Take the first place that is free: a link to a whole file, which fails where somebody was faster."""
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
    """Keep the first of all places of a participant: two stations may have begun with the same one at once."""
    first = _own(folder, code)[0]
    if first != number:
        _place(folder, number).unlink()
    return first


def _place(folder: Path, number: int) -> Path:
    return folder / f"slot-{number:04d}"
