"""Checks of the energy ledger, column ``injected_energy``, and of the passivity controller.

The ledger is the energy given to the hand beyond the energy stored by element and walls.

In every tick with a good sample, ``X = max(0, X + dS + dE - N)``. dS is the increase of the energy stored by the
element, ``K |e|^2/2 + M |v|^2/2``, and by walls. dE is the work on the handle: the force in effect times the
displacement of the handle (impedance), or minus the mean of the hand's force times that displacement (admittance). N is
the apparent energy due to encoder quantization, ``K q^2/2`` with the minimum q of displacement, its change and the
encoder's step. See `docs/passivity.md`.

The passivity controller adds the damping of rule 4. Its ledger accumulates the energy that the loop gave the hand
beyond the energy stored by the element and lent by the delayed force, minus the dissipation of the device's damping. It
is not recorded, and is reconstructed from the rows.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from apps.verify.envelope import History
from apps.verify.findings import Findings
from apps.verify.recorded import Floats, Mask, Window, rounding, shifted
from apps.verify.walls import Walls

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
        energy, place, (stored, blur) = run.column("injected_energy"), run.column("position"), stores
        if run.impedance:
            late = min(float(run.sheet("delay")) / run.period, REMEMBERED - 2.0)
            work = force_in_effect(run, late, periods_of(run)) * (place - shifted(place))
        else:
            force = run.column("force")
            work = -0.5 * (force + shifted(force)) * (place - shifted(place))
        way = np.diff(place, axis=0, prepend=place[:1])
        previous, self._last_way = latest_before(way, entered, run.skip, self._last_way)
        step = np.minimum(np.minimum(np.abs(way), np.abs(way - previous)), float(run.sheet("position_resolution")))
        feigned = 0.5 * (run.coupling_stiffness + walls)[:, None] * step * step  # apparent energy of quantization
        growth, before = stored - shifted(stored), shifted(energy)
        expected = np.maximum(0.0, before + growth + (work - feigned).sum(axis=1))
        bound = rounding(stored, shifted(stored), before, *np.abs(work).T, *feigned.T)
        bound = bound + blur + shifted(blur)
        known = entered & np.isfinite(expected)
        words = "the ledger of energy does not go on from the tick before"
        findings.residual("energy", "ledger of energy", run.tick, energy - expected, bound, "J", words, known)
        rests = ~entered & (energy != before)
        findings.where("energy", run.tick, rests, "the ledger of energy changed in a tick in which it rests")
        words = "what the element stored cannot be told from the rows: the ledger of energy is not checked"
        findings.lack_where("energy", run.tick, entered & ~known, words)


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
    return np.asarray(observed & shifted(observed) & ~history.fresh)


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
    # The row of the command sent in each period (from 1 on; 0 means no command), and the period of each row. A good
    # tick after skipped deadlines repeats the previous command during these.
    place = np.cumsum(np.where(run.good, np.minimum(periods_of(run), REMEMBERED) - 1, 0) + 1)
    row_of = np.zeros(int(place[-1]) + 1, np.int64)
    row_of[place] = np.arange(1, run.count + 1)
    sent = np.concatenate((np.zeros((1, 2)), run.column("command")))[np.maximum.accumulate(row_of)]
    before = np.concatenate(([0], place[:-1]))
    counted = np.minimum(periods, whole + 2)
    total = np.zeros((run.count, 2))
    for j in range(whole + 2):
        older = sent[np.clip(np.minimum(before - whole - 1 + j, before), 0, None)]
        newer = sent[np.clip(np.minimum(before - whole + j, before), 0, None)]
        total += np.where((j < counted)[:, None], part * older + (1.0 - part) * newer, 0.0)
    total += (periods - counted)[:, None] * sent[before]
    return np.asarray(total / periods[:, None])


LINGERING = 0.03
"""Time constant with which credit and damping decay [s]."""

_COUNT = 1.01
"""Motion in encoder counts beyond which the handle has certainly moved."""

_LEAST = 1e-3
"""Damping below this share of the maximum is set to zero."""


class Controller:
    """Reconstructs the passivity controller over consecutive windows."""

    def __init__(self) -> None:
        self._excess = self._last = 0.0
        self._alarmed = False
        self._last_way = np.zeros(2)
        self._anchor = [0.0, 0.0]

    def damping(self, run: Window, history: History, stored: Floats, walls: Walls) -> tuple[Floats, Floats]:
        """Return the added damping in every tick [N s/m], 0 if none, and the error bound of its force [N].

        Both are (n,). The error bound follows from the rounding of the stored energy, because an excess is dissipated
        within a period.

        Parameters
        ----------
        run, history
            The window, and the state of the envelope in it.
        stored : (n,) array
            Energy stored by element and walls [J].
        walls : Walls
            State of the walls.
        """
        added = np.zeros(run.count)
        if not run.impedance or not run.limit("passivity_control", False):
            return added, added
        T, u, v = run.period, run.column("velocity"), run.column("sliding_velocity")
        delay, lag = float(run.sheet("delay")), float(run.sheet("velocity_lag"))
        applied = min(delay / T, REMEMBERED - 2.0)
        all_late = applied + min(lag / T, REMEMBERED - 2.0 - applied)  # [periods]
        late, count = T * (all_late + 0.5), float(run.sheet("position_resolution"))
        most = 0.25 * math.pi * float(run.sheet("mass") or 0.0) / (delay + lag + T)
        stiffness, damper = run.coupling_stiffness, run.parameter("damping")
        K, B = stiffness + walls.stiffness, damper + walls.damping
        entered = entered_in(run, history)
        # Energy gained by the handle in the period before each tick beyond the stored energy and that lent by the
        # delayed force [J].
        apart, way = ((u - v) ** 2).sum(axis=1), T * u
        springs, dampers = stiffness * apart + walls.springs, damper * apart + walls.dampers
        kept = stored - 0.5 * (dampers * (late + 0.5 * T) - 0.5 * springs * late * late)
        force = force_in_effect(run, all_late, np.ones(run.count, np.int64))
        growth = np.diff(kept, prepend=kept[:1]) + (force * way).sum(axis=1)
        gained = np.asarray(growth - float(run.sheet("damping")) * (u * way).sum(axis=1)).tolist()
        before, self._last_way = latest_before(T * u, entered, run.skip, self._last_way)
        step = np.minimum(np.minimum(np.abs(T * u), np.abs(T * u - before)), count)
        feigned = (0.5 * K[:, None] * step * step).sum(axis=1).tolist()  # apparent energy of quantization in a period
        power, moving = (u * u).sum(axis=1).tolist(), self._moving(run, count)
        held = (walls.stiffness > 0.0) & ~walls.slides  # by springs alone, without sliding
        sticking = ((run.column("sticking") != 0) | held).tolist()
        opposite = 2.0 * K * late
        bound = np.maximum(np.minimum(opposite, most - B), 0.0).tolist()
        threshold = ((K + B / T) * count**2).tolist()
        acts = (run.good & ~run.in_motion).tolist()
        for k in range(run.skip, run.count):
            if entered[k]:
                # An excess persists, except for quantization; a credit decays.
                after = self._excess + gained[k]
                if after > 0.0:
                    self._excess = max(0.0, after - feigned[k])
                else:
                    if not sticking[k]:  # dissipation by friction ends an excess but gives no credit
                        after = max(after, min(self._excess, 0.0))
                    self._excess = after * math.exp(-T / LINGERING)
            if not acts[k]:
                continue
            excess = self._excess
            self._alarmed = excess > threshold[k] or (self._alarmed and excess > 0.0)
            wanted = min(excess / (T * power[k]), bound[k]) if self._alarmed and power[k] > 0.0 else 0.0
            if sticking[k]:
                wanted = max(wanted, self._last * math.exp(-T / LINGERING))
            last = min(wanted, bound[k])
            self._last = last if last > _LEAST * most else 0.0
            added[k] = self._last if moving[k] and power[k] > 0.0 else 0.0
        speed = np.sqrt((u * u).sum(axis=1))
        return added, np.where(added > 0.0, rounding(stored) / (T * np.maximum(speed, 1e-9)), 0.0)

    def _moving(self, run: Window, count: float) -> list[bool]:
        """Return the ticks in which the handle has certainly moved.

        Alternation by one encoder count does not count as motion.
        """
        if count == 0.0:
            return [True] * run.count
        moving, anchor = [False] * run.count, self._anchor
        observed, places = (run.good & ~run.in_motion).tolist(), run.column("position").tolist()
        for k in range(run.skip, run.count):
            for i in range(2):
                way = places[k][i] - anchor[i]
                if observed[k] and abs(way) > _COUNT * count:
                    anchor[i] = places[k][i] - math.copysign(count, way)
                    moving[k] = True
        return moving
