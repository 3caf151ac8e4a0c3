"""The arm in the compiled loop: samples and commands through its port, faults, and runs."""

import math

import numpy as np
import pytest

from devices import create_device
from devices.arm.sensors.force_sensor import Health, Sample, turn
from devices.common.kernels import NOT_FINITE
from devices.faults import FaultyDevice, parse_fault
from haptics import Coulomb, RigidAdmittance, Servo
from haptics.clock import WallClock
from haptics.device import port_of
from haptics.errors import DeviceFault
from haptics.jit import run_part
from haptics.servo.kernels import AVAILABLE
from haptics.trace import Trace
from tests.devices.arm.arm_rig import PERIOD, opened

pytestmark = pytest.mark.skipif(not AVAILABLE, reason="no loop without Python here")

RATIOS = np.array((-80.0, 120.0))
SEAT = {"rotation": [20.0, -130.0, 70.0], "handle_mass": 0.6, "handle_centre": [0.01, -0.02, 0.05]}
OFFSET = np.array((2.0, -1.0, 3.0, 0.02, -0.05, 0.01))


@pytest.fixture
def arm(own_cache):
    """An open arm on the wall clock whose threads have ended, so that tests publish the samples."""
    motors = {"reduction_1": RATIOS[0], "reduction_2": RATIOS[1]}
    with opened(motors=motors, sensor=SEAT, arm={"kind": "serial", "gravity": 4.0}) as arm:
        stage, sensor = arm._open_parts()
        stage._streaming.stop()
        sensor._ending.set()
        sensor._thread.join()
        arm._clock = WallClock(PERIOD)
        arm._clock.start()
        yield arm


def publish_motors(arm, angles, speeds, sampled):
    turns, turning = (np.array(each) * RATIOS / math.tau for each in (angles, speeds))
    arm._stage._streaming.samples.publish(sampled, *turns, *turning)


def publish_sensor(arm, wrench, measured, health=Health.OK):
    arm._sensor._publish(Sample(tuple(wrench), measured, measured, health))


def take(arm, port, instant):
    """Take a sample at an `instant` (perf_counter); return the record."""
    run_part(port.read_part, port.record.ctypes.data, 1.0, instant - port.record["origin"][0])
    return port.record[0]


def sensed(arm, angles, force):
    """Return the wrench at the sensor of a force of the hand, and gravity in its axes, computed in world axes."""
    own = arm._sensor._settings
    x, y, z = (turn(axis, math.radians(angle)) for axis, angle in enumerate(own.rotation))
    axes = turn(2, sum(angles)) @ z @ y @ x
    gravity = np.array(own.gravity)
    weight, centre = own.handle_mass * gravity, axes @ np.array(own.handle_centre)
    total = np.concatenate([axes.T @ (np.array((*force, 0.0)) + weight), axes.T @ np.cross(centre, weight)])
    return total + OFFSET, axes.T @ gravity


def test_port_gives_the_sample_of_rigid_body_mechanics(arm):
    port, random = port_of(arm), np.random.default_rng(5)
    arm._sensor._mounting.record["offset"] = OFFSET
    now = port.record["origin"][0] + 5.0
    for _ in range(20):
        x, y = random.uniform(-0.1, 0.1, 2)
        angles, speeds = np.array(arm.settings.body.angles(x, y)), random.uniform(-1.0, 1.0, 2)
        force = random.uniform(-20.0, 20.0, 2)
        wrench, gravity = sensed(arm, angles, force)
        publish_motors(arm, angles, speeds, now - 2e-3)
        publish_sensor(arm, wrench, now - 1e-3)
        record = take(arm, port, now)
        assert record["fault"] == 0
        np.testing.assert_allclose(record["position"], (x, y), atol=1e-9)
        moved = arm.settings.body.linkage.positions(np.array([angles + 1e-6 * speeds, angles - 1e-6 * speeds]))
        np.testing.assert_allclose(record["velocity"], (moved[0] - moved[1]) / 2e-6, atol=1e-7)
        np.testing.assert_allclose(record["force"], force, atol=1e-9)
        each = np.array([*(angles + 1e-6 * np.eye(2)), *(angles - 1e-6 * np.eye(2))])
        first, second, less, much_less = arm.settings.body.linkage.positions(each) @ force
        np.testing.assert_allclose(record["load"], np.array((first - less, second - much_less)) / 2e-6, atol=1e-7)
        np.testing.assert_allclose(record["channels"][:11], [*angles, *wrench, *gravity], atol=1e-9)
        assert record["time"] == pytest.approx(5.0 - 2e-3, abs=1e-9), "the time of the older part"


def test_sample_has_the_time_of_an_older_sensor(arm):
    port = port_of(arm)
    now = port.record["origin"][0] + 5.0
    publish_motors(arm, arm._home_angles, (0.0, 0.0), now)
    publish_sensor(arm, OFFSET, now - 3e-3)
    assert take(arm, port, now)["time"] == pytest.approx(5.0 - 3e-3, abs=1e-9)


def test_invalid_force_is_zero_and_keeps_its_age(arm):
    port = port_of(arm)
    now = port.record["origin"][0] + 5.0
    publish_motors(arm, arm._home_angles, (0.0, 0.0), now)
    publish_sensor(arm, OFFSET, now - 5e-3)
    publish_sensor(arm, OFFSET + 50.0, now - 1e-3, Health.FAULT)
    record = take(arm, port, now)
    assert not record["force"].any()
    assert np.isnan(record["channels"][2:8]).all()
    assert record["time"] == pytest.approx(5.0 - 5e-3, abs=1e-9)


