"""What a verification has found: violations, what is missing, and the largest residual of every equation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

OK, VIOLATED, INCOMPLETE = "ok", "violated", "incomplete"

Mask = NDArray[np.bool_]
Numbers = NDArray[np.float64]


@dataclass(frozen=True)
class Finding:
    """A rule that is broken, or that could not be checked.

    Attributes
    ----------
    rule : str
        Which one.
    tick : int or None
        The first tick it is about, if of any.
    words : str
        What was found, for a person.
    """

    rule: str
    tick: int | None
    words: str


@dataclass
class Residual:
    """The largest residual of an equation, as a share of its bound.

    Attributes
    ----------
    ticks : int
        Ticks in which it was evaluated.
    share : float
        Largest residual over its bound; above 1 is a violation.
    value, bound : float
        The residual at that place, and its bound [unit].
    unit : str
        Of both.
    """

    unit: str
    ticks: int = 0
    share: float = 0.0
    value: float = 0.0
    bound: float = 0.0


@dataclass
class Findings:
    """Collects findings, in the order in which they come."""

    violations: list[Finding] = field(default_factory=list)
    missing: list[Finding] = field(default_factory=list)
    residuals: dict[str, Residual] = field(default_factory=dict)
    ticks: set[int] = field(default_factory=set)
    """Ticks with any violation, as far as a rule is about ticks."""

    @property
    def verdict(self) -> str:
        """One violation violates, else one thing missing leaves it incomplete."""
        return VIOLATED if self.violations else INCOMPLETE if self.missing else OK

    def add(self, other: Findings, where: str) -> None:
        """Take over what was found elsewhere, and say `where`."""
        for own, new in ((self.violations, other.violations), (self.missing, other.missing)):
            own += [Finding(one.rule, one.tick, f"{where}{one.words}") for one in new]
        for name, residual in other.residuals.items():
            self._keep(name, residual)

    def violate(self, rule: str, words: str, tick: int | None = None) -> None:
        """Enter a violation; one more of a rule that was broken in the same words before adds nothing."""
        if not any(one.rule == rule and one.words == words for one in self.violations):
            self.violations.append(Finding(rule, tick, words))

    def lack(self, rule: str, words: str, tick: int | None = None) -> None:
        """Enter what is missing, or could not be checked; once."""
        if not any(one.rule == rule and one.words == words for one in self.missing):
            self.missing.append(Finding(rule, tick, words))

    def where(self, rule: str, ticks: Any, broken: Mask, words: str | Callable[[int], str]) -> None:
        """Enter a violation of the first of the `ticks`, (n,), that are `broken`, and how many there are."""
        count = int(np.count_nonzero(broken))
        if not count:
            return
        self.ticks.update(np.asarray(ticks)[broken].tolist())
        k = int(np.argmax(broken))
        said = words if isinstance(words, str) else words(k)
        more = f" ({count} ticks)" if count > 1 else ""
        self.violate(rule, f"{said}{more}", int(ticks[k]))

    def residual(
        self, rule: str, name: str, ticks: Any, value: Any, bound: Any, unit: str, words: str, where: Mask | None = None
    ) -> None:
        """Compare the residuals of an equation, (n,) or (n, 2), with their bounds; nan is beyond any bound.

        Parameters
        ----------
        rule, name : str
            The rule that is broken by a residual beyond its bound, and what the equation is called in the report.
        ticks : (n,) array
            Numbers of the ticks.
        value, bound : array
            Residuals, of any sign, and what rounding can leave.
        unit, words : str
            Unit of both, and what is said of the first tick.
        where : (n,) array, optional
            Ticks in which the equation holds; all by default.
        """
        size, most = np.abs(value), np.broadcast_to(bound, np.shape(value))
        if size.ndim == 2:
            share = size / np.maximum(most, 1e-300) + 1e-12 * most / max(float(np.nanmax(most, initial=0.0)), 1e-300)
            k = np.argmax(np.where(np.isfinite(share), share, np.inf), axis=1)[:, None]
            size, most = np.take_along_axis(size, k, 1)[:, 0], np.take_along_axis(most, k, 1)[:, 0]
        held = np.ones(len(size), bool) if where is None else where
        if not held.any():
            return
        share = np.where(held, np.where(size > 0.0, size / np.maximum(most, 1e-300), 0.0), 0.0)
        share = np.where(held & ~np.isfinite(size), np.inf, share)
        self._keep(name, Residual(unit, int(held.sum()), *_worst(share, size, np.where(held, most, 0.0))))
        broken = held & ~(size <= most)
        self.where(
            rule, ticks, broken, lambda k: f"{words}: off by {size[k]:.3g} {unit}, rounding explains {most[k]:.1g}"
        )

    def _keep(self, name: str, new: Residual) -> None:
        old = self.residuals.get(name)
        if old is None:
            self.residuals[name] = new
            return
        ticks = old.ticks + new.ticks
        worse = new.share > old.share or (new.share == old.share and new.bound > old.bound)
        self.residuals[name] = new if worse else old
        self.residuals[name].ticks = ticks


def _worst(share: Numbers, size: Numbers, most: Numbers) -> tuple[float, float, float]:
    k = int(np.argmax(share)) if share.any() else int(np.argmax(most))
    return float(share[k]), float(size[k]), float(most[k])
