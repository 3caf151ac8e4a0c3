"""A rendering that is driven sample by sample, without a servo, and computed once more in the end."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from haptics import Causality, Coulomb, MasslessImpedance, State
from haptics.records import COMPUTED, ROW, Rows
from haptics.rendering.envelope import ENVELOPE_FLAGS, Limits
from haptics.rendering.kernels import assistance
from haptics.rendering.programs import parameters_of
from haptics.rendering.rendering import Rendering
from tests.haptics.doubles import make_spec
from tests.haptics.strategies import KINDS

Array = np.ndarray[Any, np.dtype[Any]]
PERIOD = 1e-3
BAD = math.nan
every_kind = pytest.mark.parametrize("kind", KINDS)


def causality_of(kind):
    return Causality.ADMITTANCE if kind in "AD" else Causality.IMPEDANCE


def sample(x=0.0, y=0.0, vx=0.0, vy=0.0, fx=0.0, fy=0.0):
    return State(0.0, np.array((x, y)), np.array((vx, vy)), np.array((fx, fy)))


class Drive:
    """A rendering that is given one sample after the other; keeps all rows."""

    def __init__(self, element, tighter=None, **facts):
        spec = make_spec(element.causality, **{"fade_in": 0.1, **facts})
        self._make = lambda: Rendering(element, spec, Limits.for_device(spec, tighter))
        self.rendering = self._make()
        self._parameters = {0: parameters_of(element)}
        self._rows: list[Rows] = []
        self._tick = 0

    def __call__(self, state, age=0.0, permission=0, skipped=0):
        """Render `state`, some deadlines after the last."""
        self._tick += skipped
        slots = np.zeros(1, ROW)
        self.rendering.tick(state, age, slots, 0, (self._tick, self._tick * PERIOD, 0.0, 0), permission)
        self._tick += 1
        self._rows.append(slots)
        row: np.void = slots[0]
        return row

    def force(self, state, **options):
        """Render `state` and return the norm of the command."""
        return float(np.hypot(*self(state, **options)["command"]))

    @property
    def assistance(self):
        return float(assistance(self.rendering.core.view(np.recarray)[0]))

    def change(self, element):
        """Put the parameters of `element` in force."""
        version = len(self._parameters)
        self._parameters[version] = parameters_of(element)
        self.rendering.configure(self._parameters[version], version)

    @property
    def rows(self):
        return np.concatenate(self._rows)

    def verify(self):
        """Compute every tick again, in a rendering that has not seen any, and compare the bits."""
        again = self._make()
        for row in self._rows:
            again.configure(self._parameters[int(row["settings_version"][0])], int(row["settings_version"][0]))
            computed = again.recompute(row)
            assert (computed["status"] & ENVELOPE_FLAGS) == (row["status"] & ENVELOPE_FLAGS)
            for name in (*COMPUTED, "injected_energy"):
                assert computed[name].tobytes() == row[name].tobytes(), (int(row["tick"][0]), name)


def stiff(force=4.0, stiffness=6000.0):
    return MasslessImpedance(Coulomb(force), stiffness, 10.0)


def wound_up(begin, **tighter):
    """Return a drive whose soft spring is stretched by 50 mm along x and drives the handle back with 5 N."""
    drive = begin(MasslessImpedance(Coulomb(8.0), 100.0, 0.0), {"max_speed": 0.5, **tighter}, max_energy=10.0)
    for k in range(500):
        row = drive(sample(x=1e-4 * k, vx=0.1))
    assert row["command"].tolist() == pytest.approx([-5.0, 0.0])
    return drive