def test_command_gives_angles_and_speeds_of_the_motors(arm):
    port = port_of(arm)
    stream = arm._stage._streaming
    now = port.record["origin"][0] + 5.0
    publish_motors(arm, arm._home_angles, (0.0, 0.0), now)
    publish_sensor(arm, OFFSET, now)
    take(arm, port, now)
    start = np.array(arm._home_angles)
    for x, y in ((0.0, 0.0), (1e-3, -2e-3)):
        run_part(port.write_part, port.record.ctypes.data, x, y)
    told = np.array(stream.commands.read())
    goal = np.array(arm.settings.body.angles(1e-3, -2e-3))
    np.testing.assert_allclose(told[:2], goal * RATIOS / math.tau, rtol=1e-12)
    np.testing.assert_allclose(told[2:4], (goal - start) / PERIOD * RATIOS / math.tau, rtol=1e-6, atol=1e-6)
    assert told[6] == pytest.approx(now, abs=1e-9), "the time for the watchdog of the thread"
    assert (port.record["command"][0] == (1e-3, -2e-3)).all()


# --- availability of the port ----------------------------------------------------------------------------------------


def test_port_exists_for_the_wall_clock_only(arm):
    assert port_of(arm).wake == arm._open_parts()[0].wake.descriptor
    clock = arm._clock
    assert port_of(FaultyDevice(arm, [parse_fault("dropout@1")], clock)) is None
    arm._clock = arm.clock
    assert port_of(arm) is None


# --- faults ----------------------------------------------------------------------------------------------------------


def test_command_out_of_reach_is_a_fault_and_not_sent(arm):
    port = port_of(arm)
    before = arm._stage._streaming.commands.read()
    for x in (math.nan, math.inf, 2.0):
        run_part(port.write_part, port.record.ctypes.data, x, 0.0)
        assert port.record["fault"][0] == NOT_FINITE
        with pytest.raises(DeviceFault, match="must be finite, and within reach"):
            arm.write(np.array((x, 0.0)))
    assert arm._stage._streaming.commands.read() == before


def test_command_beyond_the_range_of_the_motors_is_a_fault(arm):
    port, stage = port_of(arm), arm._open_parts()[0]
    before = stage._streaming.commands.read()
    stage.record["per_radian"] = 1e6
    run_part(port.write_part, port.record.ctypes.data, 0.0, 0.0)
    assert port.record["fault"][0]
    with pytest.raises(DeviceFault, match="it must be finite, and not that far"):
        arm.write(np.zeros(2))
    assert stage._streaming.commands.read() == before


def test_lost_motors_are_a_fault_of_read_and_write(arm):
    port, stream = port_of(arm), arm._stage._streaming
    stream.failure, stream.lost[0] = "the drive is gone.", 1.0
    assert take(arm, port, port.record["origin"][0])["fault"]
    for use in (arm.read, lambda: arm.write(np.zeros(2))):
        with pytest.raises(DeviceFault, match="the drive is gone"):
            use()


@pytest.mark.parametrize("lost", [False, True])
def test_lost_sensor_is_a_fault_of_read_but_the_arm_holds(arm, lost):
    port, sensor = port_of(arm), arm._sensor
    now = port.record["origin"][0] + 5.0
    publish_motors(arm, arm._home_angles, (0.0, 0.0), now)
    publish_sensor(arm, OFFSET, now - 1e-3 - (0.0 if lost else sensor._settings.patience))
    if lost:
        sensor._failure, sensor._lost[0] = OSError("it is gone"), 1.0
    assert take(arm, port, now)["fault"]
    with pytest.raises(DeviceFault, match="failed: it is gone" if lost else "has sent no usable force for 501 ms"):
        arm.read()
    before = arm._stage._streaming.commands.read()
    arm.write(np.zeros(2))
    assert arm._stage._streaming.commands.read()[6] > before[6]


# --- compiled runs ---------------------------------------------------------------------------------------------------

PATIENT = {"motors": {"watchdog": 1.0, "reply_timeout": 0.4}, "sensor": {"patience": 0.3}}
PUSH = {"name": "scripted-force", "script": [[0.0, 5.0, 0.0], [60.0, 5.0, 0.0]]}


@pytest.mark.wall_clock
@pytest.mark.parametrize(("fault", "words"), [
    ("sensor.mute", "has sent no usable force|was too old"), ("motors.unplug", "the drive was unplugged"), ("", ""),
])  # fmt: skip
def test_compiled_run_ends_with_the_fault_of_the_driver(own_cache, tmp_path, fault, words):
    clock, trace = WallClock(PERIOD), Trace.create(tmp_path / "trace", capacity=4096)
    table = {"emulated": True, "hand": PUSH, **PATIENT, "wire_faults": [f"{fault}@0.5"] if fault else []}
    servo = Servo(create_device("arm", table, clock=clock), RigidAdmittance(Coulomb(4.0), 2.0), trace, clock=clock)
    said = ""
    try:
        servo.run(1.0)
    except DeviceFault as error:
        said = str(error)
    assert servo.compiled
    rows = trace.since(0)
    if not words:
        assert said == ""
        assert rows["time"][-1] > 0.99
    assert any(each in said for each in words.split("|")), said
    assert np.ptp(rows["position"][:, 0]) > 5e-3, "the hand moved it"
    assert np.median(rows["force"], axis=0) == pytest.approx((5.0, 0.0), abs=0.3)
