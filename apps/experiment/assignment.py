"""Assignment of participants to groups: permuted blocks or minimisation, atomic between stations.

Assignments are an append-only log of one file each, ``OUT/groups/task-NAME/assignment-0000`` and so on. A station reads
the whole log, chooses the group of its participant, and creates the next file by a hard link to a complete file. If
another station was faster, the link fails, and the station reads the log again. A participant is therefore assigned at
most once, and every choice considers all earlier ones, also after kills.
"""

from __future__ import annotations

import base64
import itertools
import json
import os
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from apps.experiment.journal.folder import (
    GROUPS,
    MOST_SLOTS,
    JournalFault,
    create_entry,
    require_code,
    require_impersonal,
    require_no_gap,
    rewrite_entry,
    task_label,
)
from apps.experiment.procedures.methods import trial_seed
from apps.experiment.settings import GroupSettings
from haptics.errors import ConfigurationError, HapticError
from haptics.files import read_small

_LONGEST = 200
"""Maximum length of a text in an assignment."""


@dataclass(frozen=True)
class Assignment:
    """Assignment of a participant.

    Attributes
    ----------
    participant : str or None
        Code of the participant. None after its deletion; the assignment still counts for the balance.
    group : str
        Name of the group.
    fields : dict
        Data about the participant that the assignment considers.
    block, size : int
        Number of the block among participants with the same fields, and its size. 0 for minimisation.
    place : int
        Number of earlier assignments to the same group.
    """

    participant: str | None
    group: str
    fields: Mapping[str, str]
    block: int
    size: int
    place: int


class History:
    """Assignments in order, with the counts that the choice of a group needs.

    Attributes
    ----------
    entries : list of Assignment
        All assignments.
    """

    def __init__(self) -> None:
        self.entries: list[Assignment] = []
        self._like: defaultdict[frozenset[tuple[str, str]], list[Assignment]] = defaultdict(list)
        self._counts: defaultdict[tuple[str, str] | None, Counter[str]] = defaultdict(Counter)

    def add(self, entry: Assignment) -> None:
        """Append an assignment."""
        self.entries.append(entry)
        self._like[frozenset(entry.fields.items())].append(entry)
        for key in (None, *entry.fields.items()):
            self._counts[key][entry.group] += 1

    def like(self, fields: Mapping[str, str]) -> Sequence[Assignment]:
        """Return the assignments of participants with the same fields."""
        return self._like.get(frozenset(fields.items()), ())

    def count(self, field: tuple[str, str] | None = None) -> Counter[str]:
        """Return the number of participants in each group, with a field of one value if it is given."""
        return self._counts.get(field, Counter())


