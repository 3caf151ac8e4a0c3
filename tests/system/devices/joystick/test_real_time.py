"""Model C on emulated sticks by the wall's clock, with the threads of the driver: it slides, how fast, and it holds.

How soon a thread has its turn the machine decides; so the bounds are wide. That it slides and holds without a wall's
clock is in test_closed_loop.py.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from devices.emulated.joystick import EmulatedPidJoystick
from devices.emulators.pid import emulated_stick
from devices.joystick.device import PidJoystick
from haptics import Coulomb, MasslessImpedance, Servo
from haptics.clock import WallClock
from haptics.trace import Trace
from tests.devices.joystick.test_closed_loop import (
    FADED_OUT,
    FRAME,
    TO_A_PLACE,
    advised,
    data_sheet,
    drift,
    swing,
)
from tests.system.parallel.devices.joystick.test_closed_loop import vector_rate

pytestmark = [pytest.mark.wall_clock, pytest.mark.usefixtures("compiled")]

CASES = [("sidewinder-ff2", 4.0), ("openffboard", 2.0)]
"""Stick and friction force [N]."""


class Watched:
    """The device, what its handle really does, and how many magnitudes it has got."""

    def __init__(self, device: PidJoystick) -> None:
        self._device = device
        self.stick = device.backend.sticks[0]
        self.rows: list[tuple[float, ...]] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._device, name)

    def write(self, command: np.ndarray) -> None:
        self._device.write(command)
        self.rows.append((*command, *self.stick.force, *self.stick.handle))

    def vectors_per_second(self) -> float:
        """Return how often both magnitudes were renewed in a second, in the frames in which they kept changing."""
        frames = [frame for frame, kind, _ in self.stick.firmware.log if kind == "constant"]
        steady = [later - earlier for earlier, later in zip(frames, frames[2:], strict=False) if later - earlier < 50]
        return 1.0 / (FRAME * float(np.mean(steady)))


def render(profile: str, hand: dict[str, Any], force: float, seconds: float, folder: Path) -> Watched:
    found = advised(profile, force)
    clock = WallClock(FRAME)
    backend = emulated_stick(profile, hand=hand)
    watched = Watched(EmulatedPidJoystick({"emulated": True, "emulator": profile}, clock=clock, backend=backend))
    element = MasslessImpedance(Coulomb(force), found.stiffness, found.damping, FRAME)
    Servo(watched, element, Trace.create(folder, capacity=16384), clock=clock).run(seconds)  # type: ignore[arg-type]
    return watched


@pytest.mark.parametrize(("profile", "force"), CASES)
def test_it_slides_with_its_force_as_fast_as_the_bus_allows_and_then_holds(
    profile: str, force: float, tmp_path: Path
) -> None:
    found, spec = advised(profile, force), data_sheet(profile)
    watched = render(profile, TO_A_PLACE, force, 1.8, tmp_path / "trace")
    rows = np.array(watched.rows[:-FADED_OUT])
    full = np.abs(np.hypot(rows[:, 0], rows[:, 1]) - force) < 1e-9
    settled = full.copy()
    for ago in range(1, 1 + 3 * round(spec.delay / FRAME)):  # threads take their time, too
        settled[ago:] &= full[:-ago]
    assert settled.sum() > 50
    assert np.hypot(rows[settled, 2], rows[settled, 3]).mean() == pytest.approx(force, rel=0.01)
    assert 0.5 * vector_rate(profile) < watched.vectors_per_second() < 1.05 * vector_rate(profile)
    held = rows[-500:]
    assert 0.1 * force < np.hypot(held[:, 0], held[:, 1]).max() < force
    assert swing(held) <= 2.0 * found.count_jump
    assert drift(held) < spec.position_resolution
