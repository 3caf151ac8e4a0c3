"""Virtual devices whose data sheet hides what they are, and the truth about them.

The boundary is computed here from the plant's own arithmetic: what one period of substeps, delay line, encoder and
contact makes of each unit vector of the state is a column of a matrix, and that matrix must not let anything grow.
"""

import math
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from calibration.autotune import Autotune, Tuned, tune
from calibration.motions import Mover
from devices.virtual.joystick import VirtualJoystick
from haptics.clock import Clock
from haptics.device import DeviceSpec
from haptics.recording.recording import Recording

SUBSTEP = 2.5e-5
RATES = (250.0, 400.0, 500.0, 800.0, 1000.0, 1600.0, 2000.0, 2500.0, 4000.0)
"""Whose periods are whole numbers of substeps."""

NOBODY = {"name": "scripted-force", "script": [[0.0, 0.0, 0.0]]}


@dataclass(frozen=True)
class Truth:
    """What a device is [kg, N s/m, N, s, m, Hz]."""

    mass: float
    damping: float
    friction: float
    delay_steps: int
    resolution: float
    rate: float

    @classmethod
    def of(cls, seed: int) -> "Truth":
        """Return a device drawn at random; one in two has dry friction."""
        rng = np.random.default_rng([seed, 20])
        return cls(
            mass=math.exp(rng.uniform(math.log(0.05), math.log(1.0))),
            damping=rng.uniform(0.3, 3.0),
            friction=rng.uniform(0.02, 0.2) * rng.integers(2),
            delay_steps=round(rng.uniform(0.0, 5e-3) / SUBSTEP),
            resolution=math.exp(rng.uniform(math.log(1e-6), math.log(1e-4))),
            rate=float(rng.choice(RATES)),
        )

    @property
    def settings(self) -> dict[str, Any]:
        """Of the virtual joystick."""
        level = {"coulomb_forward": self.friction, "coulomb_backward": self.friction}
        return {
            "mass": self.mass,
            "damping": self.damping,
            "delay": self.delay_steps * SUBSTEP,
            "resolution": self.resolution,
            "substep": SUBSTEP,
            "velocity_estimator": "difference",
            "hand": NOBODY,
            **({"friction": {"x": level, "y": level}} if self.friction else {}),
        }

    @property
    def numbers(self) -> dict[str, float]:
        """What is to be identified. The plant moves with the velocity at the end of a substep: half of one early."""
        delay = max(self.delay_steps * SUBSTEP - 0.5 * SUBSTEP, 0.0)
        return {"mass": self.mass, "damping": self.damping, "friction": self.friction, "offset": 0.0, "delay": delay}

    def boundary(self, damping: float) -> float:
        """Return the stiffness up to which a sticking contact of this `damping` holds it [N/m]; 0 for none."""
        stiffness = 1.0
        while stiffness < 1e8 and self._spectral_radius(stiffness * 1.05, damping) < 1.0:
            stiffness *= 1.05
        if self._spectral_radius(stiffness, damping) >= 1.0:
            return 0.0
        low, high = stiffness, 1.05 * stiffness
        for _ in range(30):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if self._spectral_radius(middle, damping) < 1.0 else (low, middle)
        return low

    def _spectral_radius(self, stiffness: float, damping: float) -> float:
        period = 1.0 / self.rate
        steps = round(period / SUBSTEP)
        waiting = math.ceil(self.delay_steps / steps) + 1
        size = 3 + waiting  # place, velocity, place at the last tick, the last forces, newest first
        state = np.eye(size)
        x, v, last = state[:, 0].copy(), state[:, 1].copy(), state[:, 2]
        force = -(stiffness * x + damping * (x - last) / period)
        forces = [force, *(state[:, 3 + k] for k in range(waiting))]
        before = x.copy()
        for step in range(steps):
            late = -((step - self.delay_steps) // steps)  # ticks before this one
            v = v + SUBSTEP * (forces[late] - self.damping * v) / self.mass
            x = x + SUBSTEP * v
        after = np.column_stack((x, v, before, *forces[:waiting]))
        return float(np.abs(np.linalg.eigvals(after)).max())


class Hidden(VirtualJoystick):
    """A virtual joystick that does not say what it is."""

    @property
    def spec(self) -> DeviceSpec:
        """The data sheet without what is to be found; what an acceleration is limited to would tell the mass."""
        return replace(
            super().spec, mass=None, damping=None, delay=None, position_resolution=None, max_acceleration=1e4
        )


def mover(truth: Truth) -> Mover:
    """Return what moves it, as fast as the machine can."""

    def make(more: Mapping[str, Any], clock: Clock) -> Hidden:
        return Hidden({**truth.settings, **more}, clock=clock)

    return Mover(make, live=False, rate=truth.rate, device={"name": "hidden"})


@dataclass(frozen=True)
class Outcome:
    """What became of a device.

    Attributes
    ----------
    truth : Truth or StickTruth
        What it is.
    tuned : Tuned
        What was found along x.
    farthest : float
        How far the handle was from the middle [m].
    duration : float
        How long it was moved [s].
    ratio : float
        The boundary that was found over the true one; nan where none was found.
    """

    truth: Any
    tuned: Tuned
    farthest: float
    duration: float
    ratio: float

    @property
    def held(self) -> dict[str, bool]:
        """Whether the interval of each parameter holds the truth."""
        found = self.tuned.axes[0].identified
        inside = {}
        for name, value in self.truth.numbers.items():
            low, high = found.fit.interval(name)
            inside[name] = low <= value <= high
        inside["resolution"] = abs(found.resolution - self.truth.resolution) <= found.resolution_error
        return inside


def tuned(truth: Truth, **wish: Any) -> Outcome:
    """Tune a device along x and return what became of it."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "run"
        found = tune(mover(truth), Autotune(axes="x", **wish), folder)
        rows = Recording(folder).rows
    boundary = found.axes[0].boundary
    ratio = math.nan
    if boundary is not None and boundary.stiffness is not None:
        ratio = boundary.stiffness / truth.boundary(boundary.damping)
    return Outcome(truth, found, float(np.abs(rows["position"]).max()), len(rows) / truth.rate, ratio)
