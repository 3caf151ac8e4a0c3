"""Model C through the whole driver, in step with the bus: it holds, slides with its force, and does not swing.

A tick is a frame of the bus."""

from dataclasses import replace

import numpy as np
import pytest

from devices import create_device
from devices.emulated.joystick import EmulatedPidJoystick
from devices.emulators.pid.stick import emulated_stick
from devices.joystick import trial
from devices.joystick.parameters import Force, build_parameters, format_parameters, write_parameters
from haptics import Coulomb, MasslessImpedance, Servo
from haptics.design import Handle, Severity, advise, suggest
from haptics.errors import ConfigurationError, DeviceOpenError
from haptics.files import parse_toml
from tests.devices.felt import FRICTION
from tests.devices.joystick.doubles import STILL
from tests.devices.joystick.in_step import FRAME, BusClock, put_in_step
from tests.sampling import sample

# Ticks in the end in which the force is taken back, and a few more.
FADED_OUT = 20


class Watched:
    """The device in step with the bus; records the true handle."""

    def __init__(self, device):
        self._device = device
        self.rows = []

    def __getattr__(self, name):
        return getattr(self._device, name)

    def read(self):
        self._device._opened().step()
        return self._device.read()

    def write(self, command):
        self._device.write(command)
        stick = self._device.backend.units[0]
        self.rows.append((*command, *stick.force, *stick.handle))


@pytest.fixture
def loop(trace, monkeypatch):
    """Render model C; return force commanded, force and place of the handle in every tick, (n, 6)."""

    def render(profile, hand, force, stiffness, damping, seconds):
        backend = emulated_stick(profile, hand=hand, period=0.0)
        bus = backend.units[0].time
        put_in_step(bus, monkeypatch)
        clock = BusClock(FRAME, bus)
        watched = Watched(EmulatedPidJoystick({"emulated": True, "emulator": profile}, clock=clock, backend=backend))
        element = MasslessImpedance(Coulomb(force), stiffness, damping, FRAME)
        Servo(watched, element, trace, clock=clock).run(seconds)
        return np.array(watched.rows[:-FADED_OUT])

    return render


# A hand with the usual grip that moves the handle once and then holds it loosely.
TO_A_PLACE = {"name": "minimum-jerk", "points": [[-0.02, -0.01], [0.02, 0.01]], "rests": ["b"]} | {
    "rest": 30.0,
    "rest_force": 0.0,
    "tremor": 0.0,
}

# Stick and friction force [N].
CASES = [
    ("sidewinder-ff2", 1.0),
    ("sidewinder-ff2", 4.0),
    ("openffboard", 2.0),
    ("arduino", 2.0),
    ("openffboard-wheel", 4.0),
]

# Stiffness and damping of a session that says nothing of them [N/m, N s/m].
DEFAULT = (6000.0, 10.0)


def data_sheet(profile):
    return EmulatedPidJoystick({"emulated": True, "emulator": profile}).spec


def advised(profile, force):
    handle = Handle.of(data_sheet(profile))
    assert handle is not None
    return suggest(handle, force, FRAME)


def swing(rows):
    """Return how much the force commanded changes, in the axis in which it does so more [N]."""
    return float(np.ptp(rows[:, :2], axis=0).max())


def drift(rows):
    """Return how far the middle of the handle's place moves from the first half to the second [m]."""
    first, second = (half[:, 4:].mean(axis=0) for half in np.array_split(rows, 2))
    return float(np.hypot(*(second - first)))


@pytest.mark.parametrize(("profile", "force"), sample(CASES, 1))
def test_model_c_holds_without_oscillation_or_drift(profile, force, loop):
    found = advised(profile, force)
    held = loop(profile, TO_A_PLACE, force, found.stiffness, found.damping, 3.0)[-1500:]
    assert 0.1 * force < np.hypot(held[:, 0], held[:, 1]).max() < force, "it sticks, under load"
    assert swing(held) <= found.count_jump, "no more than what a count does"
    assert drift(held) < 0.5 * data_sheet(profile).position_resolution


@pytest.mark.parametrize(("profile", "force"), CASES)
def test_model_c_slides_with_its_force(profile, force, loop):
    found = advised(profile, force)
    rows = loop(profile, {"name": "minimum-jerk"}, force, found.stiffness, found.damping, 3.0)
    steady = np.abs(np.hypot(rows[:, 0], rows[:, 1]) - force) < 1e-9
    full = steady.copy()
    for ago in range(1, 1 + round(data_sheet(profile).delay / FRAME)):  # until the command takes effect
        steady[ago:] &= full[:-ago]
    assert steady.sum() > 500
    assert np.hypot(rows[steady, 2], rows[steady, 3]).mean() == pytest.approx(force, rel=0.01)


@pytest.mark.parametrize(("profile", "force"), CASES)
def test_advice_warns_of_the_default_and_not_of_its_suggestion(profile, force):
    def bounds_exceeded(stiffness, damping):
        element = MasslessImpedance(Coulomb(force), stiffness, damping, FRAME)
        return {found.bound for found in advise(element, spec) if found.severity is Severity.WARNING}

    spec, found = data_sheet(profile), advised(profile, force)
    assert "stiffness" in bounds_exceeded(*DEFAULT)
    assert not bounds_exceeded(found.stiffness, found.damping)


def test_default_stiffness_oscillates(loop):
    held = loop("sidewinder-ff2", TO_A_PLACE, 2.0, *DEFAULT, 2.5)[-1000:]
    assert swing(held) > 2.0, "even in a hand that damps"


