"""Findings of a verification: violated rules, impossible checks, and the largest residuals.

Recordings are verified in windows. Violations of a rule in several windows are merged into one finding with the first
tick and the total number of ticks. Findings are in the order of the checks, independently of the windows.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from apps.verify.recorded import Window

OK, VIOLATED, INCOMPLETE = "ok", "violated", "incomplete"

MOST_MARKERS = 100_000
"""Maximum number of markers of violated ticks in the result."""

Mask = NDArray[np.bool_]

_Place = tuple[int, ...]


@dataclass
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
    place : tuple of int
        Sort key.
    count : int
        Number of affected ticks; 0 if the rule does not concern ticks.
    """

    rule: str
    tick: int | None
    words: str
    place: _Place
    count: int = 0


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


class Findings:
    """Collects findings.

    Attributes
    ----------
    violated_ticks : int
        Number of ticks that violate a rule.
    violated_markers : set of int
        Nonzero markers (trial numbers) of these ticks.
    """

    def __init__(self) -> None:
        self.violated_ticks = 0
        self.violated_markers: set[int] = set()
        self._violations: dict[Hashable, Finding] = {}
        self._missing: dict[Hashable, Finding] = {}
        self._residuals: dict[str, tuple[_Place, Residual]] = {}
        self._window: Window | None = None
        self._broken: list[Any] = []
        self._at: _Place = ()
        self._calls = 0

    # --- results

    @property
    def violations(self) -> list[Finding]:
        """Violated rules, in the order of the checks."""
        return self._ordered(self._violations, always=False)

    @property
    def missing(self) -> list[Finding]:
        """Checks that were not possible, in the order of the checks."""
        return self._ordered(self._missing, always=True)

    @property
    def residuals(self) -> dict[str, Residual]:
        """Largest residual of each equation by name, in the order of the checks."""
        ordered = sorted(self._residuals.items(), key=lambda one: one[1][0])
        return {name: residual for name, (_, residual) in ordered}

    @property
    def verdict(self) -> str:
        """`VIOLATED` after any violation, else `INCOMPLETE` if a check was not possible, else `OK`."""
        if self._violations:
            return VIOLATED
        return INCOMPLETE if self._missing else OK

    def add(self, other: Findings, where: str) -> None:
        """Add the findings of another recording, with the prefix `where`."""
        for entries, found in ((self._violations, other.violations), (self._missing, other.missing)):
            for one in found:
                place = (len(entries),)
                entries[place] = Finding(one.rule, one.tick, f"{where}{one.words}", place)
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
        self._violations.setdefault((rule, words), Finding(rule, tick, words, self._place()))

    def lack(self, rule: str, words: str, tick: int | None = None) -> None:
        """Add missing data or a check that was not possible.

        Repetitions are ignored.
        """
        self._missing.setdefault((rule, words), Finding(rule, tick, words, self._place()))

    def where(self, rule: str, ticks: Any, broken: Mask, words: str | Callable[[int], str]) -> None:
        """Add a violation of the first of the `ticks`, (n,), that are `broken`, and count the ticks.

        Look-back rows of the current window are ignored.
        """
        about = words if isinstance(words, str) else (words.__code__, words.__defaults__)
        text = (lambda k: str(words)) if isinstance(words, str) else words
        self._broken += self._enter(self._violations, (self._at, rule, about), rule, ticks, broken, text)

    def lack_where(self, rule: str, ticks: Any, unknown: Mask, words: str) -> None:
        """Add a check that was not possible in the `ticks`, (n,), that are `unknown`."""
        self._enter(self._missing, (rule, words), rule, ticks, unknown, lambda k: words)

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
        self._broken += self._enter(
            self._violations,
            (self._at, rule, name, words),
            rule,
            ticks,
            held & ~(size <= most),
            lambda k: f"{words}: off by {size[k]:.3g} {unit}, rounding explains {most[k]:.1g}",
            place,
        )

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

    def _enter(
        self,
        entries: dict[Hashable, Finding],
        key: Hashable,
        rule: str,
        ticks: Any,
        mask: Mask,
        words: Callable[[int], str],
        place: _Place = (),
    ) -> list[Any]:
        """Count the ticks of a mask in the entry `key`; return these ticks in a list, which is empty without any."""
        place, mask = place or self._place(), self._own(ticks, mask)
        count = int(np.count_nonzero(mask))
        if not count:
            return []
        k = int(np.argmax(mask))
        entry = entries.setdefault(key, Finding(rule, int(ticks[k]), "", place))
        entry.words = entry.words or words(k)
        entry.count += count
        return [np.asarray(ticks)[mask]]

    @staticmethod
    def _ordered(entries: dict[Hashable, Finding], *, always: bool) -> list[Finding]:
        """Return the findings in order, without duplicates.

        The number of ticks is appended if it is greater than 1, or `always`.
        """
        found: dict[tuple[str, str], Finding] = {}
        for entry in sorted(entries.values(), key=lambda one: one.place):
            words = entry.words
            if entry.count > 1 or (always and entry.count):
                words = f"{words.removesuffix('.')} ({entry.count} ticks){'.' if always else ''}"
            found.setdefault((entry.rule, words), replace(entry, words=words))
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
