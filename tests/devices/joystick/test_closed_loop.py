"""Model C through the whole driver, in step with the bus: it holds, slides with its force, and does not swing.

A tick is a frame of the bus, in which a report travels each way if the endpoints allow. There are no threads, so that
nothing depends on how fast the machine is.
"""

import math
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from devices.emulators.pid import emulated_stick
from devices.emulators.pid.times import FreeTime
from devices.joystick import device as device_module
from devices.joystick import forces, streaming
from devices.joystick.device import PidJoystick
from devices.joystick.streaming import Streaming
from haptics import Coulomb, MasslessImpedance, Servo
from haptics.clock import Clock
from haptics.design import Handle, Severity, Suggestion, advise, suggest
from haptics.device import DeviceSpec, State
from haptics.trace import Trace

FRAME = 1e-3

FADED_OUT = 20
"""Ticks in the end in which the force is taken back, and a few more."""

pytestmark = pytest.mark.usefixtures("compiled")


class BusClock(Clock):
    """Goes by with the frames of the bus, a tick in the midst of each; nobody waits for them."""

    def __init__(self, period: float, bus: FreeTime) -> None:
        super().__init__(period)
        self._bus = bus
        self.start()

    def start(self) -> None:
        super().start()
        self._origin = (math.floor(self._bus.now() / FRAME) + 1.4) * FRAME
        self._bus.wait_until(self._origin)

    def elapsed(self) -> float:
        return self._bus.now() - self._origin

    def wait(self, tick: int) -> float:
        self._bus.wait_until(self._origin + tick * self.period)
        self.tick = tick
        return max(self.elapsed() - self.time, 0.0)


class InStep(Streaming):
    """Streaming without threads: in a frame a report goes out, chosen when the last one had gone, and one comes in."""

    def start(self, patience: float) -> None:
        self._ask()
        self._frames = round(self._transport.link.out_interval / FRAME)
        self._begin()

    def stop(self) -> None:
        pass

    def step(self) -> None:
        now = streaming.time.perf_counter()
        if self._next is not None and math.floor(now / FRAME + 1.0) % self._frames == 0:
            self._transport.write(self._next)
            self._choose()
            streaming.time.go_back(now)  # to read in the same frame
        data = self._transport.read(FRAME)
        self.heard = streaming.time.perf_counter()
        if data is not None:
            self._take(data, self.heard, True)

    def _choose(self) -> None:
        try:
            self._next = self._reports.send(True)
        except StopIteration:
            self._begin()

    def _begin(self) -> None:
        self._reports = self._forces.reports()
        self._next = next(self._reports, None)

    def command(self, level_x: float, level_y: float) -> None:
        super().command(level_x, level_y)
        if self._next is None:
            self._begin()


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
        time = SimpleNamespace(perf_counter=bus.now, go_back=lambda instant: setattr(bus, "_now", instant))
        for module in (forces, streaming, device_module):
            monkeypatch.setattr(module, "time", time)
        monkeypatch.setattr(device_module, "Streaming", InStep)
        clock = BusClock(FRAME, bus)
        watched = Watched(PidJoystick({"emulated": True, "emulator": profile}, clock=clock, backend=backend))
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

CASES = [("sidewinder-ff2", 1.0), ("sidewinder-ff2", 4.0), ("openffboard", 2.0), ("arduino", 2.0)]
"""Stick and friction force [N]."""

DEFAULT = (6000.0, 10.0)
"""Stiffness and damping of a session that says nothing of them [N/m, N s/m]."""


def data_sheet(profile: str) -> DeviceSpec:
    return PidJoystick({"emulated": True, "emulator": profile}).spec


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


@pytest.mark.parametrize(("profile", "force"), CASES)
def test_a_hand_is_held_where_it_stopped_without_swinging_or_drift(profile: str, force: float, loop: Loop) -> None:
    found = advised(profile, force)
    held = loop(profile, TO_A_PLACE, force, found.stiffness, found.damping, 3.0)[-1500:]
    assert 0.1 * force < np.hypot(held[:, 0], held[:, 1]).max() < force, "it sticks, under load"
    assert swing(held) <= found.count_jump, "no more than what a count does"
    assert drift(held) < 0.5 * data_sheet(profile).position_resolution


@pytest.mark.parametrize(("profile", "force"), CASES)
def test_a_push_that_damps_nothing_is_held(profile: str, force: float, loop: Loop) -> None:
    found = advised(profile, force)
    hand = {"name": "scripted-force", "script": [[0.0, 0.0, 0.0], [0.2, 0.0, 0.0], [0.4, 0.4 * force, 0.3 * force]]}
    rows = loop(profile, hand, force, found.stiffness, found.damping, 4.0)
    held = rows[-1500:]
    resolution = data_sheet(profile).position_resolution
    assert drift(held) < 0.5 * resolution
    assert swing(held) <= 2.0 * found.count_jump, "a count up or a count down"
    place = np.hypot(*held[:, 4:].mean(axis=0))
    assert place == pytest.approx(0.5 * force / found.stiffness, rel=0.02, abs=resolution), "the coupling gives way"


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
