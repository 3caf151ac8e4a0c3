"""Wrongs that a seeded program does to recordings: each knows which rule must find it, and from which tick on.

The forger knows the format: unless a wrong is about just that, the hash and the certificate are made anew after it, so
that neither finds it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from haptics.device import Causality
from haptics.recording.fitness import Fitness
from haptics.recording.recording import METADATA, SETTINGS, TICKS
from haptics.recording.tick_file import TickTable
from haptics.rendering.envelope import ENVELOPE_FLAGS, UNUSABLE
from tests.certificates import certificate, felt, flags_seen

Rows = Any
Choose = np.random.Generator


class NotHere(Exception):
    """A wrong that would not change anything in this recording."""


@dataclass
class Forgery:
    """A recording that is being forged.

    Attributes
    ----------
    folder : Path
        Where it is.
    choose : Generator
        Decides what is at random.
    rows, metadata, settings
        Its content; what is changed here is written back.
    resealed : bool
        Whether hash and certificate are made anew.
    """

    folder: Path
    choose: Choose
    resealed: bool = True

    def __post_init__(self) -> None:
        self.rows: Rows = np.load(self.folder / TICKS)
        self.metadata: dict[str, Any] = json.loads((self.folder / METADATA).read_text())
        self.settings = [json.loads(line) for line in (self.folder / SETTINGS).read_text().splitlines()]

    @property
    def impedance(self) -> bool:
        return bool(self.metadata["device"]["causality"] == "impedance")

    def norm(self, name: str) -> NDArray[np.float64]:
        values: NDArray[np.float64] = np.hypot(*self.rows[name].T)
        return values

    @property
    def good(self) -> NDArray[np.bool_]:
        """Ticks in which the element stepped, as it did just before."""
        fine = (self.rows["status"] & UNUSABLE) == 0
        fine[1:] &= fine[:-1]
        fine[0] = False
        return np.asarray(fine)

    @property
    def steady(self) -> NDArray[np.bool_]:
        """Good ticks in which nothing fades and the command is that of the element."""
        same = (self.rows["command"] == self.rows["command_unlimited"]).all(axis=1)
        return np.asarray(self.good & same & ((self.rows["status"] & ENVELOPE_FLAGS) == 0))

    def pick(self, where: NDArray[np.bool_]) -> int:
        """Choose one of the rows."""
        found = np.flatnonzero(where)
        if not len(found):
            raise NotHere
        return int(self.choose.choice(found))

    def save(self) -> None:
        """Write everything back, resealed if wanted."""
        np.save(self.folder / TICKS, self.rows)
        if self.resealed:
            self.metadata["rows_sha256"] = TickTable(self.folder / TICKS).sha256()
            self._certify()
        (self.folder / METADATA).write_text(json.dumps(self.metadata))
        (self.folder / SETTINGS).write_text("".join(json.dumps(entry) + "\n" for entry in self.settings))

    def _certify(self) -> None:
        session, rate = self.metadata["configuration"]["session"], self.metadata["rate_hz"]
        planned = round(session["duration"] * rate) if self.metadata["reason"] == "completed" else None
        timing = certificate(self.rows, len(self.rows), planned, 1.0 / rate)
        unfit = Fitness().judge(timing, self.metadata["error"])
        self.metadata["certificate"] = {**timing, "fit": not unfit, "unfit_because": unfit}
        causality = Causality(self.metadata["device"]["causality"])
        self.metadata |= {"flags": flags_seen(self.rows), **felt(self.rows, causality)}


@dataclass(frozen=True)
class Expected:
    """What must be found.

    Attributes
    ----------
    rule : str
        The rule.
    tick : int or None
        The tick that must be named, or the one after it; None where none is.
    missing : bool
        Whether it is something missing, no violation.
    """

    rule: str
    tick: int | None = None
    missing: bool = False


Wrong = Callable[[Forgery], Expected]
WRONGS: dict[str, Wrong] = {}


def wrong(name: str) -> Callable[[Wrong], Wrong]:
    def enter(function: Wrong) -> Wrong:
        WRONGS[name] = function
        return function

    return enter


def wrongs(count: int, recordings: int) -> Iterator[tuple[int, str, int]]:
    """Yield number, name and recording of `count` wrongs; where one is not possible the next recording is tried."""
    names = list(WRONGS)
    for number in range(count):
        yield number, names[number % len(names)], (7 * number + number // len(names)) % recordings
