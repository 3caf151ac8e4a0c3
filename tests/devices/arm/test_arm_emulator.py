"""The emulated arm by itself: what its motors, its hand and its sensor do, in a time of its own."""

import math

import numpy as np
import pytest

from devices.arm.body import ArmBody
from devices.arm.sensors.ati import AtiSettings
from devices.arm.sensors.mounting import Mounting, turn
from devices.common.workspace import Workspace
from devices.emulators.arm.board import ArmBoard
from devices.emulators.arm.faults import MOTORS, SENSOR, known_faults, of_part
from devices.emulators.arm.plant import ArmPlant
from devices.emulators.odrive.axis import CLOSED_LOOP, IDLE
from devices.emulators.times import FreeTime
from devices.emulators.wire_faults import WireFaults
from haptics import parts
from tests.devices.arm.odrive_rig import states

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
def test_what_nobody_drives_stays_where_it_is(kind):
    drive = board(ArmBody(kind=kind, gravity=3.0), hand=PUSH)
    before = drive.plant.handle
    wait(drive, 2.0)
    assert (drive.plant.handle == before).all()
    assert not drive.plant.hand_force.any()


@pytest.mark.parametrize("ratios", [(100.0, 100.0), (-100.0, 100.0), (100.0, -60.0)])
def test_driven_motors_turn_the_joints_the_way_the_gears_are_built_in(ratios):
    body = ArmBody()
    drive = board(body, ratios)
    arm(drive)
    start = body.angles(*drive.plant.handle)
    go(drive, (0.02, -0.03), ratios)
    wait(drive, 1.5)
    expected = body.linkage.positions([[start[0] + 0.02, start[1] - 0.03]])[0]
    assert drive.plant.handle == pytest.approx(expected, abs=4e-4)  # what gears yield to the friction


def test_the_motors_hold_against_the_hand_which_takes_hold_when_they_do():
    drive = board(hand=PUSH)
    before = drive.plant.handle
    wait(drive, 0.5)
    assert not drive.plant.hand_force.any()
    arm(drive)
    wait(drive, 1.0)
    assert drive.plant.hand_force == pytest.approx((4.0, -2.0))
    assert drive.plant.handle == pytest.approx(before, abs=3e-4)
    assert states(drive) == [CLOSED_LOOP, CLOSED_LOOP]


def test_no_motor_is_stronger_than_it_can_be():
    body = ArmBody(torque_limit=0.3)
    drive = board(body)
    arm(drive)
    go(drive, (0.2, 0.2))
    strongest = 0.0
    for _ in range(200):
        wait(drive, 1e-3)
        strongest = max(strongest, *(abs(axis.torque) for axis in drive.inside.axes))
    assert strongest == pytest.approx(0.3)


@pytest.mark.parametrize("gravity", [0.0, 5.0])
def test_what_the_sensor_shows_is_the_hand_s_force_to_a_driver_that_knows_the_handle(gravity):
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


def test_equal_seeds_give_equal_stories():
    stories = []
    for seed in (3, 3, 4):
        drive = board(hand={"name": "minimum-jerk", "pause": 0.0}, seed=seed)
        arm(drive)
        wait(drive, 0.7)
        stories.append((*drive.plant.handle, *drive.wrench()))
    assert stories[0] == stories[1]
    assert stories[0] != stories[2]


def test_the_hand_is_compiled_when_the_arm_is_built_not_when_it_takes_hold(monkeypatch):
    asked = []
    run_part = parts.run_part
    monkeypatch.setattr(parts, "run_part", lambda *words: (asked.append(words), run_part(*words)))
    hand = board(hand=PUSH).plant._hand
    assert [words[0] for words in asked] == [hand.address], "compiled, by being asked once"
    assert asked[0][1] != hand.place, "a copy was, so that the hand is as it was"


def test_times_of_faults_count_from_when_the_motors_are_driven():
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


def test_names_of_faults_say_which_part_they_are_of():
    known = known_faults("optoforce")
    assert {"motors.unplug", "sensor.damaged"} <= known.keys()
    assert "sensor.flood" not in known
    texts = ["motors.unplug@1", " sensor.mute@2+1"]
    assert of_part(MOTORS, texts) == ["unplug@1"]
    assert of_part(SENSOR, texts) == ["mute@2+1"]
