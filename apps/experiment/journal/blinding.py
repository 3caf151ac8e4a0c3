"""Blind sessions: the experimenter sees codes, whose meaning is sealed until the session has ended.

The seal is a SHA-256 of the table with a random salt, in the header of the journal. Changes of the table are detected,
and it cannot be guessed from the seal. The files are not encrypted. The table is encoded only so that it cannot be
read at a glance. The journal is written for the program and not meant to be read by the experimenter.
"""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from apps.experiment.journal.folder import SessionFolder, put
from apps.experiment.journal.journal import parsed, read_journal, replay
from haptics.errors import ConfigurationError, RecordingError
from haptics.files import read_small

_LETTERS = "ACDEFHJKLMNPRTUVWXY34679"
"""Characters of the codes. No two of them look or sound alike."""

MOST_STIMULI = 2000

Stimulus = Mapping[str, Any]


@dataclass(frozen=True)
class Codes:
    """Codes of the stimuli.

    Attributes
    ----------
    stimuli : dict
        Stimulus by code, as plain JSON such as ``{"condition": "low", "track": "up"}``.
    salt : str
        Random salt, so that the table cannot be guessed from the seal.
    """

    stimuli: dict[str, dict[str, Any]]
    salt: str

    @property
    def seal(self) -> str:
        """SHA-256 of salt and table, for the header of the journal."""
        return hashlib.sha256((self.salt + _plain(self.stimuli)).encode()).hexdigest()


def make_codes(stimuli: Iterable[Stimulus]) -> Codes:
    """Return random codes for `stimuli`, in random order.

    Raises
    ------
    ConfigurationError
        If there are no stimuli or too many.
    """
    plain = sorted({_plain(one) for one in stimuli})
    if not 1 <= len(plain) <= MOST_STIMULI:
        raise ConfigurationError(f"blind: there must be 1 to {MOST_STIMULI} stimuli to give codes to.")
    codes: set[str] = set()
    while len(codes) < len(plain):
        codes.add("".join(secrets.choice(_LETTERS) for _ in range(3)))
    shuffled = list(codes)
    secrets.SystemRandom().shuffle(shuffled)
    return Codes(
        {code: json.loads(one) for code, one in sorted(zip(shuffled, plain, strict=True))}, secrets.token_hex(16)
    )


def seal_codes(place: SessionFolder, codes: Codes) -> str:
    """Write ``codes.json``, and return the seal for the header of the journal.

    Raises
    ------
    OSError
        If the file cannot be written.
    """
    place.folder.mkdir(parents=True, exist_ok=True)
    sealed = base64.b64encode(_plain(codes.stimuli).encode()).decode()
    put(place.codes, json.dumps({"haptics": "sealed codes", "salt": codes.salt, "sealed": sealed}, indent=2) + "\n")
    return codes.seal


def open_codes(place: SessionFolder, seal: str) -> Codes:
    """Return the codes of a session.

    `seal` is the seal in its header.

    Raises
    ------
    RecordingError
        If the table cannot be read, or does not match the seal.
    """
    try:
        table = parsed(read_small(place.codes))
        stimuli = parsed(base64.b64decode(table["sealed"], validate=True))
        codes = Codes(stimuli, str(table["salt"]))
        genuine = isinstance(stimuli, dict) and secrets.compare_digest(codes.seal.encode(), str(seal).encode())
    except ConfigurationError as error:
        raise RecordingError(str(error)) from error
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        raise RecordingError(f"{place.codes} is no sealed code table.") from error
    if not genuine:
        raise RecordingError(f"{place.codes} is not the table that was sealed: it was changed or exchanged.")
    return codes


def decode(place: SessionFolder) -> Codes:
    """Return the codes of a blind session that has ended.

    Raises
    ------
    ConfigurationError
        If the session has not ended, or was not blind.
    RecordingError
        If journal or table cannot be read, or the table does not match the seal.
    """
    state = replay(read_journal(place.journal).records)
    seal = state.header["blind"]
    if seal is None:
        raise ConfigurationError(f"{place.folder} was no blind session and has no codes.")
    if state.end is None:
        raise ConfigurationError(
            f"{place.folder} has not ended: its codes stay sealed. End it: haptics experiment resume {place.folder}"
        )
    return open_codes(place, seal)


def _plain(value: Any) -> str:
    """Return canonical JSON, identical for equal values."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
