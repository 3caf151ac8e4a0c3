"""The ledger of energy: what the loop gave the hand beyond what the element had stored; column ``injected_energy``.

In every tick with a good sample ``X = max(0, X + dS + dE - N)``: dS is how much more is stored by the
element, ``K |e|^2/2 + M |v|^2/2``, and by walls; dE the work on the handle, the force in effect times its displacement
(impedance) or minus the mean of the hand's force times the displacement (admittance); N what the encoder's quantisation
feigns, ``K q^2/2`` with the smallest of displacement, its change and the encoder's step. See `docs/passivity.md`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from apps.verify.envelope.history import History
from apps.verify.facts import rounding
from apps.verify.findings import Findings
from apps.verify.recorded import Window

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

REMEMBERED = 512
"""Commands that the ledger remembers: it counts delays up to two less."""


class Ledger:
    """Follows the ledger of energy from window to window."""

    def __init__(self) -> None:
        self._last_way = np.zeros(2)

    def check(
        self, run: Window, history: History, stores: tuple[Floats, Floats], walls: Floats, findings: Findings
    ) -> None:
        """Check that the ledger goes on from tick to tick.

        Parameters
        ----------
        run, history
            The window, and what the envelope remembered in it.
        stores : (2,) tuple of (n,) arrays
            What element and walls stored in each tick [J], nan where that cannot be told from the rows, and how far
            that may be off.
        walls : (n,) array
            Stiffness of the stiffest wall that is touched [N/m].
        findings : Findings
            Where violations go.
        """
        entered = entered_in(run, history)
        energy, work = run.column("injected_energy"), _work(run)
        feigned, (stored, blur) = self._feigned(run, entered, walls), stores
        growth, before = stored - _shifted(stored), _shifted(energy)
        expected = np.maximum(0.0, before + growth + (work - feigned).sum(axis=1))
        bound = np.asarray(rounding(stored, _shifted(stored), before, *np.abs(work).T, *feigned.T))
        bound = bound + blur + _shifted(blur)
        known = entered & np.isfinite(expected)
        words = "the ledger of energy does not go on from the tick before"
        findings.residual("energy", "ledger of energy", run.tick, energy - expected, bound, "J", words, known)
        rests = ~entered & (energy != before)
        findings.where("energy", run.tick, rests, "the ledger of energy changed in a tick in which it rests")
        words = "what the element stored cannot be told from the rows: the ledger of energy is not checked"
        findings.lack_where("energy", run.tick, entered & ~known, words)

    def _feigned(self, run: Window, entered: Mask, walls: Floats) -> Floats:
        """Return what quantisation can feign, by axis (n, 2) [J]."""
        way = np.diff(run.column("position"), axis=0, prepend=run.column("position")[:1])
        before, self._last_way = latest_before(way, entered, run.skip, self._last_way)
        step = np.minimum(np.minimum(np.abs(way), np.abs(way - before)), float(run.sheet("position_resolution")))
        K = run.coupling_stiffness + walls
        return np.asarray(0.5 * K[:, None] * step * step)


def latest_before(values: Floats, where: Mask, skip: int, known: Floats) -> tuple[Floats, Floats]:
    """Return the value at the latest tick before each `where` it counts, and that after the last tick.

    Parameters
    ----------
    values : (n, 2) array
        Of a window, of whose ticks the first `skip` are there to look back to.
    where : (n,) array
        Ticks that count.
    known : (2,) array
        The value at the latest one before the window; 0 without any.
    """
    index = np.where(where, np.arange(len(where)), -1)
    index[:skip] = -1
    upto = np.maximum.accumulate(index)
    latest = np.concatenate(([-1], upto[:-1]))
    before = np.where((latest >= 0)[:, None], values[np.maximum(latest, 0)], known)
    return before, values[upto[-1]] if upto[-1] >= 0 else known


def entered_in(run: Window, history: History) -> Mask:
    """Return in which ticks the ledger goes on: an element stepped in them, and in those before."""
    observed = run.good & ~run.in_motion
    return np.asarray(observed & _shifted(observed) & ~history.fresh)


def _shifted(values: Any) -> Any:
    before = np.zeros_like(values)
    before[1:] = values[:-1]
    return before


def _work(run: Window) -> Floats:
    """Return the work on the handle since the tick before, by axis (n, 2) [J]."""
    place = run.column("position")
    way = place - _shifted(place)
    if not run.impedance:
        force = run.column("force")
        return np.asarray(-0.5 * (force + _shifted(force)) * way)
    late = min(float(run.sheet("delay")) / run.period, REMEMBERED - 2.0)
    return np.asarray(force_in_effect(run, late, periods_of(run)) * way)


def periods_of(run: Window) -> NDArray[np.int64]:
    """Return how many periods each tick comes after the one before."""
    return np.asarray(np.maximum(np.diff(run.tick, prepend=-1), 1))


def force_in_effect(run: Window, late: float, periods: NDArray[np.int64]) -> Floats:
    """Return the mean of the force on the handle in so many `periods` before each tick, (n, 2) [N].

    A command that comes n + phi periods `late` acts in the period that begins with command k for the part phi under
    number k - n - 1, and for the rest under number k - n. Deadlines that were skipped are held by the last command.
    """
    whole = int(late)
    part = late - whole
    row_of, place = _sent(periods_of(run), run.good)
    sent = np.concatenate((np.zeros((1, 2)), run.column("command")))[row_of]
    before = np.concatenate(([0], place[:-1]))
    counted = np.minimum(periods, whole + 2)
    total = np.zeros((run.count, 2))
    for j in range(whole + 2):
        older = sent[np.clip(np.minimum(before - whole - 1 + j, before), 0, None)]
        newer = sent[np.clip(np.minimum(before - whole + j, before), 0, None)]
        total += np.where((j < counted)[:, None], part * older + (1.0 - part) * newer, 0.0)
    total += (periods - counted)[:, None] * sent[before]
    return np.asarray(total / periods[:, None])


def _sent(held: NDArray[np.int64], good: Mask) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return, for one period after the other, the row (from 1 on) whose command was sent, and where each row's is.

    Rows of a good tick after skipped deadlines repeat the command before; number 0 stands for none.
    """
    repeats = np.where(good, np.minimum(held, REMEMBERED) - 1, 0)
    place = np.cumsum(repeats + 1)
    row_of = np.zeros(int(place[-1]) + 1, np.int64)
    rows = np.arange(1, len(held) + 1)
    row_of[place] = rows
    filled = np.maximum.accumulate(row_of)
    return filled, place
