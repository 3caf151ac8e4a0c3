"""The emulated arm (motors, hand, sensor) in simulated time, and the limits of its drive."""

import math

import numpy as np
import pytest

from devices.arm.body import ArmBody
from devices.arm.device import ArmSettings
from devices.arm.motors.odrive import AxisLimits
from devices.arm.motors.settings import Demands
from devices.arm.sensors.force_sensor import Mounting, turn
from devices.arm.sensors.rdt import AtiSettings
from devices.common.settings import Workspace
from devices.emulators.arm import ArmBoard, ArmPlant
from devices.emulators.odrive.axis import CLOSED_LOOP, IDLE
from devices.emulators.usb_bus import FreeTime
from devices.emulators.wire_faults import MOTORS, SENSOR, WireFaults, arm_faults, of_part
from haptics import jit
from haptics.errors import DeviceOpenError
from tests.devices.arm.arm_rig import opened
from tests.devices.arm.odrive_rig import make, states

pytestmark = pytest.mark.usefixtures("own_cache")

ROOM = Workspace((-0.2, -0.15), (0.2, 0.15))
PUSH = {"name": "scripted-force", "script": [[0.0, 4.0, -2.0], [100.0, 4.0, -2.0]]}
STILL = {"name": "scripted-force", "script": [[0.0, 0.0, 0.0]]}


def board(body=None, ratios=(100.0, 100.0), hand=None, faults=(), sensor_faults=None, seed=0):
    body = body or ArmBody()
    plant = ArmPlant(body, ratios, ROOM, hand or STILL, seed)
    return ArmBoard(plant, body, faults, sensor_faults, FreeTime())


def wait(drive, duration):
    drive.time.wait_until(drive.time.now() + duration)
    drive.catch_up()


def arm(drive):
    for axis in drive.inside.axes:
        axis.request(CLOSED_LOOP)
    drive.catch_up()


def go(drive, angles, ratios=(100.0, 100.0)):
    """Send the joints somewhere; encoders count from where they were."""
    for axis, angle, ratio in zip(drive.inside.axes, angles, ratios, strict=True):
        axis.values["controller.input_pos"] += angle * ratio / math.tau


@pytest.mark.parametrize("kind", ["parallel-link", "serial", "five-bar"])
def test_undriven_arm_does_not_move(kind):
    drive = board(ArmBody(kind=kind, gravity=3.0), hand=PUSH)
    before = drive.plant.handle
    wait(drive, 2.0)
    assert (drive.plant.handle == before).all()
    assert not drive.plant.hand_force.any()


@pytest.mark.parametrize("ratios", [(100.0, 100.0), (-100.0, 100.0), (100.0, -60.0)])
def test_motors_turn_the_joints_by_their_ratios(ratios):
    body = ArmBody()
    drive = board(body, ratios)
    arm(drive)
    start = body.angles(*drive.plant.handle)
    go(drive, (0.02, -0.03), ratios)
    wait(drive, 1.5)
    expected = body.linkage.positions([[start[0] + 0.02, start[1] - 0.03]])[0]
    assert drive.plant.handle == pytest.approx(expected, abs=4e-4)  # twist of the gears under friction


def test_hand_takes_hold_when_the_motors_are_armed():
    drive = board(hand=PUSH)
    before = drive.plant.handle
    wait(drive, 0.5)
    assert not drive.plant.hand_force.any()
    arm(drive)
    wait(drive, 1.0)
    assert drive.plant.hand_force == pytest.approx((4.0, -2.0))
    assert drive.plant.handle == pytest.approx(before, abs=3e-4)
    assert states(drive) == [CLOSED_LOOP, CLOSED_LOOP]


@pytest.mark.parametrize("gravity", [0.0, 5.0])
def test_sensor_shows_the_hand_force_after_compensation_of_the_handle(gravity):
    body = ArmBody(kind="serial", gravity=gravity, handle_mass=0.7)
    drive = board(body, hand=PUSH)
    down = (0.0, -gravity, -math.sqrt(9.80665**2 - gravity**2))
    settings = AtiSettings(handle_mass=0.7, handle_centre=(0.0, 0.0, 0.05), gravity=down)
    mounting = Mounting(settings)

    def flange():
        return turn(2, sum(body.angles(*drive.plant.handle)))

    def shown():
        return np.mean([drive.wrench() for _ in range(300)], axis=0)

    mounting.tare(shown(), flange())
    arm(drive)
    for _ in range(3):
        wait(drive, 0.8)
        hand = mounting.hand(shown(), flange())
        assert hand[:2] == pytest.approx(drive.plant.hand_force, abs=0.05)
        assert hand[:2] == pytest.approx((4.0, -2.0), abs=0.05)
        go(drive, (0.15, -0.1))


def test_equal_seeds_give_equal_runs():
    stories = []
    for seed in (3, 3, 4):
        drive = board(hand={"name": "minimum-jerk", "pause": 0.0}, seed=seed)
        arm(drive)
        wait(drive, 0.7)
        stories.append((*drive.plant.handle, *drive.wrench()))
    assert stories[0] == stories[1]
    assert stories[0] != stories[2]


def test_hand_is_compiled_at_construction(monkeypatch):
    asked = []
    run_part = jit.run_part
    monkeypatch.setattr(jit, "run_part", lambda *words: (asked.append(words), run_part(*words)))
    hand = board(hand=PUSH).plant._hand
    assert [words[0] for words in asked] == [hand.address], "compiled, by being asked once"
    assert asked[0][1] != hand.place, "a copy was, so that the hand is as it was"


