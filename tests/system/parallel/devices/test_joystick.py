"""The joystick in step with its bus: friction compensation, and pushes that friction holds."""

import math

import numpy as np
import pytest

from calibration.friction import FitSettings
from calibration.identification import IdentificationOptions, identify
from calibration.motions.excitation import Excitation, HandleExcitation
from calibration.motions.procedure import Mover
from calibration.parameters import ParameterFile, Provenance, write_parameter_file
from devices.emulated.joystick import EmulatedPidJoystick
from devices.emulators.pid.profiles import PROFILES
from devices.emulators.pid.stick import emulated_stick
from haptics import Coulomb, MasslessImpedance
from tests.devices.felt import FRICTION, ToAndFro, feel
from tests.devices.joystick.doubles import STILL
from tests.devices.joystick.in_step import FRAME, BusClock, put_in_step
from tests.devices.joystick.test_closed_loop import CASES, advised, data_sheet, drift, loop, swing  # noqa: F401
from tests.processes import ROOT

pytestmark = pytest.mark.usefixtures("compiled_stick")


# --- friction compensation -------------------------------------------------------------------------------------------

SHORT = Excitation(speeds=6, rounds=2, strokes=1, stroke_time=0.5)


WISHES = IdentificationOptions("stribeck-asymmetric", "auto", settings=FitSettings(fit_inertia=True))


class Stepped:
    """The device; every read advances the bus by a frame."""

    def __init__(self, device, clock):
        self._device = device
        self.clock = clock

    def __getattr__(self, name):
        return getattr(self._device, name)

    @property
    def plant(self):
        return self._device.backend.units[0].plant.joystick

    def read(self):
        self._device._opened().step()
        return self._device.read()


class Ticking(Stepped):
    """The same; every read advances the clock by a tick."""

    def read(self):
        self.clock.wait(self.clock.tick + 1)
        return super().read()


@pytest.fixture
def make(monkeypatch):
    """Return a stick that has friction, in step with its bus."""

    def made(hand, cls=Stepped, **settings):
        backend = emulated_stick("openffboard", hand=hand, period=0.0, friction=FRICTION)
        bus = backend.units[0].time
        put_in_step(bus, monkeypatch)
        clock = BusClock(FRAME, bus)
        return cls(EmulatedPidJoystick({"emulated": True, **settings}, clock=clock, backend=backend), clock)

    return made


def test_compensated_stick_feels_light_and_renders_one_newton(make, tmp_path):
    device = make(STILL)
    mover = Mover(lambda more, clock: device, live=False, rate=1.0 / FRAME, clock_of=lambda moved: device.clock)
    measured = HandleExcitation(SHORT).run(mover, tmp_path / "run")
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


def felt(device, hand, element):
    device.open()
    device.compensate(1.0)
    device.clock.start()
    found = feel(device, device.plant, hand, 4000, element)
    device.close()
    return found


# --- friction that holds ---------------------------------------------------------------------------------------------

# Friction forces of the table in docs/joystick_driver.md [N].
DOCUMENTED_FORCES = (1.0, 2.0, 4.0)


def vector_rate(profile):
    """Return the largest rate of forces [1/s]; each takes a report per dimension."""
    return 1.0 / (data_sheet(profile).dimensions * float(PROFILES[profile].truths()["device"]["out_interval_s"]))


@pytest.mark.parametrize(("profile", "force"), CASES)
def test_push_below_friction_is_held(profile, force, loop):
    found = advised(profile, force)
    hand = {"name": "scripted-force", "script": [[0.0, 0.0, 0.0], [0.2, 0.0, 0.0], [0.4, 0.4 * force, 0.3 * force]]}
    rows = loop(profile, hand, force, found.stiffness, found.damping, 4.0)
    held = rows[-1500:]
    resolution = data_sheet(profile).position_resolution
    assert drift(held) < 0.5 * resolution
    assert swing(held) <= 2.0 * found.count_jump, "a count up or a count down"
    place = np.hypot(*held[:, 4:].mean(axis=0))
    load = force * math.hypot(*(0.4, 0.3)[: data_sheet(profile).dimensions])
    assert place == pytest.approx(load / found.stiffness, rel=0.02, abs=resolution), "the coupling gives way"


def test_documented_advice_is_that_of_the_data_sheets():
    page = (ROOT / "docs/joystick_driver.md").read_text(encoding="utf-8")
    rows = [line.strip("|").split("|") for line in page.splitlines() if line.startswith("| `")]
    rows = [row for row in rows if row[0].split("`")[1] in PROFILES]
    for stick, rate, delay, step, *advice in rows:
        profile = stick.split("`")[1]
        spec = data_sheet(profile)
        assert float(rate) == pytest.approx(vector_rate(profile))
        assert float(delay.split()[0]) == pytest.approx(1e3 * spec.delay)
        assert float(step.split()[0]) == pytest.approx(1e6 * spec.position_resolution, rel=0.02)
        assert f"{spec.mass:g} kg, {spec.damping:g} N s/m" in stick
        assert len(advice) == len(DOCUMENTED_FORCES)
        for force, words in zip(DOCUMENTED_FORCES, advice, strict=True):
            stiffness, damping = (float(part.split()[0]) for part in words.split(","))
            found = advised(profile, force)
            assert stiffness == pytest.approx(found.stiffness, rel=0.05), "two digits"
            assert damping == pytest.approx(found.damping, rel=0.05)
    assert len(rows) == len(PROFILES)
