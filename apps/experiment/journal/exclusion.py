"""Exclusion of participants by the experimenter, and their replacement. The data are kept.

The log is append-only, one file for each entry, ``OUT/exclusions/entry-0000.json`` and so on. A station reads the whole
log and creates the next file, which fails if another station was faster. A participant is therefore replaced at most
once.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from apps.experiment.journal.folder import (
    LONGEST_REASON,
    MOST_SLOTS,
    JournalFault,
    SessionFolder,
    create_entry,
    require_code,
    require_no_gap,
    require_reason,
    task_label,
)
from haptics.errors import ConfigurationError, HapticError
from haptics.files import read_small

EXCLUSIONS = "exclusions"
"""Folder of the log in the folder of all sessions."""

TRAINING = "training"
"""Reason to leave out a session that is training according to the schedule."""

_EXCLUDED, _INCLUDED, _REPLACEMENT = "excluded", "included", "replacement"


@dataclass(frozen=True)
class Exclusion:
    """Exclusion of a participant.

    Attributes
    ----------
    number : int
        Number of the entry in the log.
    participant : str
        Code of the participant.
    reason : str
        Reason.
    utc : str
        Time of the exclusion.
    """

    number: int
    participant: str
    reason: str
    utc: str


@dataclass(frozen=True)
class LeftOut:
    """Session that is not analysed or exported.

    Attributes
    ----------
    participant : str
        Code of the participant.
    session : int
        Number of the session.
    reason : str
        Reason.
    """

    participant: str
    session: int
    reason: str


class ExclusionLog:
    """Exclusions and replacements in a folder of all sessions.

    Parameters
    ----------
    out : Path
        Folder of all sessions, shared by all stations.

    Attributes
    ----------
    excluded : dict
        Present exclusions by code.

    Raises
    ------
    ConfigurationError
        If an entry is invalid, or missing before later ones.
    """

    def __init__(self, out: Path) -> None:
        self.out, self.folder = out, out / EXCLUSIONS
        self.excluded: dict[str, Exclusion] = {}
        self._count = 0
        self._replaced: dict[tuple[int, str], str | None] = {}
        self._numbers: dict[tuple[str, str], int] = {}
        self.refresh()
        require_no_gap(self._next())
        self.refresh()

    def exclude(self, code: str, reason: str) -> Exclusion:
        """Exclude a participant, and return the entry.

        Raises
        ------
        ConfigurationError
            If the participant has no data or is excluded, or the reason is missing, too long or personal.
        JournalFault
            If the entry cannot be written.
        """
        require_code(code)
        if not (self.out / f"sub-{code}").is_dir():
            raise ConfigurationError(f"{self.out}: there are no data of {code}; give the folder that was --out.")

        def entry() -> dict[str, Any]:
            if code in self.excluded:
                raise ConfigurationError(f"{code} is excluded already: {self.excluded[code].reason}")
            return {"participant": code, "state": _EXCLUDED, "reason": require_reason(reason)}

        self._append(entry)
        return self.excluded[code]

    def include(self, code: str, reason: str) -> None:
        """Revoke the exclusion of a participant; raises like `exclude`, also if the participant has been replaced."""

        def entry() -> dict[str, Any]:
            found = self._excluded(code)
            if any(number == found.number for number, _ in self._replaced):
                raise ConfigurationError(f"{code} has been replaced, so that the exclusion cannot be revoked.")
            return {"participant": code, "state": _INCLUDED, "reason": require_reason(reason)}

        self._append(entry)

    def replace(self, code: str, replaced: str, experiment: str) -> None:
        """Record that a participant replaces an excluded one in an experiment. May be repeated.

        Raises
        ------
        ConfigurationError
            If a code is invalid, `replaced` is not excluded or has another replacement, or `code` replaces another
            participant.
        JournalFault
            If the entry cannot be written.
        """
        task = task_label(experiment)
        require_code(code)

        def entry() -> dict[str, Any] | None:
            found = self._excluded(replaced)
            if self._numbers.get((code, task)) == found.number:
                return None
            if (code, task) in self._numbers:
                other = self.replaced_by(code, experiment) or "a participant who was erased"
                raise ConfigurationError(f"{code} replaces {other} already; a participant replaces one only.")
            if (found.number, task) in self._replaced:
                other = self._replaced[found.number, task] or "a participant who was erased"
                raise ConfigurationError(f"{replaced} has been replaced by {other} already.")
            return {"participant": code, "state": _REPLACEMENT, "of": found.number, "experiment": task}

        self._append(entry)

    def replaced_by(self, code: str, experiment: str) -> str | None:
        """Return the excluded participant whom a participant replaces, if any."""
        number = self._numbers.get((code, task_label(experiment)))
        return next((one.participant for one in self.excluded.values() if one.number == number), None)

    def replacement_of(self, code: str, experiment: str) -> str | None:
        """Return the participant who replaces an excluded one, if any."""
        found = self.excluded.get(code)
        return None if found is None else self._replaced.get((found.number, task_label(experiment)))

    def require_included(self, code: str) -> None:
        """Raise `ConfigurationError` if a participant is excluded."""
        if code in self.excluded:
            found = self.excluded[code]
            raise ConfigurationError(
                f"{code} was excluded ({found.reason}). To continue nevertheless, revoke that: haptics experiment "
                f"exclude {self.out} {code} --revoke --reason REASON"
            )

    def refresh(self) -> None:
        """Read the entries of other stations."""
        while os.path.lexists(path := self._next()):
            try:
                self._apply(json.loads(read_small(path)))
            except (AttributeError, ValueError, LookupError, TypeError, RecursionError, HapticError) as error:
                raise ConfigurationError(
                    f"{path} is no entry about an exclusion: restore it. Later entries depend on it."
                ) from error
            self._count += 1

    def _next(self) -> Path:
        """Return the path of the next entry."""
        return self.folder / f"entry-{self._count:04d}.json"

    def _apply(self, entry: Mapping[str, Any]) -> None:
        state, utc = entry["state"], entry["utc"]
        code = None if entry["participant"] is None else require_code(entry["participant"])
        if state == _REPLACEMENT:
            of, task = entry["of"], entry["experiment"]
            if type(of) is not int or not 0 <= of < self._count or task_label(task) != task:
                raise ValueError("invalid replacement")
            self._replaced.setdefault((of, task), code)
            if code is not None:
                self._numbers.setdefault((code, task), of)
            return
        reason = entry["reason"]
        if state not in (_EXCLUDED, _INCLUDED) or not all(isinstance(one, str) for one in (reason, utc)):
            raise ValueError("invalid exclusion")
        if len(reason) > LONGEST_REASON or len(utc) > LONGEST_REASON:
            raise ValueError("text too long")
        if code is not None and state == _EXCLUDED:
            self.excluded[code] = Exclusion(self._count, code, reason, utc)
        elif code is not None:
            self.excluded.pop(code, None)

    def _excluded(self, code: str) -> Exclusion:
        if code not in self.excluded:
            raise ConfigurationError(
                f"{code[:40]} is not excluded; to do that: haptics experiment exclude {self.out} CODE --reason REASON"
            )
        return self.excluded[code]

    def _append(self, entry: Callable[[], dict[str, Any] | None]) -> None:
        """Append the entry that is valid after all entries of other stations, unless it is None."""
        try:
            while True:
                self.refresh()
                found = entry()
                if found is None:
                    return
                if self._count >= MOST_SLOTS:
                    raise ConfigurationError(f"{self.folder}: has {MOST_SLOTS} entries; no more can be.")
                self.folder.mkdir(parents=True, exist_ok=True)
                utc = datetime.now(UTC).isoformat(timespec="seconds")
                if create_entry(self._next(), {**found, "utc": utc}):
                    break
        except OSError as error:
            raise JournalFault(
                f"{self.folder}: cannot be written ({error.strerror or error}); it must be a folder that all stations "
                "can write, on a disk with hard links"
            ) from error
        self.refresh()


def select_included(places: Iterable[SessionFolder]) -> tuple[list[SessionFolder], list[LeftOut]]:
    """Return the sessions of participants who are not excluded, and the other sessions.

    Raises
    ------
    ConfigurationError
        If a log of exclusions is invalid.
    """
    logs: dict[Path, ExclusionLog] = {}
    included, left_out = [], []
    for place in places:
        out = place.folder.resolve().parent.parent
        if out not in logs:
            logs[out] = ExclusionLog(out)
        found = logs[out].excluded.get(place.participant)
        if found is None:
            included.append(place)
        else:
            left_out.append(LeftOut(place.participant, place.session, f"excluded: {found.reason}"))
    return included, left_out


def require_any(included: Collection[Any], left_out: Sequence[LeftOut]) -> None:
    """Raise `ConfigurationError` if no session is left."""
    if not included:
        reasons = sorted({one.reason for one in left_out})
        raise ConfigurationError(f"all {len(left_out)} sessions are left out ({'; '.join(reasons)[:400]}).")
