"""What a command may be, by the data sheet and the command before it; and what a refused sample may change: nothing."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from haptics.device import Causality
from haptics.elements.models import Element
from haptics.records import Rows, Status
from haptics.rendering.envelope import ENVELOPE_FLAGS, UNUSABLE, Limits
from haptics.rendering.rendering import Rendering
from tests.haptics.doubles import Vector
from tests.haptics.stepped_servo import Moving

TAKES_AWAY = int(Status.SPEED | Status.ENERGY | Status.WORKSPACE)
TINY = 1e-9


class Judge:
    """Knows what a command may be, given the one before it."""

    def __init__(self, device: Moving, limits: Limits, period: float) -> None:
        self.spec, self.limits, self.period = device.spec, limits, period
        self.admittance = self.spec.causality is Causality.ADMITTANCE
        self.step = limits.pair(self.spec.causality)[1] * period
        self.last = np.zeros(2)
        self.reference: Vector | None = None
        self.bad = self.released = 0
        self.ever_held = limits.dead_man == "none"
        self.version, self.easing, self.held = 0, 0, 0.0

    def look(self, row: np.void, expected: int) -> None:
        """Judge a tick in whose sample `expected` was wrong."""
        status = int(row["status"])
        assert status & UNUSABLE == expected, (Status(status), Status(expected))
        self.bad = self.bad + 1 if status & UNUSABLE else 0
        self.released = self.released + 1 if status & Status.RELEASED else 0
        self.ever_held = self.ever_held or not row["permission"] & 1
        (self._look_at_reference if self.admittance else self._look_at_force)(row, status)

    def _look_at_force(self, row: np.void, status: int) -> None:
        force, last, asked = row["command"], self.last, row["command_unlimited"]
        norm, before = math.hypot(*force), math.hypot(*last)
        assert np.isfinite(force).all()
        assert norm <= self.limits.max_force * (1 + TINY)
        if self.bad:
            assert force.tolist() == ((0.5 if self.bad == 1 else 0.0) * last).tolist()
        else:
            self._look_at_change(force, last, status)
            self._look_at_what_was_taken(row, status)
            self._look_at_easing(row, before)
            if not status & Status.PASSIVITY:
                assert norm <= max(math.hypot(*asked), before, self.held) * (1 + TINY) + TINY
        if not self.ever_held:
            assert not force.any()
        if self.released > math.ceil(8e-3 / self.period) + 1:
            assert norm <= max(before - self.step, 0.0) + TINY
        self.last = force.copy()

    def _look_at_easing(self, row: np.void, before: float) -> None:
        """Know which force was there when parameters changed: while it eases to another, it may be as large as that."""
        if row["settings_version"] != self.version:
            self.version, self.held = int(row["settings_version"]), max(before, self.held)
            self.easing = math.ceil(self.limits.fade_in / self.period) + 2
        elif self.easing > 0:
            self.easing -= 1
        else:
            self.held = 0.0

    def _look_at_what_was_taken(self, row: np.void, status: int) -> None:
        force, v, x = row["command"], row["velocity"], row["position"]
        driving = float(np.dot(force, v)) > TINY * self.limits.max_force * math.hypot(*v)
        assert not (driving and math.hypot(*v) >= self.limits.max_speed), "a force drives the handle on"
        assert not (driving and row["injected_energy"] > self.limits.max_energy), "more energy is given"
        for i in range(2):
            outside = max(x[i] - self.spec.workspace_max[i], self.spec.workspace_min[i] - x[i])
            assert not (outside > 0.0 and force[i] * x[i] > 0.0), "a force points further out"

    def _look_at_change(self, now: Vector, before: Vector, status: int) -> None:
        change = math.hypot(*(now - before))
        assert change <= self.step * (1 + 1e-6) + TINY or status & TAKES_AWAY
        assert math.hypot(*now) <= math.hypot(*before) + self.step * (1 + 1e-6) + TINY

    def _look_at_reference(self, row: np.void, status: int) -> None:
        now, before = row["command"].copy(), self.reference
        if before is None:
            assert np.isnan(now).all() == bool(self.bad), "there is a reference from the first good sample on"
            before = row["position"].copy() if not self.bad else None
        if before is None:
            return
        assert np.isfinite(now).all()
        velocity = (now - before) / self.period
        assert math.hypot(*velocity) <= self.limits.max_speed * (1 + 1e-6) + TINY
        if self.bad:
            assert now.tolist() == before.tolist(), "it holds"
        else:
            self._look_at_change(velocity, self.last, status)
        if not self.ever_held:
            assert now.tolist() == before.tolist()
        if self.released > math.ceil(8e-3 / self.period) + 1:
            assert math.hypot(*velocity) <= max(math.hypot(*self.last) - self.step, 0.0) + 1e-6
        self._look_at_fence(now, before)
        self.last, self.reference = velocity, now

    def _look_at_fence(self, now: Vector, before: Vector) -> None:
        low, high = self.spec.workspace_min, self.spec.workspace_max
        for i in range(2):
            outside = max(now[i] - high[i], low[i] - now[i], 0.0)
            assert outside <= max(before[i] - high[i], low[i] - before[i], 0.0) + 1e-12, "inside, or moving in"


class Twin:
    """The same rendering, given other rubbish wherever a sample was refused."""

    def __init__(self, element: Element, device: Moving, limits: Limits) -> None:
        self._rendering = Rendering(element, device.spec, limits)
        self._started = False
        self._numbers = np.random.default_rng(1)

    def compare(self, row: Rows, parameters: dict[int, Any]) -> None:
        """Demand the same bits in everything that the element and the envelope have made of the tick in `row`."""
        version = int(row["settings_version"][0])
        self._rendering.configure(parameters[version], version)
        flag = int(row["status"][0]) & UNUSABLE
        told = self._with_rubbish(row, flag) if flag else row
        self._started = self._started or not flag
        computed = self._rendering.again(told)
        assert (computed["status"] & ENVELOPE_FLAGS) == (row["status"] & ENVELOPE_FLAGS)
        names = ["command", "command_unlimited", "displacement", "friction_force", "sliding_velocity", "sticking"]
        for name in [*names, "injected_energy", *([] if flag else ["proxy"])]:
            assert computed[name].tobytes() == row[name].tobytes(), (name, row[0], computed[0])

    def _with_rubbish(self, row: Rows, flag: int) -> Rows:
        rubbish = row.copy()
        if flag == Status.FOLLOWING_ERROR:  # where it is must be true: it is what is wrong, and is believed
            rubbish["velocity"], rubbish["force"] = self._numbers.uniform(-5.0, 5.0, (2, 2))
            return rubbish
        for name in ("position", "velocity", "force"):
            rubbish[name] = self._numbers.normal(0.0, 1e3, 2)
        if flag == Status.NOT_FINITE:
            rubbish["velocity"] = math.nan
        elif flag == Status.STALE:
            rubbish["sample_age"] = 1.0
        else:
            rubbish["velocity"] = 1e6
        return rubbish