# --- trial of the firmware --------------------------------------------------------------------------------------------


PROFILES = ("openffboard", "sidewinder-ff2", "arduino", "openffboard-wheel")
# A firmware that no emulated stick has.
OTHER = 0x0113


@pytest.fixture
def opened(tmp_path, monkeypatch):
    """Open a stick with parameters that a test has changed; return the stick, which is closed again."""

    def open_it(profile, change, hand=STILL):
        backend = emulated_stick(profile, hand=hand, period=0.0)
        (stick,) = backend.units
        put_in_step(stick.time, monkeypatch, trial)
        file = tmp_path / "stick.toml"
        write_parameters(file, change(build_parameters(stick.truths)))
        settings = {"emulated": True, "emulator": profile, "parameters": str(file), "hand": hand}
        with EmulatedPidJoystick(settings, clock=BusClock(FRAME, stick.time), backend=backend):
            pass
        return stick

    return open_it


def of_other_firmware(known, **changes):
    return replace(known, device=replace(known.device, bcd_device=OTHER), **changes)


def pushed(stick):
    """Return the largest magnitude that was sent, in parts of full scale."""
    return max(abs(fields["magnitude"]) for fields in stick.received("constant")) / stick.profile.full_scale


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("changes", [{}, {"bcd_device": None}], ids=["same firmware", "firmware not named"])
def test_calibrated_firmware_needs_no_trial(profile, changes, opened):
    assert pushed(opened(profile, lambda known: replace(known, device=replace(known.device, **changes)))) == 0.0


@pytest.mark.parametrize("profile", PROFILES)
def test_other_firmware_with_the_same_force_passes_the_trial(profile, opened):
    stick = opened(profile, of_other_firmware)
    assert 0.01 < pushed(stick) < 0.25
    assert 1e-3 < np.hypot(*stick.handle) < 0.03
    assert not stick.force.any()


TURNS = {
    "x mirrored": ((-1.0, 0.0), (0.0, 1.0)),
    "y mirrored": ((1.0, 0.0), (0.0, -1.0)),
    "both mirrored": ((-1.0, 0.0), (0.0, -1.0)),
    "exchanged": ((0.0, 1.0), (1.0, 0.0)),
    "turned to the left": ((0.0, -1.0), (1.0, 0.0)),
    "turned to the right": ((0.0, 1.0), (-1.0, 0.0)),
    "exchanged and mirrored": ((0.0, -1.0), (-1.0, 0.0)),
}


def with_force(known, change, share):
    """Return parameters of another firmware with levels multiplied by a matrix, and a share of the largest force."""
    levels = np.array(known.force.newton_to_level) @ change
    force = Force(newton_to_level=tuple(map(tuple, levels.tolist())), max_force_n=share * known.force.max_force_n)
    return of_other_firmware(known, force=force)


@pytest.mark.parametrize(
    ("profile", "turn"), [*(("openffboard", turn) for turn in TURNS), ("openffboard-wheel", "x mirrored")]
)
def test_trial_detects_a_wrong_direction(profile, turn, opened):
    with pytest.raises(DeviceOpenError, match=r"bcdDevice 0x0113 then, 0x0100 now.* degrees off the direction"):
        opened(profile, lambda known: with_force(known, TURNS[turn], 0.7))


@pytest.mark.parametrize(("factor", "right"), [(0.2, False), (0.6, True), (1.6, True), (5.0, False)])
def test_trial_detects_a_wrong_force_scale(factor, right, opened):
    """The firmware is `factor` times as strong as its parameters say."""

    def stronger(known):
        return with_force(known, factor * np.eye(2), 1.0 / max(factor, 1.0))

    if right:
        opened("openffboard", stronger)
    else:
        with pytest.raises(DeviceOpenError, match=r"moved its handle .* mm, not about|did not move its handle"):
            opened("openffboard", stronger)


def test_trial_detects_a_held_handle(opened):
    held = {"name": "minimum-jerk", "points": [[0.0, 0.0], [0.0, 1e-4]], "stiffness": 2000.0, "tremor": 0.0}
    with pytest.raises(DeviceOpenError, match=r"did not move its handle .*Leave the handle alone"):
        opened("openffboard", of_other_firmware, held)


def test_firmware_number_is_validated():
    known = build_parameters(emulated_stick("openffboard", period=0.0).units[0].truths)
    text = format_parameters(known)
    assert "bcd_device = 0x0100" in text
    before = text.replace("bcd_device = 0x0100\n", "")
    assert build_parameters(parse_toml(before, "f"), "f").device.bcd_device is None
    with pytest.raises(ConfigurationError, match=r"device\.bcd_device = 65536: must be a number from 0 to 0xffff"):
        build_parameters(parse_toml(text.replace("0x0100", "0x10000"), "f"), "f")


def test_friction_file_of_another_stick_is_rejected(tmp_path):
    path = tmp_path / "other.toml"
    path.write_text("[provenance]\ndevice = 'pid-joystick emulated another (1209:ffb0)'\n[joint.x]\n")
    with pytest.raises(ConfigurationError, match="is of the device 'pid-joystick emulated another"):
        EmulatedPidJoystick({"emulated": True, "friction_parameters": str(path)})


def test_real_stick_rejects_emulated_friction():
    with pytest.raises(ConfigurationError, match="only an emulated stick"):
        create_device("pid-joystick", {"friction": FRICTION})
