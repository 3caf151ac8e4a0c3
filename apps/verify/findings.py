"""Findings of a verification: violated rules, impossible checks, and the largest residuals.

Recordings are verified in windows. Violations of a rule in several windows are merged into one finding with the first
tick and the total number of ticks. Findings are in the order of the checks, independently of the windows.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from apps.verify.recorded import Window

OK, VIOLATED, INCOMPLETE = "ok", "violated", "incomplete"

MOST_MARKERS = 100_000
"""Maximum number of markers of violated ticks in the result."""

Mask = NDArray[np.bool_]
Numbers = NDArray[np.float64]

_Place = tuple[int, ...]


@dataclass(frozen=True)
class Finding:
    """Rule that is violated or could not be checked.

    Attributes
    ----------
    rule : str
        Name of the rule.
    tick : int or None
        First affected tick, if the rule concerns ticks.
    words : str
        Message for the user.
    """

    rule: str
    tick: int | None
    words: str


@dataclass
class Residual:
    """Largest residual of an equation relative to its bound.

    Attributes
    ----------
    ticks : int
        Number of evaluated ticks.
    share : float
        Maximum of residual over bound; above 1 is a violation.
    value, bound : float
        Residual and bound at the maximum [unit].
    unit : str
        Unit of both.
    """

    unit: str
    ticks: int = 0
    share: float = 0.0
    value: float = 0.0
    bound: float = 0.0


@dataclass
class _Entry:
    """Finding with its current number of ticks."""

    place: _Place
    rule: str
    tick: int | None
    words: str
    count: int

    def finding(self, *, always: bool) -> Finding:
        """Return the finding; its number of ticks is appended if it is greater than 1, or `always`."""
        if self.count > 1 or (always and self.count):
            end = "." if always else ""
            return Finding(self.rule, self.tick, f"{self.words.removesuffix('.')} ({self.count} ticks){end}")
        return Finding(self.rule, self.tick, self.words)


@dataclass
class Findings:
    """Collects findings.

    Attributes
    ----------
    violated_ticks : int
        Number of ticks that violate a rule.
    violated_markers : set of int
        Nonzero markers (trial numbers) of these ticks.
    """

    violated_ticks: int = 0
    violated_markers: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._violations: dict[Hashable, _Entry] = {}
        self._missing: dict[Hashable, _Entry] = {}
        self._residuals: dict[str, tuple[_Place, Residual]] = {}
        self._added: dict[bool, list[Finding]] = {True: [], False: []}
        self._window: Window | None = None
        self._broken: list[Any] = []
        self._at: _Place = ()
        self._calls = 0

    # --- results

    @property
    def violations(self) -> list[Finding]:
        """Violated rules, in the order of the checks."""
        return [*self._ordered(self._violations, always=False), *self._added[True]]

    @property
    def missing(self) -> list[Finding]:
        """Checks that were not possible, in the order of the checks."""
        return [*self._ordered(self._missing, always=True), *self._added[False]]

    @property
    def residuals(self) -> dict[str, Residual]:
        """Largest residual of each equation by name, in the order of the checks."""
        ordered = sorted(self._residuals.items(), key=lambda one: one[1][0])
        return {name: residual for name, (_, residual) in ordered}

    @property
    def verdict(self) -> str:
        """`VIOLATED` after any violation, else `INCOMPLETE` if a check was not possible, else `OK`."""
        if self._violations or self._added[True]:
            return VIOLATED
        return INCOMPLETE if self._missing or self._added[False] else OK

    def add(self, other: Findings, where: str) -> None:
        """Add the findings of another recording, with the prefix `where`."""
        for violated, found in ((True, other.violations), (False, other.missing)):
            self._added[violated] += [Finding(one.rule, one.tick, f"{where}{one.words}") for one in found]
        for name, residual in other.residuals.items():
            self._keep(name, residual)

    # --- position

    def set_window(self, window: Window | None) -> None:
        """Set the current window, or None after the last one."""
        if self._window is not None and self._broken:
            ticks = np.unique(np.concatenate(self._broken))
            self.violated_ticks += len(ticks)
            markers = np.unique(self._window.column("marker")[np.isin(self._window.tick, ticks)])
            room = MOST_MARKERS - len(self.violated_markers)
            self.violated_markers.update([int(marker) for marker in markers if marker][:room])
        self._window, self._broken = window, []

    def begin(self, *place: int) -> None:
        """Set the position of the following findings in the order of the results."""
        self._at, self._calls = place, 0

    # --- entries

    def violate(self, rule: str, words: str, tick: int | None = None) -> None:
        """Add a violation.

        A repeated violation of a rule with the same message is ignored.
        """
        self._violations.setdefault((rule, words), _Entry(self._place(), rule, tick, words, 0))

    def lack(self, rule: str, words: str, tick: int | None = None) -> None:
        """Add missing data or a check that was not possible.

        Repetitions are ignored.
        """
        self._missing.setdefault((rule, words), _Entry(self._place(), rule, tick, words, 0))

    def where(self, rule: str, ticks: Any, broken: Mask, words: str | Callable[[int], str]) -> None:
        """Add a violation of the first of the `ticks`, (n,), that are `broken`, and count the ticks.

        Look-back rows of the current window are ignored.
        """
        place = self._place()
        broken = self._own(ticks, broken)
        count = int(np.count_nonzero(broken))
        if not count:
            return
        self._broken.append(np.asarray(ticks)[broken])
        k = int(np.argmax(broken))
        about = words if isinstance(words, str) else (words.__code__, words.__defaults__)
        self._count(self._violations, (self._at, rule, about), place, rule, words, k, int(ticks[k]), count)

    def lack_where(self, rule: str, ticks: Any, unknown: Mask, words: str) -> None:
        """Add a check that was not possible in the `ticks`, (n,), that are `unknown`."""
        place = self._place()
        unknown = self._own(ticks, unknown)
        count = int(np.count_nonzero(unknown))
        if count:
            k = int(np.argmax(unknown))
            self._count(self._missing, (rule, words), place, rule, words, k, int(ticks[k]), count)

    def residual(
        self, rule: str, name: str, ticks: Any, value: Any, bound: Any, unit: str, words: str, where: Mask | None = None
    ) -> None:
        """Compare the residuals of an equation, (n,) or (n, 2), with their bounds.

        A nan exceeds any bound.

        Parameters
        ----------
        rule, name : str
            Rule that a residual beyond its bound violates, and name of the equation in the report.
        ticks : (n,) array
            Numbers of the ticks.
        value, bound : array
            Residuals, of any sign, and rounding bounds.
        unit, words : str
            Unit of both, and message for the first violating tick.
        where : (n,) array, optional
            Ticks to which the equation applies; all by default.
        """
        place = self._place()
        size, most = np.abs(value), np.broadcast_to(bound, np.shape(value))
        if size.ndim == 2:
            share = size / np.maximum(most, 1e-300)
            share = np.where(np.isfinite(share), share, np.inf)
            second = (share[:, 1] > share[:, 0]) | ((share[:, 1] == share[:, 0]) & (most[:, 1] > most[:, 0]))
            k = second.astype(int)[:, None]
            size, most = np.take_along_axis(size, k, 1)[:, 0], np.take_along_axis(most, k, 1)[:, 0]
        held = self._own(ticks, np.ones(len(size), bool) if where is None else where)
        if not held.any():
            return
        share = np.where(held, np.where(size > 0.0, size / np.maximum(most, 1e-300), 0.0), 0.0)
        share = np.where(held & ~np.isfinite(size), np.inf, share)
        bounds = np.where(held, most, 0.0)
        k = int(np.argmax(share)) if share.any() else int(np.argmax(bounds))
        worst = Residual(unit, int(held.sum()), float(share[k]), float(size[k]), float(bounds[k]))
        self._keep(name, worst, place)
        broken = held & ~(size <= most)
        count = int(np.count_nonzero(broken))
        if count:
            self._broken.append(np.asarray(ticks)[broken])
            k = int(np.argmax(broken))
            message = f"{words}: off by {size[k]:.3g} {unit}, rounding explains {most[k]:.1g}"
            key = (self._at, rule, name, words)
            self._count(self._violations, key, place, rule, message, k, int(ticks[k]), count)

    def _place(self) -> _Place:
        """Return the sort key of the current call."""
        self._calls += 1
        return (*self._at, self._calls)

    def _own(self, ticks: Any, mask: Mask) -> Mask:
        """Return the mask without the look-back rows of the current window."""
        if self._window is None or ticks is not self._window.tick or not self._window.skip:
            return mask
        own = mask.copy()
        own[: self._window.skip] = False
        return own

    @staticmethod
    def _count(
        entries: dict[Hashable, _Entry],
        key: Hashable,
        place: _Place,
        rule: str,
        words: str | Callable[[int], str],
        k: int,
        tick: int,
        count: int,
    ) -> None:
        if key not in entries:
            entries[key] = _Entry(place, rule, tick, words if isinstance(words, str) else words(k), 0)
        entries[key].count += count

    @staticmethod
    def _ordered(entries: dict[Hashable, _Entry], *, always: bool) -> list[Finding]:
        """Return the findings in order, without duplicates."""
        found: dict[tuple[str, str], Finding] = {}
        for entry in sorted(entries.values(), key=lambda one: one.place):
            finding = entry.finding(always=always)
            found.setdefault((finding.rule, finding.words), finding)
        return list(found.values())

    def _keep(self, name: str, new: Residual, place: _Place | None = None) -> None:
        if name not in self._residuals:
            self._residuals[name] = (place or (len(self._residuals),), new)
            return
        place, old = self._residuals[name]
        ticks = old.ticks + new.ticks
        worse = new.share > old.share or (new.share == old.share and new.bound > old.bound)
        kept = new if worse else old
        kept.ticks = ticks
        self._residuals[name] = (place, kept)
