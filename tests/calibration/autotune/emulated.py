"""Emulated sticks whose parameter file hides what they are: the real driver, in step with its emulated bus.

Their true boundary is that of the emulation itself: a contact, computed here, behind the driver of a stick without dry
friction, kicked by some millimetres. It holds if the swing of the handle, which the plant knows, gets smaller.
"""

import math
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from calibration.autotune import Autotune, tune
from calibration.motions import Mover
from devices.emulated.joystick import EmulatedPidJoystick
from devices.emulators.pid import emulated_stick
from devices.emulators.pid.profiles.known import PROFILES
from devices.emulators.pid.usb_backend import EmulatedUsbBackend
from haptics.clock import Clock
from haptics.device import DeviceSpec
from haptics.recording.recording import Recording
from tests.calibration.autotune.hidden import NOBODY, Outcome
from tests.calibration.benches import StepClock
from tests.devices.joystick.in_step import put_in_step

NAME = "openffboard"
_GROWN, _DIED = 2.5, 0.1
"""A swing so many times as large has grown, one that is so small has died out: what is left is the encoder's."""
_SWING, _KICK = 2.0, 3.0
"""Force of the swing that is looked at, well below what the motors can, and largest force of the kick [N]."""


@dataclass(frozen=True)
class StickTruth:
    """What a stick is [kg, N s/m, N, m, Hz]."""

    mass: float
    damping: float
    friction: float
    resolution: float
    rate: float

    @classmethod
    def of(cls, seed: int) -> "StickTruth":
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
    def numbers(self) -> dict[str, float]:
        """What is to be identified; the delay is not known but to the emulation."""
        return {"mass": self.mass, "damping": self.damping, "friction": self.friction, "offset": 0.0}

    def boundary(self, damping: float, expected: float) -> float:
        """Return the stiffness up to which a contact holds the stick [N/m], by bisection to 1 %."""
        low, high = 0.3 * expected, 3.0 * expected
        while high / low > 1.01:
            middle = math.sqrt(low * high)
            low, high = (middle, high) if self._holds(middle, damping) else (low, middle)
        return math.sqrt(low * high)

    def _holds(self, stiffness: float, damping: float) -> bool:
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
                swing.append(float(backend.sticks[0].plant.handle[0]))
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
    """A stick whose file does not say what is to be found."""

    @property
    def spec(self) -> DeviceSpec:
        """The data sheet without it."""
        return replace(super().spec, mass=None, damping=None, delay=None, position_resolution=None)


class stepped:  # noqa: N801 - a context
    """Gives the driver of a stick, its clock and its bus, all in step."""

    def __init__(self, truth: StickTruth) -> None:
        self._truth, self._patch = truth, pytest.MonkeyPatch()

    def __enter__(self) -> tuple[HiddenStick, StepClock, EmulatedUsbBackend]:
        truth, per_metre = self._truth, 1.0 / self._truth.resolution
        handle = replace(
            PROFILES[NAME].handle,
            mass=truth.mass,
            damping=truth.damping,
            counts=((per_metre, 0.0), (0.0, -per_metre)),
            gear=((10.0, 0.0), (0.0, -10.0)),
        )
        self._patch.setitem(PROFILES, NAME, replace(PROFILES[NAME], handle=handle))
        level = {"coulomb_forward": truth.friction, "coulomb_backward": truth.friction}
        friction = {"x": level, "y": level} if truth.friction else None
        backend = emulated_stick(NAME, hand=NOBODY, period=0.0, friction=friction)
        bus: Any = backend.sticks[0].time
        clock = StepClock(1.0 / truth.rate, bus, put_in_step(bus, self._patch))
        settings = {"emulated": True, "emulator": NAME, "velocity_estimator": "difference"}
        return HiddenStick(settings, clock=clock, backend=backend), clock, backend

    def __exit__(self, *_: object) -> None:
        self._patch.undo()


def tuned_stick(truth: StickTruth, **wish: Any) -> Outcome:
    """Tune a stick along x and return what became of it."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "run"
        with stepped(truth) as (device, clock, _):

            def make(more: Mapping[str, Any], _: Clock) -> HiddenStick:
                return device

            mover = Mover(make, live=False, rate=truth.rate, device={"name": "hidden"}, clock_of=lambda moved: clock)
            found = tune(mover, Autotune(axes="x", **wish), folder)
        rows = Recording(folder).rows
    boundary = found.axes[0].boundary
    ratio = math.nan
    if boundary is not None and boundary.stiffness is not None:
        ratio = boundary.stiffness / truth.boundary(boundary.damping, boundary.expected)
    return Outcome(truth, found, float(np.abs(rows["position"]).max()), len(rows) / truth.rate, ratio)
