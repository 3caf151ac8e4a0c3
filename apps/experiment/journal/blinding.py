"""Blind sessions: what the experimenter sees is a code, and what it stands for is sealed until the session has ended.

The seal is a SHA-256 of the table with a random salt, in the header of the journal: nobody can change the table, or
guess it from the seal, without that being seen. It does not keep anybody from opening files; the table is only written
so that a glance at it tells nothing, as the journal is for the program, not for the eyes of who runs the session.
"""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from apps.experiment.journal.names import SessionFolder
from apps.experiment.journal.own_files import put
from apps.experiment.journal.reading import parsed, read_journal
from apps.experiment.journal.state import replay
from haptics.errors import ConfigurationError, RecordingError
from haptics.reading import read_small

_LETTERS = "ACDEFHJKLMNPRTUVWXY34679"
"""What codes are made of: no two of them look or sound alike."""

MOST_STIMULI = 2000

Stimulus = Mapping[str, Any]


@dataclass(frozen=True)
class Codes:
    """A code for everything that is to be told apart.

    Attributes
    ----------
    stimuli : dict
        By their codes, what they stand for: plain JSON, such as ``{"condition": "low", "track": "up"}``.
    salt : str
        Random, so that the seal tells nothing.
    """

    stimuli: dict[str, dict[str, Any]]
    salt: str

    @property
    def seal(self) -> str:
        """SHA-256 of salt and table, for the header of the journal."""
        return hashlib.sha256((self.salt + _plain(self.stimuli)).encode()).hexdigest()

    def code(self, stimulus: Stimulus) -> str:
        """Return the code of a stimulus.

        Raises
        ------
        ConfigurationError
            If it has none.
        """
        for code, one in self.stimuli.items():
            if one == dict(stimulus):
                return code
        raise ConfigurationError(f"{_plain(stimulus)[:80]} has no code in this session.")


def make_codes(stimuli: Iterable[Stimulus]) -> Codes:
    """Return random codes for `stimuli`, in an order that tells nothing.

    Raises
    ------
    ConfigurationError
        If there are none, two are the same, or they are too many.
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
    """Write ``codes.json`` before the journal is begun; return the seal for its header.

    Raises
    ------
    OSError
        If it cannot be written.
    """
    place.folder.mkdir(parents=True, exist_ok=True)
    sealed = base64.b64encode(_plain(codes.stimuli).encode()).decode()
    put(place.codes, json.dumps({"haptics": "sealed codes", "salt": codes.salt, "sealed": sealed}, indent=2) + "\n")
    return codes.seal


def open_codes(place: SessionFolder, seal: str) -> Codes:
    """Return the codes of a session that goes on; `seal` is that of its header.

    Raises
    ------
    RecordingError
        If the table cannot be read, or is not the one that was sealed.
    """
    try:
        told = parsed(read_small(place.codes))
        stimuli = parsed(base64.b64decode(told["sealed"], validate=True))
        codes = Codes(stimuli, str(told["salt"]))
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
        If it has not ended, or was not blind.
    RecordingError
        If journal or table cannot be read, or the table is not the one that was sealed.
    """
    state = replay(read_journal(place.journal).records)
    seal = state.header["blind"]
    if seal is None:
        raise ConfigurationError(f"{place.folder} was no blind session: there is nothing to decode.")
    if state.end is None:
        raise ConfigurationError(
            f"{place.folder} has not ended: its codes stay sealed. End it: haptics experiment resume {place.folder}"
        )
    return open_codes(place, seal)


def _plain(value: Any) -> str:
    """Return JSON that is the same for the same value."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
