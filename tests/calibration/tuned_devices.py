"""Tuning of hidden devices: their truth, and the accuracy of what is found.

Run ``python -m tests.calibration.tuned_devices [KIND]``.
KIND is ``virtual`` (100 devices, with the truth of their arithmetic) or ``emulated`` (20 sticks behind their driver).
Prints the found over the true boundary of each device and its doubts, then how often the interval of each parameter
holds the truth, the relative error of the boundary, and the largest distance of a handle from the middle.
"""

import contextlib
import math
import sys
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from calibration.autotune import Autotune, Tuned, Tuning
from calibration.motions import Mover
from devices.emulated.joystick import EmulatedPidJoystick
from devices.emulators.pid.profiles import PROFILES
from devices.emulators.pid.stick import emulated_stick
from devices.virtual.joystick import VirtualJoystick
from haptics.errors import HapticError
from haptics.recording.recording import Recording
from tests.calibration.benches import StepClock
from tests.devices.joystick.in_step import put_in_step

SUBSTEP = 2.5e-5
RATES = (250.0, 400.0, 500.0, 800.0, 1000.0, 1600.0, 2000.0, 2500.0, 4000.0)
"""Rates whose periods are whole numbers of substeps [Hz]."""

NO_HAND = {"name": "scripted-force", "script": [[0.0, 0.0, 0.0]]}


def dry(level):
    """Return the settings of dry friction of this level [N] along both axes; None without."""
    along = {"coulomb_forward": level, "coulomb_backward": level}
    return {"x": along, "y": along} if level else None


def stiffest(holds, low, high, precision):
    """Return the largest stiffness between `low` and `high` that holds, to a relative precision; 0 for none."""
    if not holds(low):
        return 0.0
    while high / low > 1.0 + precision:
        middle = math.sqrt(low * high)
        low, high = (middle, high) if holds(middle) else (low, middle)
    return math.sqrt(low * high)


def without_parameters(spec, **changes):
    """Return the data sheet of a device that hides its parameters."""
    return replace(spec, mass=None, damping=None, delay=None, position_resolution=None, **changes)


@dataclass(frozen=True)
class Truth:
    """True parameters of a virtual device [kg, N s/m, N, s, m, Hz]."""

    mass: float
    damping: float
    friction: float
    delay_steps: int
    resolution: float
    rate: float

    @classmethod
    def of(cls, seed):
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
    def settings(self):
        """Settings of the virtual joystick."""
        return {
            "mass": self.mass,
            "damping": self.damping,
            "delay": self.delay_steps * SUBSTEP,
            "resolution": self.resolution,
            "substep": SUBSTEP,
            "velocity_estimator": "difference",
            "hand": NO_HAND,
            "friction": dry(self.friction),
        }

    @property
    def numbers(self):
        """Parameters to identify. The plant moves with the velocity at the end of a substep: half a substep early."""
        delay = max(self.delay_steps * SUBSTEP - 0.5 * SUBSTEP, 0.0)
        return {"mass": self.mass, "damping": self.damping, "friction": self.friction, "offset": 0.0, "delay": delay}

    def boundary(self, damping, _expected=None):
        """Return the stiffness up to which a sticking contact of this `damping` holds it [N/m]; 0 for none."""
        return stiffest(lambda stiffness: self._spectral_radius(stiffness, damping) < 1.0, 1.0, 1e8, 1e-9)

    def _spectral_radius(self, stiffness, damping):
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
    """A virtual joystick that hides its parameters."""

    @property
    def spec(self):
        """The data sheet without parameters; the acceleration limit would reveal the mass."""
        return without_parameters(super().spec, max_acceleration=1e4)


def mover(truth):
    """Return a mover of the device, as fast as the machine can."""

    def make(more, clock):
        return Hidden({**truth.settings, **more}, clock=clock)

    return Mover(make, live=False, rate=truth.rate, device={"name": "hidden"})


