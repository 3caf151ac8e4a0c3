"""Check of the energy ledger, column ``injected_energy``.

The ledger is the energy given to the hand beyond the energy stored by element and walls.

In every tick with a good sample, ``X = max(0, X + dS + dE - N)``. dS is the increase of the energy stored by the
element, ``K |e|^2/2 + M |v|^2/2``, and by walls. dE is the work on the handle: the force in effect times the
displacement of the handle (impedance), or minus the mean of the hand's force times that displacement (admittance). N is
the apparent energy due to encoder quantization, ``K q^2/2`` with the minimum q of displacement, its change and the
encoder's step. See `docs/passivity.md`.
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
"""Number of commands that the ledger stores; supports delays of up to two periods less."""


class Ledger:
    """Reconstructs the energy ledger over consecutive windows."""

    def __init__(self) -> None:
        self._last_way = np.zeros(2)

    def check(
        self, run: Window, history: History, stores: tuple[Floats, Floats], walls: Floats, findings: Findings
    ) -> None:
        """Check the ledger from tick to tick.

        Parameters
        ----------
        run, history
            The window, and the state of the envelope in it.
        stores : (2,) tuple of (n,) arrays
            Energy stored by element and walls in each tick [J], nan where the rows do not determine it, and its error
            bound.
        walls : (n,) array
            Stiffness of the stiffest wall in contact [N/m].
        findings : Findings
            Receives the findings.
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
        """Return the apparent energy due to quantization, by axis (n, 2) [J]."""
        way = np.diff(run.column("position"), axis=0, prepend=run.column("position")[:1])
        before, self._last_way = latest_before(way, entered, run.skip, self._last_way)
        step = np.minimum(np.minimum(np.abs(way), np.abs(way - before)), float(run.sheet("position_resolution")))
        K = run.coupling_stiffness + walls
        return np.asarray(0.5 * K[:, None] * step * step)


def latest_before(values: Floats, where: Mask, skip: int, known: Floats) -> tuple[Floats, Floats]:
    """Return the value at the latest selected tick before each tick, and at the last selected tick.

    Parameters
    ----------
    values : (n, 2) array
        Values in a window.
    where : (n,) array
        Selected ticks.
    skip : int
        Number of look-back rows at the beginning of the window, which are not selected.
    known : (2,) array
        Value at the latest selected tick before the window; 0 if none.
    """
    index = np.where(where, np.arange(len(where)), -1)
    index[:skip] = -1
    upto = np.maximum.accumulate(index)
    latest = np.concatenate(([-1], upto[:-1]))
    before = np.where((latest >= 0)[:, None], values[np.maximum(latest, 0)], known)
    return before, values[upto[-1]] if upto[-1] >= 0 else known


def entered_in(run: Window, history: History) -> Mask:
    """Return the ticks that update the ledger: an element was computed in this tick and the one before."""
    observed = run.good & ~run.in_motion
    return np.asarray(observed & _shifted(observed) & ~history.fresh)


def _shifted(values: Any) -> Any:
    before = np.zeros_like(values)
    before[1:] = values[:-1]
    return before


def _work(run: Window) -> Floats:
    """Return the work on the handle since the previous tick, by axis (n, 2) [J]."""
    place = run.column("position")
    way = place - _shifted(place)
    if not run.impedance:
        force = run.column("force")
        return np.asarray(-0.5 * (force + _shifted(force)) * way)
    late = min(float(run.sheet("delay")) / run.period, REMEMBERED - 2.0)
    return np.asarray(force_in_effect(run, late, periods_of(run)) * way)


def periods_of(run: Window) -> NDArray[np.int64]:
    """Return the number of periods between each tick and the previous one."""
    return np.asarray(np.maximum(np.diff(run.tick, prepend=-1), 1))


def force_in_effect(run: Window, late: float, periods: NDArray[np.int64]) -> Floats:
    """Return the mean force on the handle during the `periods` before each tick, (n, 2) [N].

    With a delay of n + phi periods (`late`), command k - n - 1 acts for the fraction phi of the period that starts with
    command k, and command k - n for the rest. During skipped deadlines the last command is held.
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
    """Return the row of the command sent in each period (from 1 on), and the period of each row.

    A good tick after skipped deadlines repeats the previous command during these. The number 0 means no command.
    """
    repeats = np.where(good, np.minimum(held, REMEMBERED) - 1, 0)
    place = np.cumsum(repeats + 1)
    row_of = np.zeros(int(place[-1]) + 1, np.int64)
    rows = np.arange(1, len(held) + 1)
    row_of[place] = rows
    filled = np.maximum.accumulate(row_of)
    return filled, place
