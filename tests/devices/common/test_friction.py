"""Friction of a device's own: levels, compensation and the file of a calibration."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import devices
from calibration.friction import MODELS
from calibration.friction.model import HARMONICS
from calibration.parameters import Found, JointParameters, ParameterFile, Provenance, write_parameter_file
from devices.common.compensation import Compensation, add_friction
from devices.common.friction import (
    AxisFriction,
    HandleFriction,
    axis_friction,
    law_kinds,
    read_joint_friction,
    read_own_friction,
)
from haptics import Coulomb, MasslessImpedance, Servo, Trace
from haptics.clock import Clock
from haptics.errors import ConfigurationError
from haptics.jit import kernel
from tests.devices.felt import FRICTION, ToAndFro, feel, write_own_friction

PUSHING = {"name": "scripted-force"}


_solution = axis_friction(law_kinds((AxisFriction().laws, AxisFriction().laws)))


@kernel
def solved(law, x, Z):
    return _solution(law[0], x, Z)


@settings(max_examples=15)
@given(
    coulomb=st.floats(0.0, 5.0),
    more=st.floats(0.0, 2.0),
    speed=st.floats(1e-2, 1.0),
    x=st.floats(-2.0, 2.0),
    mobility=st.floats(1e-5, 4e-3),
)
def test_axis_friction_solves_its_law_implicitly(coulomb, more, speed, x, mobility):
    law, _ = AxisFriction(coulomb, coulomb, coulomb + more, coulomb + more, speed).laws
    f, v = solved(law.record, x, mobility)
    assert v == pytest.approx(x - mobility * f, abs=1e-12)
    assert f * v >= 0.0
    if v == 0.0:
        assert abs(f) <= law.breakaway_force * (1.0 + 1e-12)
    else:
        assert abs(f) == pytest.approx(float(np.abs(law(np.array([[v, 0.0]])))[0, 0]), rel=1e-9)


@pytest.mark.parametrize(
    ("table", "complaint"),
    [
        ({"z": {}}, "unknown axis 'device.friction.z'"),
        ({"x": 1.0}, "device.friction.x = 1.0: must be a table"),
        ({"x": {"coulomb_forward": -1.0}}, "device.friction.x.coulomb_forward = -1.0"),
        ({"x": {"coulomb": 1.0}}, "unknown setting 'device.friction.x.coulomb'"),
        ("sticky", "device.friction = 'sticky': must be a table"),
        ({"x": {"static_forward": 5.0, "stribeck_velocity": 1e-4}}, r"smaller device\.substep"),
    ],
)
def test_invalid_friction_settings_are_rejected(table, complaint):
    with pytest.raises(ConfigurationError, match=complaint):
        devices.create_device("virtual-joystick", {"friction": table})


# --- the virtual joystick ---------------------------------------------------------------------------------------------


def moved(script, ticks, **changes):
    """Return place and velocity of the handle in every tick, (n, 2), under a hand that pushes by a script."""
    device = devices.open_device("virtual-joystick", {"hand": PUSHING | {"script": script}, **changes})
    rows = []
    for _ in range(ticks):
        device.read()
        device.write(np.zeros(2))
        rows.append((device.handle, device.handle_velocity))
    return np.array(rows).transpose(1, 0, 2)


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("side", [1.0, -1.0])
def test_handle_breaks_away_at_the_static_level(axis, side):
    levels = FRICTION["xy"[axis]]
    static = levels["static_forward" if side > 0.0 else "static_backward"]
    ramp = [0.0, 0.0, 0.0], [1.0, *(side * 2.0 * static * np.eye(2)[axis])]
    places, velocities = moved([list(map(float, row)) for row in ramp], 520, friction=FRICTION)
    assert not places[:490].any()
    assert not velocities[:490].any()
    assert side * velocities[519, axis] > 0.0
    assert not velocities[:, 1 - axis].any()


@pytest.mark.parametrize("side", [1.0, -1.0])
def test_sliding_handle_is_decelerated_by_the_law(side):
    """Power balance: the work of the hand minus the kinetic energy is the loss by friction; then the handle rests."""
    mass, force = 0.5, 3.0
    script = [[0.0, side * force, 0.0], [0.2, side * force, 0.0], [0.2001, 0.0, 0.0]]
    places, velocities = moved(script, 1500, friction=FRICTION, mass=mass, damping=0.0)
    coulomb = FRICTION["x"]["coulomb_forward" if side > 0.0 else "coulomb_backward"]
    acceleration = (velocities[180, 0] - velocities[130, 0]) / 0.05
    assert side * acceleration == pytest.approx((force - coulomb) / mass, rel=1e-3)
    assert not velocities[-200:].any()
    assert (places[-200:] == places[-1]).all()


def test_zero_friction_changes_nothing():
    script = [[0.0, 0.3, 0.1], [0.3, -0.4, 0.2], [0.6, 0.1, -0.3]]
    np.testing.assert_array_equal(moved(script, 600), moved(script, 600, friction={"x": {}, "y": {}}))


def test_motion_is_independent_of_the_tick_period():
    def end(period):
        clock = Clock(period)
        hand = PUSHING | {"script": [[0.0, 2.5, 1.5]]}
        device = devices.open_device("virtual-joystick", {"hand": hand, "friction": FRICTION}, clock=clock)
        for tick in range(round(0.1 / period) + 1):
            clock.wait(tick)
            device.read()
        return device.handle

    np.testing.assert_array_equal(end(1e-3), end(2e-3))


# --- compensation -----------------------------------------------------------------------------------------------------


SHARE, PERIOD, RESOLUTION = 0.9, 1e-3, 10e-6
OWN = HandleFriction((AxisFriction(**FRICTION["x"]).laws, AxisFriction(**FRICTION["y"]).laws), 0.0)


@kernel
def add(records, share, x, y, vx, vy):
    """Add friction to a command, as devices do."""
    add_friction(records[0], share, x, y, vx, vy)


class Motors:
    """Compensation whose force is scaled by the allowed share."""

    def __init__(self, share=SHARE, own=OWN):
        made = Compensation(own, share, PERIOD, RESOLUTION)
        self.record, self.allowed = made.record.copy(), 1.0
        self.record["step"] = made.address

    def allow(self, share):
        self.allowed = share


def added(made, velocity, command=(0.0, 0.0)):
    add(made.record, made.allowed, *command, *velocity)
    force = made.record["force"][0]
    np.testing.assert_allclose(made.record["total"][0] - command, force, atol=1e-12)
    return np.array(force)


def sliding(made, velocity, command=(0.0, 0.0)):
    """Return the compensation in steady motion."""
    for _ in range(200):
        added(made, velocity, command)
    return added(made, velocity, command)


def own_force(velocity):
    """Return the friction itself, by axis."""
    return np.array([np.sign(v) * level(OWN, axis, v) for axis, v in enumerate(velocity)])


@pytest.mark.parametrize("velocity", [(0.05, 0.02), (-0.05, 0.1), (0.2, -0.03), (-0.1, -0.1)])
def test_compensation_adds_its_share_in_steady_motion(velocity):
    np.testing.assert_allclose(sliding(Motors(), velocity), SHARE * own_force(velocity), rtol=1e-9)


@pytest.mark.parametrize("velocity", [(0.05, 0.04), (-0.05, -0.1)])
def test_compensation_is_complete_while_the_command_brakes(velocity):
    own, along = own_force(velocity), np.sign(velocity)
    for command, expected in ((-1.0, own), (-0.01, SHARE * own + 0.01 * along), (1.0, SHARE * own)):
        np.testing.assert_allclose(sliding(Motors(), velocity, tuple(command * along)), expected, rtol=1e-9)


VELOCITIES = st.lists(st.tuples(st.floats(-0.3, 0.3), st.floats(-0.3, 0.3)), min_size=1, max_size=60)


@settings(max_examples=20)
@given(velocities=VELOCITIES, share=st.just(SHARE) | st.floats(0.0, 0.98), gain=st.just(1.0) | st.floats(0.0, 1.0))
def test_compensation_is_limited_and_passive_against_the_friction(velocities, share, gain):
    """It is at most the share of the static friction, of that in its direction if it drives."""
    made = Motors(share)
    made.allow(gain)
    for velocity in velocities:
        for laws, f, v in zip(OWN.laws, added(made, velocity), velocity, strict=True):
            forward, backward = (law.breakaway_force for law in laws)
            if f * v > 0.0:
                assert abs(f) <= share * (forward if v > 0.0 else backward) + 1e-12
            assert abs(f) <= gain * share * (max(forward, backward) + 1e-12)


def test_compensation_fades_at_rest():
    made = Motors()
    before = sliding(made, (0.05, -0.05))
    after = [added(made, (0.0, 0.0)).copy() for _ in range(3000)]
    assert (np.abs(np.array(after)) <= np.abs(before) + 0.7).all()
    np.testing.assert_allclose(after[-1], 0.0, atol=0.01)
    assert (np.diff(np.abs(after), axis=0) <= 1e-12).all()


def test_disabled_compensation_adds_nothing_and_resets():
    made = Motors()
    sliding(made, (0.05, -0.05))
    made.allow(0.0)
    np.testing.assert_array_equal(added(made, (0.05, 0.05), (0.5, -0.2)), (0.0, 0.0))
    made.allow(1.0)
    np.testing.assert_array_equal(added(made, (0.0, 0.0)), (0.0, 0.0))


def test_steep_friction_is_flattened():
    steep = AxisFriction(1.0, 1.0, 2.0, 2.0, 5e-4).laws
    made = Motors(own=HandleFriction((steep, steep), 0.0))
    np.testing.assert_allclose(sliding(made, (0.05, 0.05)), SHARE, rtol=1e-6)
    slow = [added(made, (v, 0.0))[0] for v in np.repeat(np.geomspace(5e-2, 1e-4, 40), 20)]
    assert (np.abs(np.diff(slow)) < 0.2).all()


# --- the virtual joystick ---------------------------------------------------------------------------------------------


@pytest.fixture
def own_file(tmp_path):
    return write_own_friction(tmp_path / "own.toml")


def joystick(own_file, hand, clock=None, **changes):
    own = {"friction_parameters": own_file} if own_file else {}
    settings = {"friction": FRICTION, "hand": hand, **own, **changes}
    device = devices.open_device("virtual-joystick", settings, clock=clock)
    device.compensate(1.0)
    return device


def test_compensated_handle_comes_to_rest(own_file):
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


def test_spec_states_the_remaining_friction(own_file):
    device = joystick(own_file, ToAndFro(), compensation=0.8)
    assert device.spec.least_friction == pytest.approx(0.2 * 1.8)
    assert device.spec.damping == 0.0
    assert joystick("", ToAndFro()).spec.least_friction is None
    for share in (-0.1, 1.0):
        with pytest.raises(ConfigurationError, match=r"device\.compensation"):
            joystick(own_file, ToAndFro(), compensation=share)


def test_felt_friction_falls_by_the_share(own_file):
    hand = ToAndFro(axis=1)
    own, left = (feel(device, device, hand, 6000) for device in (joystick("", hand), joystick(own_file, hand)))
    assert left.work == pytest.approx((1.0 - SHARE) * own.work, rel=0.05)


# --- with the servo ---------------------------------------------------------------------------------------------------


class Heard:
    """A joystick that records the allowed share before each command."""

    def __init__(self, device):
        self._device = device
        self.allowed = []
        self._share = 0.0

    def __getattr__(self, name):
        return getattr(self._device, name)

    def compensate(self, share):
        self._share = share
        self._device.compensate(share)

    def write(self, command):
        self.allowed.append(self._share)
        self._device.write(command)


def test_servo_scales_the_compensation_by_its_envelope_and_records_the_command_without_it(tmp_path, own_file):
    clock, trace = Clock(PERIOD), Trace.create(tmp_path / "trace")
    device = Heard(joystick(own_file, ToAndFro(), clock=clock))
    Servo(device, MasslessImpedance(Coulomb(0.5), 3000.0, 10.0), trace, clock=clock).run(1.0)
    rows, allowed = trace.since(0), np.array(device.allowed)
    assert allowed[0] < 0.02  # fades in
    assert (np.diff(allowed[:100]) >= 0.0).all()
    assert (allowed[150:900] == 1.0).all()
    assert (allowed[len(rows) :] == 0.0).all()  # the safe output
    assert allowed[len(rows) - 1] == 0.0
    sliding = (rows["sticking"] == 0) & (rows["tick"] > 200) & (rows["tick"] < 950)
    np.testing.assert_allclose(np.hypot(*rows["command"][sliding].T), 0.5, rtol=1e-9)


# --- file of a calibration --------------------------------------------------------------------------------------------


LEVELS = {**FRICTION["x"], "viscosity_forward": 1.1, "viscosity_backward": 1.0}


def written(path, model, values, device="stick a", **others):
    """Write the file of a calibration with one axis and return its name."""
    joint = JointParameters("x", rotary=False, friction=Found(model, values, **others))
    write_parameter_file(path / "own.toml", ParameterFile(Provenance(device=device), (joint,)))
    return str(path / "own.toml")


def level(own, axis, speed):
    law = own.laws[axis][0 if speed > 0.0 else 1]
    return float(np.abs(law(np.array([[speed, 0.0]])))[0, 0])


@pytest.mark.parametrize("model", MODELS)
def test_every_calibration_model_is_read(tmp_path, model):
    """Presliding and harmonics are left out: friction is compensated while the handle slides."""
    values = {"coulomb": 1.0, "viscosity": 0.5, "offset": 0.2, "stribeck_velocity": 0.02}
    values |= {"static_forward": 1.6, "static_backward": 1.4, "coulomb_forward": 1.1, "coulomb_backward": 0.9}
    values |= {"viscosity_forward": 0.6, "viscosity_backward": 0.4, "presliding": 0.5, "presliding_distance": 0.01}
    values |= dict.fromkeys(HARMONICS, 0.3)
    values = {name: values[name] for name in MODELS[model].names}
    own = read_own_friction(written(tmp_path, model, values), "stick")
    speeds = np.array([-0.1, -0.005, 0.005, 0.1])
    expected = np.abs(MODELS[model].evaluate(values, speeds))  # an offset is the difference between the directions
    np.testing.assert_allclose([level(own, 0, speed) for speed in speeds], expected, rtol=1e-12)


def test_rising_friction_is_limited_to_its_static_level(tmp_path):
    own = read_own_friction(written(tmp_path, "stribeck-asymmetric", LEVELS | {"static_forward": 0.8}), "stick")
    assert level(own, 0, 1e-4) == pytest.approx(0.8, abs=1e-3)
    assert level(own, 0, 0.1) == pytest.approx(0.8 + 0.1 * 1.1)
    assert level(own, 1, 0.1) == 0.0, "the file has one axis only"
    assert max(law.breakaway_force for laws in own.laws for law in laws) == 1.4


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ("[joint.x]\nrotary = true\n", r"joint\.x\.rotary = True: must be false"),
        ("[joint.elbow]\n", "neither a table"),
        ("[joint.x.friction]\nviscosity_ns_per_m = 1.0\n", r"coulomb_force_n is missing"),
        ("[joint.x.friction]\ncoulomb_force_n = 'much'\nviscosity_ns_per_m = 0.0\n", "coulomb_force_n = 'much'"),
        ("[joint.x.friction]\ncoulomb_force_n = -1.0\nviscosity_ns_per_m = 0.0\n", "is no friction"),
        (  # also where the interval holds 0
            "[joint.x.friction]\ncoulomb_force_n = -1.0\nviscosity_ns_per_m = 0.0\n"
            "[joint.x.friction.interval_95]\ncoulomb_force_n = [-3.0, 1.0]\n",
            r"coulomb_force_n = -1: is no friction; must be at least 0",
        ),
        ("[joint.x.friction]\ncoulomb_force_n = nan\nviscosity_ns_per_m = 0.0\n", "finite"),
        ("[provenance]\ndevice = 'pantograph b'\n[joint.x]\n", "is of the device 'pantograph b'; must be of 'stick a'"),
        ("[joint", "is no TOML"),
    ],
)
def test_invalid_file_is_named(tmp_path, change, complaint):
    path = tmp_path / "wrong.toml"
    path.write_text(change)
    with pytest.raises(ConfigurationError, match=complaint) as caught:
        read_own_friction(str(path), "stick", "a")
    assert str(path) in str(caught.value)


def test_device_identity_is_checked_only_if_given(tmp_path):
    values, intervals = {"coulomb": 2.0, "viscosity": 0.0}, {"coulomb": (1.9, 2.1)}
    path = written(tmp_path, "coulomb-viscous", values, device="stick b", intervals=intervals)
    own = read_own_friction(path, "stick")
    assert max(law.breakaway_force for laws in own.laws for law in laws) == 2.0
    assert Compensation(own, 0.9, PERIOD, 0.0).least_friction == pytest.approx(0.1 * 2.0 + 0.1), (
        "it includes the uncertainty"
    )
    with pytest.raises(ConfigurationError, match="is of the device"):
        read_own_friction(path, "stick", "a")
    with pytest.raises(ConfigurationError, match="haptics calibrate friction --device stick"):
        read_own_friction(str(tmp_path / "none.toml"), "stick")


def test_joint_friction_of_an_arm_is_read(tmp_path):
    joints = tuple(JointParameters(name, rotary=True, friction=Found("stribeck-asymmetric", LEVELS)) for name in "12")
    write_parameter_file(tmp_path / "arm.toml", ParameterFile(Provenance(), joints))
    speeds = np.array([-0.3, -0.01, 0.02, 0.5])
    expected = np.abs(MODELS["stribeck-asymmetric"].evaluate(LEVELS, speeds))
    for laws in read_joint_friction(str(tmp_path / "arm.toml"), "virtual-arm"):
        levels = [float(np.abs(laws[int(speed < 0.0)](np.array([[speed, 0.0]])))[0, 0]) for speed in speeds]
        np.testing.assert_allclose(levels, expected, rtol=1e-12)
    with pytest.raises(ConfigurationError, match="neither a table"):
        read_own_friction(str(tmp_path / "arm.toml"), "stick")
