"""Everything that can go wrong with drive and sensor during a run: what is bridged, what ends it, and how.

What ends a run must leave the motors loose; until then they hold.
"""

import contextlib

import pytest

from devices.emulators.arm.faults import MOTORS, SENSOR, known_faults
from devices.emulators.odrive.axis import CLOSED_LOOP, IDLE
from haptics.errors import DeviceFault
from tests.devices.arm.arm_rig import LONG, ArmHere, let_go_by, mean_force, opened, run
from tests.devices.arm.odrive_rig import states
from tests.devices.arm.sensor_rigs import wait_until

PUSHED = {"name": "scripted-force", "script": [[0.0, 2.0, -3.0], [600.0, 2.0, -3.0]]}


@pytest.fixture(autouse=True)
def _own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.getbasetemp() / "cache"))


def begin(arm: ArmHere, fault: str) -> None:
    """Switch a fault on."""
    if fault.startswith(MOTORS):
        arm.board.faults.set(fault.removeprefix(MOTORS))
    else:
        arm.sensor_faults.set(fault.removeprefix(SENSOR))


ENDED_BY_THE_DRIVE = {
    "motors.unplug": "the drive was unplugged",
    "motors.read-error": "an answer was lost",
    "motors.write-error": "a packet was lost",
    "motors.stall": r"the drive refused .* \(stall\)",
    "motors.nak": "the drive did not take a packet in time|the drive does not answer",
    "motors.wrong-crc": "the drive does not answer: it drops packets",
    "motors.lost-answer": "the drive does not answer",
    "motors.short": "it does not know what it was asked for",
    "motors.motor-fault": "axis 0: motor: fault of the gate driver",
}


@pytest.mark.parametrize("fault", ENDED_BY_THE_DRIVE)
def test_a_drive_that_fails_ends_the_run_with_loose_motors(fault: str) -> None:
    with opened(motors={"watchdog": 0.3, "reply_timeout": 0.1}) as arm:
        run(arm, 0.02)
        begin(arm, fault)
        with pytest.raises(DeviceFault, match=ENDED_BY_THE_DRIVE[fault]):
            run(arm, LONG)
        with contextlib.suppress(DeviceFault):
            arm.close()
        let_go_by(arm, 0.4)
        assert states(arm.board) == [IDLE, IDLE]


def test_a_host_that_falls_silent_loses_its_motors_and_is_told_when_it_comes_back() -> None:
    with opened(motors={"watchdog": 0.1, "reply_timeout": 0.05}) as arm:
        run(arm, 0.02)
        let_go_by(arm, 0.3)
        assert states(arm.board) == [IDLE, IDLE]
        with pytest.raises(DeviceFault, match="the watchdog expired"):
            run(arm, LONG)


ENDED_BY_THE_SENSOR = {
    ("ati", "mute"): "has sent no usable force for .* nothing comes from 127",
    ("ati", "saturated"): "has sent no usable force for .* saturated: take the load away",
    ("ati", "stalled"): "one measurement again and again",
    ("onrobot-hex", "mute"): "has sent no usable force",
    ("optoforce", "mute"): "nothing comes from it: check its cable",
    ("optoforce", "overloaded"): "overloaded in Fx: take the load away",
    ("optoforce", "stalled"): "has sent no usable force",
    ("optoforce", "unplug"): "it is gone",
}


@pytest.mark.parametrize(("make", "fault"), ENDED_BY_THE_SENSOR)
@pytest.mark.wall_clock  # a sensor behind a real wire has to be heard
def test_a_sensor_that_fails_ends_the_run_and_the_motors_hold_until_it_is_over(make: str, fault: str) -> None:
    with opened(make, hand=PUSHED) as arm:
        before = run(arm, 0.05)[-1]
        begin(arm, SENSOR + fault)
        with pytest.raises(DeviceFault, match=ENDED_BY_THE_SENSOR[make, fault]):
            run(arm, LONG)
        assert states(arm.board) == [CLOSED_LOOP, CLOSED_LOOP]
        arm.write(before.position)
        assert arm.plant.handle == pytest.approx(before.position, abs=5e-4)
        arm.close()
        assert states(arm.board) == [IDLE, IDLE]


BRIDGED = {
    ("ati", "sensor.lost"): "lost",
    ("ati", "sensor.duplicated"): "duplicated",
    ("ati", "sensor.reordered"): "late",
    ("ati", "sensor.truncated"): "malformed",
    ("ati", "sensor.flood"): "received",
    ("ati", "sensor.delay-5ms"): "received",
    ("optoforce", "sensor.lost"): "lost",
    ("optoforce", "sensor.duplicated"): "duplicated",
    ("optoforce", "sensor.truncated"): "",
    ("optoforce", "sensor.inserted"): "",
    ("optoforce", "sensor.damaged"): "",
    ("optoforce", "sensor.delay-5ms"): "",
    ("ati", "motors.delay-1ms"): "received",
    ("ati", "motors.delay-5ms"): "received",
}


@pytest.mark.parametrize(("make", "fault"), BRIDGED)
@pytest.mark.wall_clock  # a sensor behind a real wire has to be heard
def test_what_can_be_bridged_is(make: str, fault: str) -> None:
    with opened(make, hand=PUSHED) as arm:
        run(arm, 0.02)
        before = dict(arm.tally)
        begin(arm, fault)
        samples = run(arm, 0.3)
        assert mean_force(samples[len(samples) // 3 :]) == pytest.approx((2.0, -3.0), abs=0.15)
        counted = BRIDGED[make, fault]
        assert not counted or arm.tally[counted] > before[counted] + 10
        assert states(arm.board) == [CLOSED_LOOP, CLOSED_LOOP]


@pytest.mark.parametrize("fault", ["motors.nak", "motors.lost-answer", "sensor.mute", "sensor.saturated"])
def test_what_lasts_a_moment_only_is_survived(fault: str) -> None:
    with opened() as arm:
        run(arm, 0.02)
        begin(arm, fault)
        run(arm, 0.03)
        arm.board.faults.clear()
        arm.sensor_faults.clear()
        run(arm, 0.2)
        wait_until(lambda: arm._clock.elapsed() - arm.read().time < 0.1)
        assert states(arm.board) == [CLOSED_LOOP, CLOSED_LOOP]


def test_the_tests_know_all_faults() -> None:
    known = known_faults("ati").keys() | known_faults("optoforce").keys()
    tried = ENDED_BY_THE_DRIVE.keys() | {SENSOR + fault for _, fault in ENDED_BY_THE_SENSOR} | {f for _, f in BRIDGED}
    elsewhere = {  # in the tests of the drive, before anything is driven, and of delays in those of the device
        *("motors.encoder-jump", "motors.reset-comes-anew", "motors.no-permission", "motors.busy"),
        *("motors.delay-20ms", "sensor.delay-1ms", "sensor.delay-20ms"),
        *("motors.link-down", "motors.bus-off", "motors.wrong-bit-rate", "motors.lost-frames"),  # of CAN, there
    }
    assert known == tried | elsewhere
