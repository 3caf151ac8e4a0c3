"""Check of the passivity controller: the damping added by rule 4.

See `docs/passivity.md`. The ledger accumulates the energy that the loop gave the hand beyond the energy stored by the
element and lent by the delayed force, minus the dissipation of the device's damping. It is not recorded, and is
reconstructed from the rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from apps.verify.envelope.energy import REMEMBERED, entered_in, force_in_effect, latest_before
from apps.verify.envelope.history import History
from apps.verify.facts import rounding
from apps.verify.recorded import Window
from apps.verify.walls.handles import Walls

Floats = NDArray[np.float64]

LINGERING = 0.03
"""Time constant with which credit and damping decay [s]."""

_COUNT = 1.01
"""Motion in encoder counts beyond which the handle has certainly moved."""

_LEAST = 1e-3
"""Damping below this share of the maximum is set to zero."""


@dataclass
class _Device:
    """Device parameters of the controller: delays in periods, maximum and own damping, encoder count."""

    spring_late: float
    all_late: float
    most: float
    damping: float
    count: float

    @classmethod
    def of(cls, run: Window) -> _Device:
        T, delay, lag = run.period, float(run.sheet("delay")), float(run.sheet("velocity_lag"))
        applied = min(delay / T, REMEMBERED - 2.0)
        late = applied + min(lag / T, REMEMBERED - 2.0 - applied)
        mass = float(run.sheet("mass") or 0.0)
        return cls(
            T * (late + 0.5),
            late,
            0.25 * math.pi * mass / (delay + lag + T),
            float(run.sheet("damping")),
            float(run.sheet("position_resolution")),
        )


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
        device, T = _Device.of(run), run.period
        own, u = (run.coupling_stiffness, run.parameter("damping")), run.column("velocity")
        K, B = own[0] + walls.stiffness, own[1] + walls.damping
        entered = entered_in(run, history)
        gained = (_gained(run, device, stored, own, walls)).tolist()
        before, self._last_way = latest_before(T * u, entered, run.skip, self._last_way)
        step = np.minimum(np.minimum(np.abs(T * u), np.abs(T * u - before)), device.count)
        feigned = (0.5 * K[:, None] * step * step).sum(axis=1).tolist()  # apparent energy of quantization in a period
        power, moving = (u * u).sum(axis=1).tolist(), self._moving(run, device.count)
        sticking = ((run.column("sticking") != 0) | walls.holds).tolist()
        opposite = 2.0 * K * device.spring_late
        bound = np.maximum(np.minimum(opposite, device.most - B), 0.0).tolist()
        threshold = ((K + B / T) * device.count**2).tolist()
        acts = (run.good & ~run.in_motion).tolist()
        for k in range(run.skip, run.count):
            if entered[k]:
                self._excess = _next_excess(self._excess, gained[k], feigned[k], sticking[k], T)
            if not acts[k]:
                continue
            excess = self._excess
            self._alarmed = excess > threshold[k] or (self._alarmed and excess > 0.0)
            wanted = min(excess / (T * power[k]), bound[k]) if self._alarmed and power[k] > 0.0 else 0.0
            if sticking[k]:
                wanted = max(wanted, self._last * math.exp(-T / LINGERING))
            last = min(wanted, bound[k])
            self._last = last if last > _LEAST * device.most else 0.0
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


def _next_excess(excess: float, gained: float, feigned: float, sticking: bool, T: float) -> float:
    """Return the ledger after a tick.

    An excess persists, except for quantization; a credit decays.
    """
    after = excess + gained
    if after > 0.0:
        return max(0.0, after - feigned)
    if not sticking:  # dissipation by friction ends an excess but gives no credit
        after = max(after, min(excess, 0.0))
    return after * math.exp(-T / LINGERING)


def _gained(run: Window, device: _Device, stored: Floats, own: tuple[Floats, Floats], walls: Walls) -> Floats:
    """Return the energy gained by the handle in the period before each tick beyond the stored energy [J]."""
    u, v = run.column("velocity"), run.column("sliding_velocity")
    apart = ((u - v) ** 2).sum(axis=1)
    late = device.spring_late
    springs, dampers = own[0] * apart + walls.springs, own[1] * apart + walls.dampers
    lent = 0.5 * (dampers * (late + 0.5 * run.period) - 0.5 * springs * late * late)
    kept = stored - lent
    growth = np.diff(kept, prepend=kept[:1])
    way = run.period * u
    force = force_in_effect(run, device.all_late, np.ones(run.count, np.int64))
    return np.asarray(growth + (force * way).sum(axis=1) - device.damping * (u * way).sum(axis=1))
