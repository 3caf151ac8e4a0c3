"""Long computations for the topic of tests/devices/joystick/test_own_friction.py."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from calibration.friction import FitSettings
from calibration.identification import Wishes, identify
from calibration.motions.axis_recordings import recorded_axes
from calibration.motions.excitation import Excitation
from calibration.motions.handle_motion import excite
from calibration.motions.mover import Mover
from calibration.parameters.files import write_parameter_file
from calibration.parameters.parameters import ParameterFile, Provenance
from devices.emulated.joystick import EmulatedPidJoystick
from devices.emulators.pid import emulated_stick
from devices.emulators.pid.plant import StickPlant
from devices.joystick.device import PidJoystick
from haptics import Coulomb, MasslessImpedance
from haptics.device import State
from tests.devices.felt import FRICTION, ToAndFro, feel
from tests.devices.joystick.conftest import compiled  # noqa: F401
from tests.devices.joystick.doubles import STILL
from tests.devices.joystick.in_step import FRAME, BusClock, put_in_step

pytestmark = pytest.mark.usefixtures("compiled")


SHORT = Excitation(speeds=6, rounds=2, strokes=1, stroke_time=0.5)


WISHES = Wishes("stribeck-asymmetric", "auto", settings=FitSettings(fit_inertia=True))


class Stepped:
    """The device; each time it is read, a frame goes by."""

    def __init__(self, device: PidJoystick, clock: BusClock) -> None:
        self._device = device
        self.clock = clock

    def __getattr__(self, name: str) -> Any:
        return getattr(self._device, name)

    @property
    def plant(self) -> StickPlant:
        return self._device.backend.sticks[0].plant  # type: ignore[no-any-return]

    def read(self) -> State:
        self._device._opened().step()  # type: ignore[attr-defined]
        return self._device.read()


class Ticking(Stepped):
    """The same, going on by a tick with every reading."""

    def read(self) -> State:
        self.clock.wait(self.clock.tick + 1)
        return super().read()


Make = Callable[..., Any]


@pytest.fixture
def make(monkeypatch: pytest.MonkeyPatch) -> Make:
    """Return a stick with friction of its own, in step with its bus."""

    def made(hand: Any, cls: type[Stepped] = Stepped, **settings: Any) -> Stepped:
        backend = emulated_stick("openffboard", hand=hand, period=0.0, friction=FRICTION)
        bus: Any = backend.sticks[0].time
        put_in_step(bus, monkeypatch)
        clock = BusClock(FRAME, bus)
        return cls(EmulatedPidJoystick({"emulated": True, **settings}, clock=clock, backend=backend), clock)

    return made


def test_what_is_left_of_its_friction_is_little_and_one_newton_is_one(make: Make, tmp_path: Path) -> None:
    device: Any = make(STILL)
    mover = Mover(lambda more, clock: device, live=False, rate=1.0 / FRAME, clock_of=lambda moved: device.clock)
    measured = recorded_axes(excite(mover, SHORT, tmp_path / "run"))
    found = tuple(identify(rounds, WISHES).parameters() for rounds in measured.values())
    own_file = tmp_path / "own.toml"
    write_parameter_file(own_file, ParameterFile(Provenance(device=measured["x"][0].source.device), found))
    for axis in range(2):
        hand = ToAndFro(axis, reach=0.02)
        one = MasslessImpedance(Coulomb(1.0), 1000.0, 2.0, FRAME)
        own, left, rendered = (
            felt(make(hand, Ticking, friction_parameters=file), hand, element)
            for file, element in (("", None), (str(own_file), None), (str(own_file), one))
        )
        assert left.work < 0.2 * own.work
        assert rendered.forward == pytest.approx(1.0, rel=0.05)
        assert rendered.backward == pytest.approx(1.0, rel=0.05)


def felt(device: Any, hand: ToAndFro, element: Any) -> Any:
    device.open()
    device.compensate(1.0)
    device.clock.start()
    found = feel(device, device.plant, hand, 4000, element)
    device.close()
    return found