class AssignmentLog:
    """Assignments of an experiment.

    Parameters
    ----------
    out : Path
        Folder of all sessions, shared by all stations.
    experiment : str
        Name of the experiment.

    Attributes
    ----------
    history : History
        Assignments, as far as read.
    """

    def __init__(self, out: Path, experiment: str) -> None:
        self.folder = out / GROUPS / f"task-{task_label(experiment)}"
        self.history = History()
        self._of_code: dict[str, Assignment] = {}
        self._whole = False

    def assign(self, participant: str, groups: GroupSettings, fields: Mapping[str, str], seed: int) -> Assignment:
        """Return the assignment of a participant: the earlier one, or a new one.

        Parameters
        ----------
        participant : str
            Code of the participant.
        groups : GroupSettings
            Table ``groups``.
        fields : mapping
            Data about the participant, with those that the table names.
        seed : int
            Seed of the experiment.

        Raises
        ------
        ConfigurationError
            If a code or a file of the log is invalid, or the participant is in a group that the table does not have.
        JournalFault
            If the assignment cannot be written.
        """
        code, used = require_code(participant), {name: fields[name] for name in groups.fields}
        require_impersonal(used)
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            while True:
                self.refresh()
                found = self._of_code.get(code)
                if found is not None:
                    break
                if len(self.history.entries) >= MOST_SLOTS:
                    raise ConfigurationError(f"{self.folder}: {MOST_SLOTS} participants are assigned; no more can be.")
                group, block, size = choose_group(groups, self.history, used, seed)
                hidden = base64.b64encode(group.encode()).decode()
                entry = {"participant": code, **({"sealed": hidden} if groups.blind else {"group": group})}
                path = self.folder / f"assignment-{len(self.history.entries):04d}"
                create_entry(path, {**entry, "fields": used, "block": block, "size": size})
        except OSError as error:
            raise JournalFault(
                f"{self.folder}: {code} cannot be assigned to a group ({error.strerror or error}); --out must be a "
                "folder that all stations can write, on a disk with hard links"
            ) from error
        if found.group not in groups.names:
            raise ConfigurationError(
                f"groups.names: {code} was assigned to a group that the file does not have any more; put it back."
            )
        return found

    def refresh(self) -> None:
        """Read the assignments of other stations.

        Raises
        ------
        ConfigurationError
            If a file of the log is invalid, or missing before later ones.
        """
        while True:
            path = self.folder / f"assignment-{len(self.history.entries):04d}"
            if not os.path.lexists(path):
                if not self._whole:  # listed once, since other stations append in order
                    require_no_gap(path)
                    self._whole = not os.path.lexists(path)
                    continue
                return
            try:
                table = json.loads(read_small(path))
                code, fields, counts = table["participant"], table["fields"], (table["block"], table["size"])
                group = (
                    base64.b64decode(table["sealed"], validate=True).decode() if "sealed" in table else table["group"]
                )
                texts = [group, *fields, *fields.values()]
                if not all(isinstance(one, str) and len(one) <= _LONGEST for one in texts):
                    raise ValueError("a text is missing or too long")
                if not all(type(one) is int and 0 <= one < 2**31 for one in counts):
                    raise ValueError("a number is missing")
                code = None if code is None else require_code(code)
            except (AttributeError, ValueError, LookupError, TypeError, RecursionError, HapticError) as error:
                raise ConfigurationError(
                    f"{path} is no assignment to a group: restore it. The header and the event 'group' in the journal "
                    "of its participant have the same data."
                ) from error
            entry = Assignment(code, group, fields, *counts, self.history.count()[group])
            self.history.add(entry)
            if code is not None:
                self._of_code.setdefault(code, entry)

    def transfer(self, participant: str, replacement: str) -> None:
        """Give the assignment of a participant to another one, unless that has been done.

        Group, block and place stay the same, so that the balance and the orders within the group are kept.

        Raises
        ------
        JournalFault
            If the assignment cannot be written.
        """
        self.refresh()
        for number, one in enumerate(self.history.entries):
            if one.participant == participant:
                path = self.folder / f"assignment-{number:04d}"
                try:
                    rewrite_entry(path, json.loads(read_small(path)) | {"participant": require_code(replacement)})
                except OSError as error:
                    raise JournalFault(f"{path}: cannot be written ({error.strerror or error})") from error

    def of(self, participant: str) -> Assignment | None:
        """Return the assignment of a participant, None if there is none."""
        self.refresh()
        return self._of_code.get(participant)


def choose_group(groups: GroupSettings, earlier: History, fields: Mapping[str, str], seed: int) -> tuple[str, int, int]:
    """Return the group of the next participant, with number and size of its block.

    Permuted blocks are separate for each combination of `fields`. Each block contains every group in proportion to its
    share, in random order. Minimisation follows Pocock and Simon (1975): the group that leaves the smallest sum of
    differences between the groups, over all fields and in total, is chosen with the probability of the table.
    """
    like = earlier.like(fields) if groups.method == "blocks" else earlier.entries
    stratum = json.dumps(dict(sorted(fields.items()))) if groups.method == "blocks" else ""
    rng = np.random.default_rng(trial_seed(seed, f"group {stratum}", 1, 0, len(like)))
    shares = dict(zip(groups.names, groups.shares, strict=True))
    if groups.method == "minimisation":
        return _minimise(groups, shares, earlier, fields, rng), 0, 0
    whole = sum(groups.shares)
    block, size = (like[-1].block, like[-1].size) if like else (0, 0)
    used = Counter(one.group for one in itertools.takewhile(lambda one: one.block == block, reversed(like)))
    if not like or used.total() >= size:
        block, size, used = block + 1, int(rng.choice(groups.block)), Counter()
    left = np.array([max(share * size // whole - used[name], 0) for name, share in shares.items()], dtype=float)
    if not left.any():  # the shares of the file have changed within a block
        left = np.array(groups.shares, dtype=float)
    return groups.names[int(rng.choice(len(left), p=left / left.sum()))], block, size


def _minimise(
    groups: GroupSettings,
    shares: Mapping[str, int],
    earlier: History,
    fields: Mapping[str, str],
    rng: np.random.Generator,
) -> str:
    totals = [earlier.count(field) for field in (None, *fields.items())]
    imbalance = {}
    for candidate in shares:
        counts = [[(total[g] + (g == candidate)) / share for g, share in shares.items()] for total in totals]
        imbalance[candidate] = sum(max(one) - min(one) for one in counts)
    least = min(imbalance.values())
    best = [name for name, value in imbalance.items() if value < least + 1e-9]
    others = [name for name in shares if name not in best]
    chosen = best if not others or rng.random() < groups.probability else others
    weights = np.array([shares[name] for name in chosen], dtype=float)
    return chosen[int(rng.choice(len(chosen), p=weights / weights.sum()))]