@dataclass(frozen=True)
class Outcome:
    """Result of tuning a device.

    Attributes
    ----------
    truth : Truth or StickTruth
        True parameters.
    tuned : Tuned
        Result along x.
    farthest : float
        Largest distance of the handle from the middle [m].
    ratio : float
        Found boundary over the true one; nan without a found boundary.
    """

    truth: Any
    tuned: Tuned
    farthest: float
    ratio: float

    @property
    def held(self):
        """Whether the interval of each parameter holds the truth."""
        found = self.tuned.axes[0].identified
        inside = {}
        for name, value in self.truth.numbers.items():
            low, high = found.fit.interval(name)
            inside[name] = low <= value <= high
        inside["resolution"] = abs(found.resolution - self.truth.resolution) <= found.resolution_error
        return inside


def tuned(truth, device=None, **wish):
    """Tune a device along x: a virtual one, or the one that the mover `device` moves."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "run"
        found = Tuning(Autotune(axes="x", **wish)).run(device or mover(truth), folder)
        rows = Recording(folder).rows
    boundary = found.axes[0].boundary
    ratio = math.nan
    if boundary is not None and boundary.stiffness is not None:
        ratio = boundary.stiffness / truth.boundary(boundary.damping, boundary.expected)
    return Outcome(truth, found, float(np.abs(rows["position"]).max()), ratio)


# --- emulated sticks --------------------------------------------------------------------------------------------------

NAME = "openffboard"
_GROWN, _DIED = 2.5, 0.1
"""Relative swings above which it has grown, and below which it has decayed to encoder noise."""
_SWING, _KICK = 2.0, 3.0
"""Force of the observed swing, well below the limit of the motors, and largest force of the kick [N]."""


@dataclass(frozen=True)
class StickTruth:
    """True parameters of an emulated stick [kg, N s/m, N, m, Hz]."""

    mass: float
    damping: float
    friction: float
    resolution: float
    rate: float

    @classmethod
    def of(cls, seed):
        """Return a stick drawn at random; one in two has dry friction, and no report has more than 16 bits."""
        rng = np.random.default_rng([seed, 21])
        return cls(
            mass=math.exp(rng.uniform(math.log(0.05), math.log(1.0))),
            damping=rng.uniform(0.3, 3.0),
            friction=float(rng.uniform(0.02, 0.2) * rng.integers(2)),
            resolution=math.exp(rng.uniform(math.log(4e-6), math.log(1e-4))),
            rate=float(rng.choice((250.0, 500.0, 1000.0))),
        )

    @property
    def numbers(self):
        """Parameters to identify; only the emulation knows the delay."""
        return {"mass": self.mass, "damping": self.damping, "friction": self.friction, "offset": 0.0}

    def boundary(self, damping, expected):
        """Return the stiffness up to which a contact holds the stick [N/m], to 1 %."""
        return stiffest(lambda stiffness: self._holds(stiffness, damping), 0.3 * expected, 3.0 * expected, 0.01)

    def _holds(self, stiffness, damping):
        period = 1.0 / self.rate
        frequency = math.sqrt(stiffness / self.mass)
        count = round(max(80.0 * math.pi / frequency, 0.3) / period)
        kicked = max(round(_SWING / (_KICK * frequency * period)), 1)
        kick = _SWING / (frequency * period * kicked)
        swing, displacement = [], np.zeros(2)
        with stepped(replace(self, friction=0.0)) as (device, clock, backend):
            device.open()
            clock.start()
            for tick in range(1, count):
                clock.wait(tick)
                state = device.read()
                displacement = displacement + period * state.velocity
                force = -stiffness * displacement - damping * state.velocity
                force[0] += kick if tick <= kicked else 0.0
                device.write(force)
                swing.append(float(backend.units[0].plant.joystick.handle[0]))
                if abs(swing[-1]) > _GROWN * _SWING / stiffness:
                    break
            device.close()
        if len(swing) < count - 1:
            return False
        ring = np.array(swing[len(swing) // 8 :])
        half = len(ring) // 2
        first, second = ring[:half], ring[half:]
        return bool(second.std() < max(first.std(), _DIED * _SWING / stiffness, self.resolution))


class HiddenStick(EmulatedPidJoystick):
    """An emulated stick that hides its parameters."""

    @property
    def spec(self):
        """The data sheet without parameters."""
        return without_parameters(super().spec)


@contextlib.contextmanager
def stepped(truth):
    """Yield the driver of a stick, its clock and its bus, all in step."""
    with pytest.MonkeyPatch.context() as patch:
        per_metre = 1.0 / truth.resolution
        handle = replace(
            PROFILES[NAME].handle,
            mass=truth.mass,
            damping=truth.damping,
            counts=((per_metre, 0.0), (0.0, -per_metre)),
            gear=((10.0, 0.0), (0.0, -10.0)),
        )
        patch.setitem(PROFILES, NAME, replace(PROFILES[NAME], handle=handle))
        backend = emulated_stick(NAME, hand=NO_HAND, period=0.0, friction=dry(truth.friction))
        bus: Any = backend.units[0].time
        clock = StepClock(1.0 / truth.rate, bus, put_in_step(bus, patch))
        settings = {"emulated": True, "emulator": NAME, "velocity_estimator": "difference"}
        yield HiddenStick(settings, clock=clock, backend=backend), clock, backend


def tuned_stick(truth, **wish):
    """Tune a stick along x."""
    with stepped(truth) as (device, clock, _):
        known = {"live": False, "rate": truth.rate, "device": {"name": "hidden"}, "clock_of": lambda moved: clock}
        return tuned(truth, Mover(lambda more, _: device, **known), **wish)


# --- accuracy ---------------------------------------------------------------------------------------------------------

NEAR = 0.15
"""Permitted relative error of the boundary."""
HALF_WIDTH = 0.1
"""Half width of the workspace [m]."""

COUNTS = {"virtual": 100, "emulated": 20}


def outcome_of(kind, seed):
    """Tune a device of that kind."""
    return tuned(Truth.of(seed)) if kind == "virtual" else tuned_stick(StickTruth.of(seed))


def summary(found):
    """Return the table of all devices."""
    doubtful = np.array([bool(one.tuned.axes[0].doubts) for one in found])
    lines = [f"{len(found)} devices, {doubtful.sum()} doubtful"]
    for name in found[0].held:
        held = np.array([one.held[name] for one in found])
        doubted = (doubtful & ~held).sum()
        lines.append(f"  {name:<11} inside its interval: {held.sum()}; outside and doubtful: {doubted}")
    ratios = np.array([one.ratio for one in found])
    known = ratios[np.isfinite(ratios)]
    near = np.sum(np.abs(known - 1.0) <= NEAR)
    lines.append(f"  boundary    found: {len(known)} of {len(found)}; within {NEAR:.0%}: {near}")
    if len(known):
        lines.append(f"  found/true  {known.min():.3f} to {known.max():.3f}, median {np.median(known):.3f}")
    lines.append(f"  farthest    {1e3 * max(one.farthest for one in found):.1f} mm from the middle")
    return "\n".join(lines)


def main(arguments):
    """Print the table."""
    (kind,) = arguments or ["virtual"]
    found, failed = [], 0
    for seed in range(COUNTS[kind]):
        try:
            found.append(outcome_of(kind, seed))
            print(f"{seed}: boundary {found[-1].ratio:.3f} {found[-1].tuned.axes[0].doubts}", flush=True)  # noqa: T201
        except HapticError as error:
            failed += 1
            print(f"{seed}: ENDED: {error}", flush=True)  # noqa: T201
    print(f"{summary(found)}\n  ended       by a bound of a motion: {failed}")  # noqa: T201


if __name__ == "__main__":
    main(sys.argv[1:])
