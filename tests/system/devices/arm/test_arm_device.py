"""The arm's driver through all of its wires: motors, sensor, kinematics, homing, tare; what it refuses."""

import contextlib
import math

import numpy as np
import pytest

from devices import create_device
from devices.arm.motors import MotorStage
from devices.emulated.arm import EmulatedArmSettings
from devices.emulators.odrive.axis import CLOSED_LOOP, IDLE
from haptics.device import Causality
from haptics.errors import ConfigurationError, DeviceFault, DeviceOpenError
from tests.devices.arm.arm_rig import ArmHere, mean_force, opened, run, settings
from tests.devices.arm.odrive_rig import states


@pytest.fixture(autouse=True)
def _own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.getbasetemp() / "cache"))


def push(x: float, y: float) -> dict[str, object]:
    return {"name": "scripted-force", "script": [[0.0, x, y], [60.0, x, y]]}


# --- what it does ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["parallel-link", "serial", "five-bar"])
def test_the_end_effector_goes_where_it_is_told_and_holds(kind: str) -> None:
    goal = np.array((0.02, -0.015))
    with opened(arm={"kind": kind}) as arm:
        assert arm.read().position == pytest.approx((0.0, 0.0), abs=1e-4)
        assert states(arm.board) == [CLOSED_LOOP, CLOSED_LOOP]
        run(arm, 0.2, lambda now: min(now / 0.15, 1.0) * goal)
        (*_, last) = run(arm, 0.3, lambda _: goal)
        assert last.position == pytest.approx(goal, abs=2e-4)
        assert arm.plant.handle == pytest.approx(goal, abs=3e-4)  # motors hold, gears give way a little
        assert np.hypot(*last.velocity) < 5e-3
    assert states(arm.board) == [IDLE, IDLE]


def test_motors_that_turn_the_other_way_and_unlike_gears_are_a_matter_of_settings() -> None:
    with opened(motors={"reduction_1": -100.0, "reduction_2": 50.0}) as arm:
        run(arm, 0.2, lambda now: np.array((min(now / 0.2, 1.0) * 0.01, 0.0)))
        (*_, last) = run(arm, 0.2, lambda _: np.array((0.01, 0.0)))
        assert arm.plant.handle == pytest.approx(last.position, abs=3e-4)


def test_velocity_is_that_of_the_motion() -> None:
    with opened() as arm:
        samples = run(arm, 0.5, lambda now: np.array((0.1 * now, -0.05 * now)))
    late = [state.velocity for state in samples if state.time > samples[0].time + 0.25]
    assert np.mean(late, axis=0) == pytest.approx((0.1, -0.05), abs=0.01)


@pytest.mark.parametrize("sensor", ["ati", "onrobot-hex", "optoforce"])
def test_every_sensor_shows_the_force_of_the_hand_in_the_axes_of_the_device(sensor: str) -> None:
    with opened(sensor, hand=push(3.0, -4.0)) as arm:
        samples = run(arm, 0.3)
        assert mean_force(samples) == pytest.approx(arm.plant.hand_force, abs=0.1)
        assert mean_force(samples) == pytest.approx((3.0, -4.0), abs=0.1)


def test_a_sensor_that_is_mounted_askew_shows_the_same_force() -> None:
    with opened(hand=push(3.0, -4.0), sensor={"rotation": [180.0, 0.0, 50.0]}) as arm:
        assert mean_force(run(arm, 0.3)) == pytest.approx((3.0, -4.0), abs=0.1)


