"""Felt on an emulated stick, whose truth is known: 3 ms late, with friction of its own that is compensated in part."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from apps.experiment.stimulus.felt import Felt, felt
from apps.experiment.stimulus.ground import Ground
from apps.experiment.stimulus.own import Residual
from devices.common.friction_file import read_own_friction
from devices.emulated.joystick import EmulatedPidJoystick
from devices.emulators.pid import emulated_stick
from haptics import Coulomb, MasslessImpedance
from haptics.device import DeviceSpec
from haptics.records import NEUTRAL, Rows
from tests.devices.felt import FRICTION, ToAndFro, write_own_friction
from tests.devices.joystick.in_step import FRAME, BusClock, put_in_step

TICKS, SHARE = 1600, 0.7
MUCH, LITTLE = 1.0, 0.2
"""Frictions that are rendered [N]: more, and less, than compensation leaves of the stick's own 1.2 N."""


@dataclass(frozen=True)
class Stroked:
    """What a hand met that went to and fro under a friction of `level` [N]."""

    level: float
    rows: Rows
    spec: DeviceSpec
    own: Residual

    def felt(self, rows: Rows, spec: DeviceSpec, own: Residual | None) -> Felt:
        ground, more = Ground(Coulomb(self.level)), Ground(Coulomb(1.001 * self.level))
        return felt(rows, ground, more, 1e-3 * self.level, self.level, spec, own)

    @property
    def truth(self) -> Felt:
        return self.felt(self.rows, self.spec, None)

    def by_model(self, own: Residual) -> Felt:
        hidden = self.rows.copy()
        hidden["hand_force"] = np.nan
        return self.felt(hidden, self.spec, own)


@pytest.fixture(scope="module", params=(MUCH, LITTLE))
def stroked(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Stroked:
    file = Path(write_own_friction(tmp_path_factory.mktemp("stick") / "own.toml"))
    file.write_text(file.read_text().replace("device = 'virtual-joystick'", ""))
    own = Residual(read_own_friction(str(file), "pid-joystick"), SHARE)
    with pytest.MonkeyPatch.context() as patch:
        rows, spec = stroke(file, request.param, patch)
    return Stroked(request.param, rows, spec, own)


def stroke(file: Path, level: float, patch: pytest.MonkeyPatch) -> tuple[Rows, DeviceSpec]:
    hand = ToAndFro(0, speed=0.08, reach=0.02)
    backend = emulated_stick("openffboard", hand=hand, period=0.0, friction=FRICTION)
    put_in_step(backend.sticks[0].time, patch)  # type: ignore[arg-type]
    clock = BusClock(FRAME, backend.sticks[0].time)  # type: ignore[arg-type]
    settings = {"emulated": True, "friction_parameters": str(file), "compensation": SHARE}
    device: Any = EmulatedPidJoystick(settings, clock=clock, backend=backend)
    element, rows = MasslessImpedance(Coulomb(level), 2000.0, 2.0, FRAME), np.repeat(NEUTRAL, TICKS)
    device.open()
    device.compensate(1.0)
    clock.start()
    plant = backend.sticks[0].plant
    for number, row in enumerate(rows):
        clock.wait(clock.tick + 1)
        device._opened().step()
        state = device.read()
        command = -element.step(state.velocity)
        device.write(command)
        row["time"], row["position"], row["velocity"] = FRAME * number, state.position, state.velocity
        row["command"], row["hand_force"], row["sticking"] = command, plant.hand_force, abs(command[0]) < 0.99 * level
    device.close()
    return rows[400:], device.spec


def test_what_is_felt_by_the_model_is_what_the_hand_really_felt(stroked: Stroked) -> None:
    true, found = stroked.truth, stroked.by_model(stroked.own)
    assert (true.source, found.source) == ("truth", "model")
    assert found.value == pytest.approx(true.value, rel=0.03)


def test_the_commands_alone_are_another_thing(stroked: Stroked) -> None:
    nothing_left = stroked.by_model(replace(stroked.own, share=1.0)).value
    assert nothing_left == pytest.approx(stroked.level, rel=0.02)
    if stroked.level == LITTLE:
        assert stroked.truth.value > 1.5 * nothing_left, "the rest of the stick's own friction is felt, too"
