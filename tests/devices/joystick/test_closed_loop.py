"""Model C through the whole driver, in step with the bus: it holds, slides with its force, and does not swing.

A tick is a frame of the bus.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from devices.emulated.joystick import EmulatedPidJoystick
from devices.emulators.pid import emulated_stick
from devices.joystick.device import PidJoystick
from haptics import Coulomb, MasslessImpedance, Servo
from haptics.design import Handle, Severity, Suggestion, advise, suggest
from haptics.device import DeviceSpec, State
from haptics.trace import Trace
from tests.devices.joystick.in_step import FRAME, BusClock, put_in_step
from tests.sampling import sample

FADED_OUT = 20
"""Ticks in the end in which the force is taken back, and a few more."""

pytestmark = pytest.mark.usefixtures("compiled")


class Watched:
    """The device in step with the bus, and what its handle really does."""

    def __init__(self, device: PidJoystick) -> None:
        self._device = device
        self.rows: list[tuple[float, ...]] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._device, name)

    def read(self) -> State:
        self._device._opened().step()  # type: ignore[attr-defined]
        return self._device.read()

    def write(self, command: np.ndarray) -> None:
        self._device.write(command)
        stick = self._device.backend.sticks[0]
        self.rows.append((*command, *stick.force, *stick.handle))


Loop = Callable[..., np.ndarray]


@pytest.fixture
def loop(trace: Trace, monkeypatch: pytest.MonkeyPatch) -> Loop:
    """Render model C; return force commanded, force and place of the handle in every tick, (n, 6)."""

    def render(
        profile: str, hand: dict[str, Any], force: float, stiffness: float, damping: float, seconds: float
    ) -> np.ndarray:
        backend = emulated_stick(profile, hand=hand, period=0.0)
        bus = backend.sticks[0].time
        put_in_step(bus, monkeypatch)
        clock = BusClock(FRAME, bus)
        watched = Watched(EmulatedPidJoystick({"emulated": True, "emulator": profile}, clock=clock, backend=backend))
        element = MasslessImpedance(Coulomb(force), stiffness, damping, FRAME)
        Servo(watched, element, trace, clock=clock).run(seconds)  # type: ignore[arg-type]
        return np.array(watched.rows[:-FADED_OUT])

    return render


TO_A_PLACE = {"name": "minimum-jerk", "points": [[-0.02, -0.01], [0.02, 0.01]], "rests": ["b"]} | {
    "rest": 30.0,
    "rest_force": 0.0,
    "tremor": 0.0,
}
"""A hand with the usual grip that moves the handle once and then holds it loosely."""

CASES = [
    ("sidewinder-ff2", 1.0),
    ("sidewinder-ff2", 4.0),
    ("openffboard", 2.0),
    ("arduino", 2.0),
    ("openffboard-wheel", 4.0),
]
"""Stick and friction force [N]."""

DEFAULT = (6000.0, 10.0)
"""Stiffness and damping of a session that says nothing of them [N/m, N s/m]."""


def data_sheet(profile: str) -> DeviceSpec:
    return EmulatedPidJoystick({"emulated": True, "emulator": profile}).spec


def advised(profile: str, force: float) -> Suggestion:
    handle = Handle.of(data_sheet(profile))
    assert handle is not None
    return suggest(handle, force, FRAME)


def swing(rows: np.ndarray) -> float:
    """Return how much the force commanded changes, in the axis in which it does so more [N]."""
    return float(np.ptp(rows[:, :2], axis=0).max())


def drift(rows: np.ndarray) -> float:
    """Return how far the middle of the handle's place moves from the first half to the second [m]."""
    first, second = (half[:, 4:].mean(axis=0) for half in np.array_split(rows, 2))
    return float(np.hypot(*(second - first)))


@pytest.mark.parametrize(("profile", "force"), sample(CASES, 1))
def test_a_hand_is_held_where_it_stopped_without_swinging_or_drift(profile: str, force: float, loop: Loop) -> None:
    found = advised(profile, force)
    held = loop(profile, TO_A_PLACE, force, found.stiffness, found.damping, 3.0)[-1500:]
    assert 0.1 * force < np.hypot(held[:, 0], held[:, 1]).max() < force, "it sticks, under load"
    assert swing(held) <= found.count_jump, "no more than what a count does"
    assert drift(held) < 0.5 * data_sheet(profile).position_resolution


@pytest.mark.parametrize(("profile", "force"), CASES)
def test_it_slides_with_its_force_at_the_handle(profile: str, force: float, loop: Loop) -> None:
    found = advised(profile, force)
    rows = loop(profile, {"name": "minimum-jerk"}, force, found.stiffness, found.damping, 3.0)
    steady = np.abs(np.hypot(rows[:, 0], rows[:, 1]) - force) < 1e-9
    full = steady.copy()
    for ago in range(1, 1 + round(data_sheet(profile).delay / FRAME)):  # until what was commanded is there
        steady[ago:] &= full[:-ago]
    assert steady.sum() > 500
    assert np.hypot(rows[steady, 2], rows[steady, 3]).mean() == pytest.approx(force, rel=0.01)


@pytest.mark.parametrize(("profile", "force"), CASES)
def test_advice_warns_of_the_default_and_not_of_what_it_suggests(profile: str, force: float) -> None:
    def bounds_exceeded(stiffness: float, damping: float) -> set[str]:
        element = MasslessImpedance(Coulomb(force), stiffness, damping, FRAME)
        return {found.bound for found in advise(element, spec) if found.severity is Severity.WARNING}

    spec, found = data_sheet(profile), advised(profile, force)
    assert "stiffness" in bounds_exceeded(*DEFAULT)
    assert not bounds_exceeded(found.stiffness, found.damping)


def test_that_warning_is_deserved(loop: Loop) -> None:
    held = loop("sidewinder-ff2", TO_A_PLACE, 2.0, *DEFAULT, 2.5)[-1000:]
    assert swing(held) > 2.0, "even in a hand that damps"
