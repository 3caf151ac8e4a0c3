"""Making up for a device's own friction: never more than allowed, nothing at rest, nothing where nothing may be."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import devices
from devices.common.compensation import Compensation, add_friction
from devices.common.friction import AxisFriction
from devices.common.friction_file import OwnFriction
from haptics import Clock, Coulomb, MasslessImpedance, Servo, Trace
from haptics.errors import ConfigurationError
from haptics.jit import kernel
from tests.devices.felt import FRICTION, ToAndFro, feel, write_own_friction

SHARE, PERIOD, RESOLUTION = 0.9, 1e-3, 10e-6
OWN = OwnFriction((AxisFriction(**FRICTION["x"]).laws, AxisFriction(**FRICTION["y"]).laws), 0.0)


@kernel
def add(records: Any, share: float, x: float, y: float, vx: float, vy: float) -> None:
    """Add friction to a command, as devices do."""
    add_friction(records[0], share, x, y, vx, vy)


class Motors:
    """Motors that add what friction takes; so much of it is let through as is allowed."""

    def __init__(self, share: float = SHARE, own: OwnFriction = OWN) -> None:
        made = Compensation(own, share, PERIOD, RESOLUTION)
        self.record, self.allowed = made.record.copy(), 1.0
        self.record["step"] = made.address

    def allow(self, share: float) -> None:
        self.allowed = share


def added(made: Motors, velocity: tuple[float, float], command: tuple[float, float] = (0.0, 0.0)) -> np.ndarray:
    add(made.record, made.allowed, *command, *velocity)
    force = made.record["force"][0]
    np.testing.assert_allclose(made.record["total"][0] - command, force, atol=1e-12)
    return np.array(force)


def sliding(made: Motors, velocity: tuple[float, float], command: tuple[float, float] = (0.0, 0.0)) -> np.ndarray:
    """Return what is added in a steady motion."""
    for _ in range(200):
        added(made, velocity, command)
    return added(made, velocity, command)


def own_force(velocity: tuple[float, float]) -> np.ndarray:
    """Return the friction itself, by axis."""
    return np.array(
        [
            np.sign(v) * float(np.abs(laws[0 if v > 0.0 else 1](np.array([[v, 0.0]])))[0, 0])
            for v, laws in zip(velocity, OWN.laws, strict=True)
        ]
    )


@pytest.mark.parametrize("velocity", [(0.05, 0.02), (-0.05, 0.1), (0.2, -0.03), (-0.1, -0.1)])
def test_in_steady_motion_the_share_of_the_friction_is_added(velocity: tuple[float, float]) -> None:
    np.testing.assert_allclose(sliding(Motors(), velocity), SHARE * own_force(velocity), rtol=1e-9)


@pytest.mark.parametrize("velocity", [(0.05, 0.04), (-0.05, -0.1)])
def test_where_the_command_brakes_nothing_more_is_left_than_it_says(velocity: tuple[float, float]) -> None:
    braking = tuple(-np.sign(velocity) * 1.0)
    np.testing.assert_allclose(sliding(Motors(), velocity, braking), own_force(velocity), rtol=1e-9)
    slightly = tuple(-np.sign(velocity) * 0.01)
    expected = SHARE * own_force(velocity) + 0.01 * np.sign(velocity)
    np.testing.assert_allclose(sliding(Motors(), velocity, slightly), expected, rtol=1e-9)
    driving = tuple(np.sign(velocity) * 1.0)
    np.testing.assert_allclose(sliding(Motors(), velocity, driving), SHARE * own_force(velocity), rtol=1e-9)


VELOCITIES = st.lists(st.tuples(st.floats(-0.3, 0.3), st.floats(-0.3, 0.3)), min_size=1, max_size=60)


@settings(max_examples=10)
@given(velocities=VELOCITIES, share=st.floats(0.0, 0.98), gain=st.floats(0.0, 1.0))
def test_it_is_never_more_than_the_share_of_the_largest_friction_of_that_speed(
    velocities: list[tuple[float, float]], share: float, gain: float
) -> None:
    made = Motors(share)
    made.allow(gain)
    most = [max(law.breakaway_force for law in laws) + 1e-12 for laws in OWN.laws]
    for velocity in velocities:
        force = added(made, velocity)
        assert (np.abs(force) <= gain * share * np.array(most)).all()


@settings(max_examples=10)
@given(velocities=VELOCITIES)
def test_against_a_handle_with_that_friction_it_gives_no_energy(velocities: list[tuple[float, float]]) -> None:
    """Where it drives, it is at most the share of the dry friction at some slower speed, that is of the static one."""
    made = Motors()
    for velocity in velocities:
        force = added(made, velocity)
        for axis, (f, v) in enumerate(zip(force, velocity, strict=True)):
            if f * v > 0.0:
                assert abs(f) <= SHARE * OWN.laws[axis][0 if v > 0.0 else 1].breakaway_force + 1e-12


def test_at_rest_it_fades_to_nothing() -> None:
    made = Motors()
    before = sliding(made, (0.05, -0.05))
    after = [added(made, (0.0, 0.0)).copy() for _ in range(3000)]
    assert (np.abs(np.array(after)) <= np.abs(before) + 0.7).all()
    np.testing.assert_allclose(after[-1], 0.0, atol=0.01)
    assert (np.diff(np.abs(after), axis=0) <= 1e-12).all()


def test_not_allowed_it_adds_nothing_and_forgets() -> None:
    made = Motors()
    sliding(made, (0.05, -0.05))
    made.allow(0.0)
    np.testing.assert_array_equal(added(made, (0.05, 0.05), (0.5, -0.2)), (0.0, 0.0))
    made.allow(1.0)
    np.testing.assert_array_equal(added(made, (0.0, 0.0)), (0.0, 0.0))


def test_a_steep_fall_is_flattened_until_the_force_is_unique() -> None:
    steep = AxisFriction(1.0, 1.0, 2.0, 2.0, 5e-4).laws
    made = Motors(own=OwnFriction((steep, steep), 0.0))
    np.testing.assert_allclose(sliding(made, (0.05, 0.05)), SHARE, rtol=1e-6)
    slow = [added(made, (v, 0.0))[0] for v in np.repeat(np.geomspace(5e-2, 1e-4, 40), 20)]
    assert (np.abs(np.diff(slow)) < 0.2).all()


# --- the virtual joystick ---------------------------------------------------------------------------------------------


@pytest.fixture
def own_file(tmp_path: Path) -> str:
    return write_own_friction(tmp_path / "own.toml")


def joystick(own_file: str, hand: Any, **changes: Any) -> Any:
    own = {"friction_parameters": own_file} if own_file else {}
    device = devices.open_device("virtual-joystick", {"friction": FRICTION, "hand": hand, **own, **changes})
    device.compensate(1.0)  # type: ignore[attr-defined]
    return device


def test_a_hand_that_stops_or_lets_go_leaves_a_handle_that_rests_exactly(own_file: str) -> None:
    for end in (0.35, np.inf):
        device = joystick(own_file, ToAndFro(speed=0.1, lets_go_at=end), compensation=0.98)
        velocities = []
        for tick in range(2500):
            state = device.read()
            device.write(np.zeros(2))
            if tick == 600 and end == np.inf:
                device.hand._settings = ToAndFro(speed=1e-12)  # holds where it began
            velocities.append((*device.handle_velocity, *state.velocity))
        assert np.abs(velocities[:300]).max() > 0.05
        assert not np.array(velocities)[-1000:, :2].any()


def test_the_spec_says_what_is_left(own_file: str) -> None:
    device = joystick(own_file, ToAndFro(), compensation=0.8)
    assert device.spec.least_friction == pytest.approx(0.2 * 1.8)
    assert device.spec.damping == 0.0
    assert joystick("", ToAndFro()).spec.least_friction is None


@pytest.mark.parametrize("share", [-0.1, 1.0])
def test_all_of_it_or_less_than_nothing_cannot_be_made_up_for(own_file: str, share: float) -> None:
    with pytest.raises(ConfigurationError, match=r"device\.compensation"):
        joystick(own_file, ToAndFro(), compensation=share)


def test_less_is_felt_as_much_as_the_setting_says(own_file: str) -> None:
    hand = ToAndFro(axis=1)
    own, left = (feel(device, device, hand, 6000) for device in (joystick("", hand), joystick(own_file, hand)))
    assert left.work == pytest.approx((1.0 - SHARE) * own.work, rel=0.05)


# --- with the servo ---------------------------------------------------------------------------------------------------


class Heard:
    """A joystick that notes what the servo allows before each command."""

    def __init__(self, device: Any) -> None:
        self._device = device
        self.allowed: list[float] = []
        self._share = 0.0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._device, name)

    def compensate(self, share: float) -> None:
        self._share = share
        self._device.compensate(share)

    def write(self, command: Any) -> None:
        self.allowed.append(self._share)
        self._device.write(command)


def run(trace: Trace, own_file: str, seconds: float, **changes: Any) -> tuple[Heard, np.ndarray]:
    clock = Clock(PERIOD)
    settings = {"friction": FRICTION, "hand": ToAndFro(), "friction_parameters": own_file, **changes}
    device = Heard(devices.create_device("virtual-joystick", settings, clock=clock))
    Servo(device, MasslessImpedance(Coulomb(0.5), 3000.0, 10.0), trace, clock=clock).run(seconds)
    return device, trace.since(0)


def test_the_servo_allows_as_much_as_its_envelope_lets_through(tmp_path: Path, own_file: str) -> None:
    device, rows = run(Trace.create(tmp_path / "trace"), own_file, 1.0)
    allowed = np.array(device.allowed)
    assert allowed[0] < 0.02  # fades in
    assert (np.diff(allowed[:100]) >= 0.0).all()
    assert (allowed[150:900] == 1.0).all()
    assert (allowed[len(rows) :] == 0.0).all()  # the safe output
    assert allowed[len(rows) - 1] == 0.0


def test_the_recorded_command_is_the_element_s_own(tmp_path: Path, own_file: str) -> None:
    _, rows = run(Trace.create(tmp_path / "trace"), own_file, 1.0)
    sliding = (rows["sticking"] == 0) & (rows["tick"] > 200) & (rows["tick"] < 950)
    np.testing.assert_allclose(np.hypot(*rows["command"][sliding].T), 0.5, rtol=1e-9)
