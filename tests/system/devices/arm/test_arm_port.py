"""The arm without Python: what its parts make of motors and sensor, when it has a port, how runs through it end."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from devices import create_device
from devices.arm.sensors.mounting import turn
from devices.arm.sensors.wire import Health, Sample
from devices.common.driver_kernels import NOT_FINITE
from devices.faults import FaultyDevice, parse_fault
from haptics import Coulomb, RigidAdmittance, Servo
from haptics.clock import WallClock
from haptics.errors import DeviceFault
from haptics.parts import run_part
from haptics.ports import Port, port_of
from haptics.servo.system_kernels import AVAILABLE
from haptics.trace import Trace
from tests.devices.arm.arm_rig import PERIOD, ArmHere, opened

pytestmark = pytest.mark.skipif(not AVAILABLE, reason="no loop without Python here")

RATIOS = np.array((-80.0, 120.0))
SEAT = {"rotation": [20.0, -130.0, 70.0], "handle_mass": 0.6, "handle_centre": [0.01, -0.02, 0.05]}
OFFSET = np.array((2.0, -1.0, 3.0, 0.02, -0.05, 0.01))


@pytest.fixture
def _own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.getbasetemp() / "cache"))


@pytest.fixture
def arm(_own_cache: None) -> Iterator[ArmHere]:
    """An open arm on the wall's clock, whose threads have ended: nothing is heard but what a test says."""
    motors = {"reduction_1": RATIOS[0], "reduction_2": RATIOS[1]}
    with opened(motors=motors, sensor=SEAT, arm={"kind": "serial", "gravity": 4.0}) as arm:
        stage, sensor = arm._open_parts()
        stage._streaming.stop()  # type: ignore[attr-defined]
        sensor._stop()
        arm._clock = WallClock(PERIOD)
        arm._clock.start()
        yield arm


def say_motors(arm: ArmHere, angles: Any, speeds: Any, sampled: float) -> None:
    turns, turning = (np.array(each) * RATIOS / math.tau for each in (angles, speeds))
    arm._stage._streaming.samples.publish(sampled, *turns, *turning)  # type: ignore[union-attr]


def say_sensor(arm: ArmHere, wrench: Any, measured: float, health: Health = Health.OK) -> None:
    arm._sensor._take(Sample(tuple(wrench), measured, measured, health))  # type: ignore[union-attr]


def ported(arm: ArmHere) -> Port:
    port = port_of(arm)
    assert port is not None
    return port


def take(arm: ArmHere, port: Port, instant: float) -> Any:
    """Take a sample at an `instant` (perf_counter); return the record."""
    run_part(port.take, port.record.ctypes.data, 1.0, instant - port.record["origin"][0])
    return port.record[0]


def shown(arm: ArmHere, angles: Any, force: Any) -> tuple[np.ndarray, np.ndarray]:
    """What the sensor shows of a hand's force, and gravity in its axes: plain mechanics in the axes of the world."""
    own = arm._sensor._settings  # type: ignore[union-attr]
    x, y, z = (turn(axis, math.radians(angle)) for axis, angle in enumerate(own.rotation))
    axes = turn(2, sum(angles)) @ z @ y @ x
    gravity = np.array(own.gravity)
    weight, centre = own.handle_mass * gravity, axes @ np.array(own.handle_centre)
    total = np.concatenate([axes.T @ (np.array((*force, 0.0)) + weight), axes.T @ np.cross(centre, weight)])
    return total + OFFSET, axes.T @ gravity


def test_the_parts_make_of_motors_and_sensor_what_mechanics_says(arm: ArmHere) -> None:
    port, random = ported(arm), np.random.default_rng(5)
    arm._sensor._mounting.record["offset"] = OFFSET  # type: ignore[union-attr]
    now = port.record["origin"][0] + 5.0
    for _ in range(20):
        x, y = random.uniform(-0.1, 0.1, 2)
        angles, speeds = np.array(arm.settings.body.angles(x, y)), random.uniform(-1.0, 1.0, 2)
        force = random.uniform(-20.0, 20.0, 2)
        wrench, gravity = shown(arm, angles, force)
        say_motors(arm, angles, speeds, now - 2e-3)
        say_sensor(arm, wrench, now - 1e-3)
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
        assert record["time"] == pytest.approx(5.0 - 2e-3, abs=1e-9), "as old as the older of the two"


def test_the_older_part_may_be_the_sensor(arm: ArmHere) -> None:
    port = ported(arm)
    now = port.record["origin"][0] + 5.0
    say_motors(arm, arm._home_angles, (0.0, 0.0), now)
    say_sensor(arm, OFFSET, now - 3e-3)
    assert take(arm, port, now)["time"] == pytest.approx(5.0 - 3e-3, abs=1e-9)


def test_what_the_sensor_marks_as_wrong_is_no_force_and_makes_nothing_younger(arm: ArmHere) -> None:
    port = ported(arm)
    now = port.record["origin"][0] + 5.0
    say_motors(arm, arm._home_angles, (0.0, 0.0), now)
    say_sensor(arm, OFFSET, now - 5e-3)
    say_sensor(arm, OFFSET + 50.0, now - 1e-3, Health.FAULT)
    record = take(arm, port, now)
    assert not record["force"].any()
    assert np.isnan(record["channels"][2:8]).all()
    assert record["time"] == pytest.approx(5.0 - 5e-3, abs=1e-9)