def test_the_handle_s_weight_is_no_force_of_the_hand_wherever_the_arm_goes() -> None:
    arm_table = {"gravity": 6.0, "handle_mass": 0.8}
    with opened(arm=arm_table) as arm:
        assert mean_force(run(arm, 0.2)) == pytest.approx((0.0, 0.0), abs=0.1)
        run(arm, 0.6, lambda now: np.array((-0.15, 0.1)) * min(now / 0.55, 1.0))
        turned = run(arm, 0.3, lambda _: np.array((-0.15, 0.1)))
        assert mean_force(turned[len(turned) // 2 :]) == pytest.approx((0.0, 0.0), abs=0.15)


def test_a_sample_is_as_old_as_the_older_of_its_parts() -> None:
    with opened(motors={"watchdog": 1.0, "reply_timeout": 0.5}) as arm:
        run(arm, 0.05)
        ages = []
        for fault in ("motors.delay-20ms", "sensor.delay-20ms"):
            part, name = fault.split(".")
            faults = arm.board.faults if part == "motors" else arm.sensor_faults
            faults.set(name)
            run(arm, 0.08)
            state = arm.read()
            ages.append(arm.clock.elapsed() - state.time)
            faults.clear()
            run(arm, 0.04)
        assert ages[0] > 20e-3  # of the sensor nobody can tell: it does not stamp its records
        assert math.isfinite(ages[1])


def test_its_data_sheet() -> None:
    spec = create_device("arm", {"max_speed": 0.4, "motors": {"watchdog": 0.2}}).spec
    assert spec.causality is Causality.ADMITTANCE
    assert spec.max_speed == 0.4
    assert spec.watchdog == pytest.approx(0.22)
    assert spec.workspace_max == (0.2, 0.15)
    assert 1e-7 < (spec.position_resolution or 0.0) < 1e-4


# --- beginning and end -----------------------------------------------------------------------------------------------


def test_it_can_be_opened_twice_closed_twice_and_opened_anew() -> None:
    with opened() as arm:
        arm.open()
        first = arm.board
        arm.close()
        arm.close()
        assert states(first) == [IDLE, IDLE]
        with pytest.raises(DeviceOpenError, match="not open"):
            arm.read()
        arm.open()
        run(arm, 0.02)


def test_nothing_is_driven_before_somebody_says_where_the_arm_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(EmulatedArmSettings, "held", False)
    arm = ArmHere(settings())
    with pytest.raises(DeviceOpenError, match=r"lose their zero .* home \(0 m, 0 m\).*device.at_home=true"):
        arm.open()
    assert states(arm.board) == [IDLE, IDLE]


def test_an_arm_outside_of_its_workspace_is_waited_for_and_then_refused() -> None:
    arm = ArmHere(settings(homing_timeout=0.1))
    arm._home_angles = arm._body.angles(0.25, 0.0)
    with pytest.raises(DeviceOpenError, match=r"at \(0\.25, .* was not brought into the workspace .* within 0\.1 s"):
        arm.open()
    assert states(arm.board) == [IDLE, IDLE]


def test_a_handle_that_is_held_is_not_tared(monkeypatch: pytest.MonkeyPatch) -> None:
    arm = ArmHere(settings("optoforce"))
    connect = arm._connect

    def restless(resources: contextlib.ExitStack) -> object:
        parts = connect(resources)
        wrench, count = arm.plant.wrench, iter(range(10**9))
        monkeypatch.setattr(arm.plant, "wrench", lambda: [5.0 * (next(count) % 100 // 50) + f for f in wrench()])
        return parts

    monkeypatch.setattr(arm, "_connect", restless)
    with pytest.raises(DeviceOpenError, match="let go of the handle"):
        arm.open()


def test_it_does_not_begin_with_samples_that_do_not_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    arm = ArmHere(settings())
    look, count = arm._look, iter(range(10**9))

    def restless(stage: MotorStage) -> None:
        look(stage)
        arm._state.position[0] += 2e-3 * next(count)

    monkeypatch.setattr(arm, "_look", restless)
    with pytest.raises(DeviceOpenError, match="no two samples agreed"):
        arm.open()
    assert states(arm.board) == [IDLE, IDLE]


# --- what it refuses -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", [(math.nan, 0.0), (math.inf, 0.0), (2.0, 0.0)])
def test_a_command_that_is_nowhere_is_a_fault(command: tuple[float, float]) -> None:
    with opened() as arm, pytest.raises(DeviceFault, match="must be finite, and within reach"):
        arm.write(np.array(command))


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"half_width": 0.6}, "workspace"),
        ({"home_x": 3.0}, r"device\.home_x = 3 m, .*does not reach"),
        ({"arm": {"kind": "scara"}}, r"device\.arm\.kind = 'scara'.*parallel-link"),
        ({"arm": {"encoder": "joint"}}, r"device\.arm\.encoder = 'joint': must be 'motor'"),
        ({"arm": 3}, r"device\.arm = 3: must be a table"),
        ({"motors": {"reduction_1": 0.0}}, r"device\.motors\.reduction_1 = 0\.0"),
        ({"sensor": {"name": "scale"}}, "unknown force sensor 'scale'"),
        ({"sensor": {"name": "optoforce"}}, r"device\.sensor\.sensitivity"),
        ({"servo": {"law": "fractional"}}, "must be one of pid, flatness, rigid"),
        ({"hand": {"name": "minimum-jerk"}}, r"device\.hand: only an emulated arm"),
        ({"wire_faults": ["motors.unplug@1"]}, "only an emulated arm has an emulated wire"),
        ({"emulated": True, "wire_faults": ["unplug@1"]}, r"unknown fault .*motors\.unplug"),
        ({"emulated": True, "wire_faults": ["sensor.damaged@1"]}, r"unknown fault .*sensor\.damaged"),
        ({"emulated": True, "wire_faults": ["motors.nak@soon"]}, "NAME@SECONDS"),
        ({"emulated": True, "hand": {"name": "foot"}}, "unknown hand 'foot'"),
        ({"seed": 0.5}, r"device\.seed = 0\.5: must be a whole number"),
        ({"max_speed": 0.0}, r"device\.max_speed = 0\.0: .*greater than 0 m/s"),
    ],
)
def test_wrong_settings_are_named_with_what_is_allowed(table: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        create_device("arm", table)