def test_fault_times_count_from_arming():
    sensor = WireFaults({"mute": ""}, ["mute@0.2+0.1"])
    drive = board(faults=["motor-fault@0.5"], sensor_faults=sensor)
    wait(drive, 3.0)
    assert drive.sensor_faults() == frozenset()
    arm(drive)
    seen = []
    for _ in range(60):
        wait(drive, 0.01)
        seen.append((drive.sensor_faults() == {"mute"}, states(drive) == [IDLE, CLOSED_LOOP]))
    muted, failed = zip(*seen, strict=True)
    assert sum(muted) == pytest.approx(10, abs=1)
    assert sum(failed) == pytest.approx(10, abs=2)
    assert math.isnan(drive.loose_at)
    drive.inside.axes[1].request(IDLE)
    wait(drive, 0.01)
    assert drive.loose_at == pytest.approx(0.61, abs=0.005)


def test_fault_names_select_the_part():
    known = arm_faults("optoforce")
    assert {"motors.unplug", "sensor.damaged"} <= known.keys()
    assert "sensor.flood" not in known
    texts = ["motors.unplug@1", " sensor.mute@2+1"]
    assert of_part(MOTORS, texts) == ["unplug@1"]
    assert of_part(SENSOR, texts) == ["mute@2+1"]


# --- limits of the drive ----------------------------------------------------------------------------------------------


# Limits of a drive with factory settings: 10 A with 0.04 N m/A, and 2 turn/s.
ASKED = Demands(0.4, (1.5, 2.0), "device.arm.torque_limit", "device.max_speed = 0.5 m/s")


def test_drive_with_sufficient_limits_reports_them():
    stage, _ = make(demands=ASKED)
    with stage:
        assert stage.facts["firmware"] == "0.5.6"
        assert stage.facts["serial"] == "2065339F304B"
        assert stage.facts["axis1"] == {
            "current_limit_a": 10.0,
            "torque_constant_nm_per_a": pytest.approx(0.04),
            "torque_limit_nm": None,
            "speed_limit_turn_per_s": 2.0,
            "limits_speed": True,
            "minds_overspeed": True,
            "overspeed": pytest.approx(1.2),
        }


# Axis, setting of the drive, its value, and the message with the remedy.
LOW = [
    (1, "motor.config.current_lim", 5.0, "0.4 N m: axis1.motor.config.current_lim is 5 A.*current_lim = 10; odrv0"),
    (0, "motor.config.torque_constant", 0.02, "current_lim = 20; .* Else set device.arm.torque_limit to 0.2."),
    (0, "motor.config.torque_lim", 0.3, "torque_lim is 0.3 N m.*axis0.motor.config.torque_lim = 0.4; odrv0"),
    (1, "controller.config.vel_limit", 1.6, "is 1.6 turn/s, and device.max_speed = 0.5 m/s .* to 2 turn/s.*= 2; "),
    (0, "motor.config.current_lim", 0.0, "axis0.motor.config.current_lim is 0 in the drive"),
    (1, "motor.config.torque_constant", math.nan, "torque_constant is nan .*motor.config.torque_constant = VALUE"),
]


@pytest.mark.parametrize(("axis", "name", "value", "message"), LOW)
def test_drive_with_too_low_limits_is_rejected_with_a_remedy(axis, name, value, message):
    stage, board = make(demands=ASKED)
    board.inside.axes[axis].values[name] = value
    with pytest.raises(DeviceOpenError, match=message):
        stage.open()
    assert states(board) == [IDLE, IDLE]
    assert not board.owners


def test_speed_limit_setting_overrides_the_drive():
    stage, board = make(demands=ASKED, speed_limit=2.5)
    board.inside.axes[0].values["controller.config.vel_limit"] = 0.1
    with stage:
        assert stage.facts["axis0"]["speed_limit_turn_per_s"] == 2.5
    stage, _ = make(demands=ASKED, speed_limit=1.0)
    with pytest.raises(DeviceOpenError, match=r"motors\.speed_limit is 1 turn/s, .* set device\.motors\.speed_limit"):
        stage.open()


@pytest.mark.parametrize(
    ("limits_speed", "minds_overspeed", "speed"),
    [(True, True, 1.0), (True, False, 1.0), (False, True, 1.2), (False, False, math.inf)],
)
def test_disabled_speed_limit_does_not_count(limits_speed, minds_overspeed, speed):
    own = AxisLimits(10.0, 0.04, math.inf, 1.0, limits_speed, minds_overspeed)
    assert own.speed == pytest.approx(speed)


def test_demands_are_the_largest_motor_speeds_of_the_workspace():
    own = ArmSettings(max_speed=0.4, motors={"reduction_2": -50.0})
    asked, body = own.demands.speeds, own.body
    found = np.zeros(2)
    for x in np.linspace(-own.half_width, own.half_width, 17):
        for y in np.linspace(-own.half_height, own.half_height, 17):
            for heading in np.linspace(0.0, math.pi, 37):
                step = 1e-6 * np.array((math.cos(heading), math.sin(heading)))
                moved = np.subtract(body.angles(x + step[0], y + step[1]), body.angles(x, y)) / 1e-6
                found = np.maximum(found, np.abs(moved) * own.max_speed * (body.reduction, 50.0) / math.tau)
    assert asked == pytest.approx(found, rel=5e-3)
    assert own.demands.torque == body.torque_limit


def test_arm_reports_the_drive_limits_and_checks_its_settings():
    with opened() as arm:
        own = arm.facts["motors"]["axis0"]
        strongest = own["current_limit_a"] * own["torque_constant_nm_per_a"]
        assert strongest == pytest.approx(arm.settings.body.torque_limit)
    with pytest.raises(DeviceOpenError, match=r"motors\.speed_limit is 5 turn/s, and device\.max_speed = 0\.5"):
        with opened(motors={"speed_limit": 5.0}):
            pass