def test_a_command_goes_to_the_motors_with_what_the_hand_does_to_the_joints(arm: ArmHere) -> None:
    port = ported(arm)
    stream = arm._stage._streaming  # type: ignore[union-attr]
    now = port.record["origin"][0] + 5.0
    say_motors(arm, arm._home_angles, (0.0, 0.0), now)
    say_sensor(arm, OFFSET, now)
    take(arm, port, now)
    start = np.array(arm._home_angles)
    for x, y in ((0.0, 0.0), (1e-3, -2e-3)):
        run_part(port.give, port.record.ctypes.data, x, y)
    told = np.array(stream.commands.read())
    goal = np.array(arm.settings.body.angles(1e-3, -2e-3))
    np.testing.assert_allclose(told[:2], goal * RATIOS / math.tau, rtol=1e-12)
    np.testing.assert_allclose(told[2:4], (goal - start) / PERIOD * RATIOS / math.tau, rtol=1e-6, atol=1e-6)
    assert told[6] == pytest.approx(now, abs=1e-9), "so that the thread knows when commands stay out"
    assert (port.record["command"][0] == (1e-3, -2e-3)).all()


# --- when there is a port ---------------------------------------------------------------------------------------------


def test_there_is_a_port_on_the_walls_clock_alone(arm: ArmHere) -> None:
    assert ported(arm).wake == arm._open_parts()[0].wake.descriptor
    clock = arm._clock
    assert port_of(FaultyDevice(arm, [parse_fault("dropout@1")], clock)) is None
    arm._clock = arm.clock
    assert port_of(arm) is None


# --- faults -----------------------------------------------------------------------------------------------------------


def test_out_of_reach_is_a_fault_of_the_command_alone(arm: ArmHere) -> None:
    port = ported(arm)
    before = arm._stage._streaming.commands.read()  # type: ignore[union-attr]
    for x in (math.nan, 5.0):
        run_part(port.give, port.record.ctypes.data, x, 0.0)
        assert port.record["fault"][0] == NOT_FINITE
        with pytest.raises(DeviceFault, match="must be finite, and within reach"):
            arm.write(np.array((x, 0.0)))
    assert arm._stage._streaming.commands.read() == before  # type: ignore[union-attr]


def test_what_the_motors_cannot_be_told_is_a_fault(arm: ArmHere) -> None:
    port, stage = ported(arm), arm._open_parts()[0]
    before = stage._streaming.commands.read()  # type: ignore[attr-defined]
    stage.record["per_radian"] = 1e6
    run_part(port.give, port.record.ctypes.data, 0.0, 0.0)
    assert port.record["fault"][0]
    with pytest.raises(DeviceFault, match="it must be finite, and not that far"):
        arm.write(np.zeros(2))
    assert stage._streaming.commands.read() == before  # type: ignore[attr-defined]


def test_motors_that_are_lost_end_it_in_their_words_and_take_no_command(arm: ArmHere) -> None:
    port, stream = ported(arm), arm._stage._streaming  # type: ignore[union-attr]
    stream.failure, stream.lost[0] = "the drive is gone.", 1.0
    assert take(arm, port, port.record["origin"][0])["fault"]
    for use in (arm.read, lambda: arm.write(np.zeros(2))):
        with pytest.raises(DeviceFault, match="the drive is gone"):
            use()


@pytest.mark.parametrize("lost", [False, True])
def test_without_a_sensor_there_are_no_samples_but_the_arm_can_be_held(arm: ArmHere, lost: bool) -> None:
    port, sensor = ported(arm), arm._sensor
    now = port.record["origin"][0] + 5.0
    say_motors(arm, arm._home_angles, (0.0, 0.0), now)
    say_sensor(arm, OFFSET, now - 1e-3 - (0.0 if lost else sensor._settings.patience))  # type: ignore[union-attr]
    if lost:
        sensor._failure, sensor._lost[0] = OSError("it is gone"), 1.0  # type: ignore[union-attr]
    assert take(arm, port, now)["fault"]
    with pytest.raises(DeviceFault, match="failed: it is gone" if lost else "has sent no usable force for 501 ms"):
        arm.read()
    before = arm._stage._streaming.commands.read()  # type: ignore[union-attr]
    arm.write(np.zeros(2))
    assert arm._stage._streaming.commands.read()[6] > before[6]  # type: ignore[union-attr]


# --- runs without Python ----------------------------------------------------------------------------------------------

PATIENT = {"motors": {"watchdog": 1.0, "reply_timeout": 0.4}, "sensor": {"patience": 0.3}}
PUSH = {"name": "scripted-force", "script": [[0.0, 5.0, 0.0], [60.0, 5.0, 0.0]]}


@pytest.mark.wall_clock
@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("sensor.mute", "has sent no usable force|was too old"),
        ("motors.unplug", "the drive was unplugged"),
        ("", ""),
    ],
)
def test_a_run_goes_without_python_and_ends_with_the_driver_s_words(
    _own_cache: None, tmp_path: Path, fault: str, words: str
) -> None:
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
