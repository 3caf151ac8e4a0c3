"""The drive's own limits: what a stage that was opened says of them, and which drives it refuses for them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from devices.arm.motors import OdriveStage
from devices.arm.motors.limits import AxisLimits, Demands, require_enough
from devices.arm.motors.settings import OdriveSettings
from devices.arm.settings import ArmSettings
from devices.emulators.odrive.axis import CLOSED_LOOP, IDLE
from devices.emulators.odrive.board import EmulatedOdrive
from devices.emulators.odrive.usb_backend import EmulatedOdriveBackend
from haptics.errors import DeviceOpenError
from tests.devices.arm.arm_rig import opened
from tests.devices.arm.odrive_rig import alone, let_go_by, states

ASKED = Demands(0.4, (1.5, 2.0), "device.arm.torque_limit", "device.max_speed = 0.5 m/s")
"""What a drive as it is delivered just gives: 10 A with 0.04 N m/A, and 2 turn/s."""


@pytest.fixture(autouse=True)
def _own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.getbasetemp() / "cache"))


def stage_of(demands: Demands = ASKED, **settings: Any) -> tuple[OdriveStage, EmulatedOdrive]:
    board = EmulatedOdrive()
    return OdriveStage(settings, backend=EmulatedOdriveBackend(board), demands=demands), board


def put(axis: int, **values: Any) -> Callable[[EmulatedOdrive], None]:
    own = {name.replace("__", "."): value for name, value in values.items()}
    return lambda board: board.inside.axes[axis].values.update(own)


def test_what_is_just_enough_is_taken_and_told() -> None:
    stage, _ = stage_of()
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


LOW = {
    "current": (
        put(1, motor__config__current_lim=5.0),
        "less torque than device.arm.torque_limit says, 0.4 N m: axis1.motor.config.current_lim is 5 A, with "
        "axis1.motor.config.torque_constant = 0.04 N m/A that is 0.2 N m.",
        "odrv0.axis1.motor.config.current_lim = 10; odrv0.save_configuration(). Else set device.arm.torque_limit to",
    ),
    "constant": (
        put(0, motor__config__torque_constant=0.02),
        "odrv0.axis0.motor.config.current_lim = 20; odrv0.save",
        "Else set device.arm.torque_limit to 0.2.",
    ),
    "torque": (
        put(0, motor__config__torque_lim=0.3),
        "axis0.motor.config.torque_lim is 0.3 N m.",
        "odrv0.axis0.motor.config.torque_lim = 0.4; odrv0.save_configuration(). Else",
    ),
    "speed": (
        put(1, controller__config__vel_limit=1.6),
        "axis1.controller.config.vel_limit in the drive is 1.6 turn/s, and device.max_speed = 0.5 m/s takes the motor "
        "of axis 1 to 2 turn/s.",
        "odrv0.axis1.controller.config.vel_limit = 2; odrv0.save_configuration(); or set device.motors.speed_limit to "
        "that. Else lower device.max_speed to 0.8 times what it is.",
    ),
    "nothing": (
        put(0, motor__config__current_lim=0.0),
        "axis0.motor.config.current_lim is 0 in the drive: it",
        "odrv0.",
    ),
    "no number": (
        put(1, motor__config__torque_constant=math.nan),
        "axis1.motor.config.torque_constant is nan in the drive",
        "odrv0.axis1.motor.config.torque_constant = VALUE",
    ),
}
"""What is too low, what is said of it, and what to do."""


@pytest.mark.parametrize(("spoil", "what", "remedy"), LOW.values(), ids=LOW)
def test_a_drive_with_lower_limits_is_refused_before_a_motor_is_driven(
    spoil: Callable[[EmulatedOdrive], None], what: str, remedy: str
) -> None:
    stage, board = stage_of()
    spoil(board)
    with pytest.raises(DeviceOpenError) as refused:
        stage.open()
    assert what in str(refused.value)
    assert remedy in str(refused.value)
    assert states(board) == [IDLE, IDLE]
    assert not board.owners


def test_a_speed_limit_of_the_settings_counts_in_place_of_the_drives() -> None:
    stage, board = stage_of(speed_limit=2.5)
    put(0, controller__config__vel_limit=0.1)(board)
    with stage:
        assert stage.facts["axis0"]["speed_limit_turn_per_s"] == 2.5
    stage, _ = stage_of(speed_limit=1.0)
    with pytest.raises(DeviceOpenError, match=r"motors\.speed_limit is 1 turn/s, .* set device\.motors\.speed_limit"):
        stage.open()


@pytest.mark.parametrize(
    ("limits_speed", "minds_overspeed", "speed"),
    [(True, True, 1.0), (True, False, 1.0), (False, True, 1.2), (False, False, math.inf)],
)
def test_a_speed_limit_that_is_not_enabled_is_none(limits_speed: bool, minds_overspeed: bool, speed: float) -> None:
    own = AxisLimits(10.0, 0.04, math.inf, 1.0, limits_speed, minds_overspeed)
    assert own.speed == pytest.approx(speed)
    for asked in (0.99 * speed, 1.01 * speed):
        if not math.isfinite(asked):
            continue
        demands = Demands(0.1, (asked, 0.0), "a", "device.max_speed = 1 m/s")
        if asked < speed:
            require_enough(0, own, demands, OdriveSettings())
        else:
            with pytest.raises(DeviceOpenError, match=f"to {asked:.3g} turn/s"):
                require_enough(0, own, demands, OdriveSettings())


def test_what_an_arm_asks_is_what_its_motors_really_do() -> None:
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


def test_the_whole_arm_tells_its_drives_limits_and_asks_for_what_its_settings_say() -> None:
    with opened() as arm:
        own = arm.facts["motors"]["axis0"]
        strongest = own["current_limit_a"] * own["torque_constant_nm_per_a"]
        assert strongest == pytest.approx(arm.settings.body.torque_limit)
    with pytest.raises(DeviceOpenError, match=r"motors\.speed_limit is 5 turn/s, and device\.max_speed = 0\.5"):
        with opened(motors={"speed_limit": 5.0}):
            pass


@pytest.mark.parametrize(("current", "torque", "strongest"), [(2.0, math.inf, 0.08), (10.0, 0.05, 0.05)])
def test_the_emulated_drive_keeps_its_limits(current: float, torque: float, strongest: float) -> None:
    inside, plant = alone(inertia=1.0)
    axis = inside.axes[0]
    axis.values |= {"motor.config.current_lim": current, "motor.config.torque_lim": torque}
    axis.request(CLOSED_LOOP)
    axis.values["controller.input_pos"] += 0.2
    let_go_by(inside, 0.02)
    assert axis.torque == pytest.approx(strongest)
    assert axis.values["motor.effective_current_lim"] == current
    assert axis.values["motor.current_control.Iq_setpoint"] == pytest.approx(strongest / 0.04)
    assert plant.speeds[0] * math.tau == pytest.approx(strongest * 0.02, rel=0.05)
