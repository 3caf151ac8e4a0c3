"""The stage and the emulated drive on a CAN bus: how it is begun, what goes over the bus in a tick, how it is ended."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np
import pytest

from devices.arm.motors import CanStage, MotorStage
from devices.arm.motors.can import codec
from devices.emulators.odrive.axis import CLOSED_LOOP, IDLE
from devices.emulators.odrive.board import EmulatedOdrive
from devices.emulators.odrive.can_simple import CanSimple
from haptics.errors import ConfigurationError, DeviceFault, DeviceOpenError
from tests.devices.arm.odrive_rig import HOME, PATIENCE, go_on, make_on_can, run, states, states_at_looks, until

pytestmark = pytest.mark.usefixtures("stepped")


@contextmanager
def armed(*faults: str, **settings: Any) -> Iterator[tuple[CanStage, EmulatedOdrive, CanSimple]]:
    stage, board, drive = make_on_can(*faults, **{"reply_timeout": 0.1} | settings)
    stage.open()
    try:
        stage.home(HOME)
        stage.arm()
        yield stage, board, drive
    finally:
        board.faults.clear()
        with suppress(DeviceFault):
            stage.close()


@contextmanager
def overheard(drive: CanSimple) -> Iterator[list[codec.Frame]]:
    """The frames that the drive takes meanwhile."""
    taken: list[codec.Frame] = []
    take = drive.take

    def listen(raw: bytes) -> bytes | None:
        frame = codec.unpack(raw)
        assert frame is not None
        taken.append(frame)
        return take(raw)

    drive.take = listen  # type: ignore[method-assign]
    yield taken
    drive.take = take  # type: ignore[method-assign]


# --- the beginning ---------------------------------------------------------------------------------------------------


def test_nothing_is_compiled_while_a_watchdog_waits() -> None:
    assert states_at_looks(*make_on_can()[:2]) == [[IDLE, IDLE], [CLOSED_LOOP, CLOSED_LOOP]]


@pytest.mark.parametrize(("version", "told"), [((0, 5, 6), "0.5"), ((0, 6, 10), "0.6.10")])
def test_a_drive_of_either_generation_is_opened_armed_and_driven(version: tuple[int, int, int], told: str) -> None:
    with armed(version=version) as (stage, board, _):
        assert stage.facts["firmware"] == told
        assert stage.facts["estimates_hz"] == pytest.approx(1000.0, rel=0.05)
        run(stage, 0.1, lambda now: HOME + 0.5 * now)
        assert states(board) == [CLOSED_LOOP, CLOSED_LOOP]
    assert states(board) == [IDLE, IDLE]


def test_it_is_a_motor_stage() -> None:
    stage: MotorStage = make_on_can()[0]
    assert not stage.homed


def slow(drive: CanSimple, board: EmulatedOdrive) -> None:
    drive.estimates = 10e-3


def lazy(drive: CanSimple, board: EmulatedOdrive) -> None:
    drive.heartbeats = 0.1


def elsewhere(drive: CanSimple, board: EmulatedOdrive) -> None:
    drive.nodes = (0, 7)


def unsupplied(drive: CanSimple, board: EmulatedOdrive) -> None:
    board.inside.values["vbus_voltage"] = 3.2


def broken(drive: CanSimple, board: EmulatedOdrive) -> None:
    board.inside.axes[1].fail(0x40, "motor", 0x8)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (
            slow,
            r"where it is \d{2,3} times a second, .* needs 1000.*odrv0\.axis1\.config\.can\.encoder_rate_ms = 1;.*save",
        ),
        (lazy, r"has \d\d? heartbeats: .*odrv0\.axis0\.config\.can\.heartbeat_rate_ms = 10;"),
        (elsewhere, r"axis 1 was not heard as node 1 of can0; there is 7\. .*node_2.* bitrate 1000000"),
        (unsupplied, r"supply has 3\.2 V, it must have 10 to 56 V: switch it on"),
        (broken, r"errors from earlier: axis 1: motor: fault of the gate driver.*clear_errors=true"),
    ],
)
def test_a_drive_that_cannot_be_used_is_refused_with_what_to_do(
    spoil: Callable[[CanSimple, EmulatedOdrive], None], message: str
) -> None:
    stage, board, drive = make_on_can()
    spoil(drive, board)
    with pytest.raises(DeviceOpenError, match=message):
        stage.open()
    assert states(board) == [IDLE, IDLE]
    stage.close()


def test_a_pro_is_told_the_names_that_it_has() -> None:
    stage, _, drive = make_on_can(version=(0, 6, 10))
    drive.estimates = 10e-3
    with pytest.raises(DeviceOpenError, match=r"odrv1\.axis0\.config\.can\.encoder_msg_rate_ms = 1;"):
        stage.open()


@pytest.mark.parametrize("enabled", [False, True])
def test_a_drive_whose_watchdog_does_not_let_go_in_time_is_found_out(enabled: bool) -> None:
    stage, board, _ = make_on_can(watchdog=0.1)
    board.inside.axes[1].values |= {"config.watchdog_timeout": 5.0, "config.enable_watchdog": enabled}
    with stage:
        stage.home(HOME)
        with pytest.raises(DeviceOpenError, match=r"still driven .*odrv0\.axis1\.config\.watchdog_timeout = 0\.1;"):
            stage.arm()
        assert states(board) == [IDLE, IDLE]


def test_somebody_else_who_commands_an_axis_is_noticed() -> None:
    stage, _, drive = make_on_can()
    due, rival = drive.due, codec.pack(codec.input_speed(1, 0.0, 0.0))
    drive.due = lambda now: iter([*due(now), rival])  # type: ignore[method-assign]
    with pytest.raises(DeviceOpenError, match=r"another program commands node 1 on can0"):
        stage.open()


def test_an_arm_is_homed_behind_its_gear_whenever_it_was_opened() -> None:
    stage, board, _ = make_on_can(reduction_1=10.0, reduction_2=-8.0, watchdog=0.1)
    board.plant.angles = (3.7, -1.2)
    with stage:
        with pytest.raises(DeviceOpenError, match="bring it to its home pose"):
            stage.arm()
        stage.home(np.array((0.4, 0.3)))
        assert stage.look() == pytest.approx((0.4, 0.3), abs=1e-3)
        stage.arm()
        angles = run(stage, 0.05, lambda _: np.array((0.4, 0.3)))
        assert angles[-1] == pytest.approx((0.4, 0.3), abs=1e-3)
        assert board.plant.angles == pytest.approx((3.7, -1.2), abs=5e-3)
    with stage:
        assert not stage.homed


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"node_2": 0}, r"device\.motors\.node_2 = 0: must not be that of the first"),
        ({"node_1": 64}, r"device\.motors\.node_1 = 64"),
        ({"interface": ""}, r"device\.motors\.interface = '': must be the name"),
        ({"serial": "A1"}, r"device\.motors\.serial = 'A1': a drive on CAN is known by its nodes"),
        ({"speed_limit": 5.0}, r"speed_limit = 5 turn/s: CAN sets it only together .*vel_limit"),
        ({"speed_gain": 0.1}, "CAN sets both together"),
    ],
)
def test_what_can_simple_cannot_do_is_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        CanStage({"protocol": "can", **settings})


# --- the tick --------------------------------------------------------------------------------------------------------


def test_a_millisecond_takes_four_frames() -> None:
    with armed() as (stage, _, drive), overheard(drive) as taken:
        before = time.perf_counter()
        run(stage, 0.1, lambda now: HOME + now)
        duration = time.perf_counter() - before
        counted = Counter((frame.node, frame.command) for frame in taken)
    assert counted.keys() == {(0, codec.INPUT_POSITION), (1, codec.INPUT_POSITION)}
    assert len(taken) == pytest.approx(2e3 * duration, rel=0.1)
    assert drive.estimates == 1e-3  # and as many come back


def test_speeds_and_torques_that_a_position_cannot_carry_get_a_frame_of_their_own() -> None:
    with armed(reduction_1=100.0, reduction_2=100.0) as (stage, board, _):
        for axis in board.inside.axes:
            axis.values |= {"controller.config.vel_limit": 100.0, "motor.config.current_lim": 0.0}
        for _ in range(5):
            stage.tick(HOME, np.array((3.0, -1.0)), np.array((200.0, 0.0)))
            go_on(stage)
        held = board.inside.axes
        assert held[0].values["controller.input_vel"] == pytest.approx(300.0 / math.tau, rel=1e-6)
        assert held[1].values["controller.input_vel"] == pytest.approx(-100.0 / math.tau, abs=1e-3)
        assert held[0].values["controller.input_torque"] == pytest.approx(2.0)


def test_commands_that_stay_out_let_the_motors_go() -> None:
    with armed(watchdog=0.05) as (stage, board, drive):
        run(stage, 0.05, lambda now: HOME + now)
        with overheard(drive) as taken:
            until(board, IDLE)
        assert all(axis.values["controller.input_vel"] == 0.0 for axis in board.inside.axes)
        assert len(taken) < 200  # nothing feeds the watchdogs any more
        with pytest.raises(DeviceFault, match="the watchdog expired"):
            run(stage, 1.0)


def test_an_emergency_stop_of_somebody_else_ends_the_run_in_words() -> None:
    with armed() as (stage, board, drive):
        run(stage, 0.02)
        with board.lock:
            drive.take(codec.pack(codec.emergency_stop(1)))
        with pytest.raises(DeviceFault, match="axis 1: an emergency stop was asked for"):
            run(stage, PATIENCE)
        until(board, IDLE)


def test_an_axis_that_somebody_lets_go_ends_the_run_though_it_has_no_error() -> None:
    with armed() as (stage, board, drive):
        run(stage, 0.02)
        with board.lock:
            drive.take(codec.pack(codec.requested_state(1, IDLE)))
        assert not any(axis.values["error"] for axis in board.inside.axes)
        with pytest.raises(DeviceFault, match=r"not driven any more.*axis1"):
            run(stage, PATIENCE)
        until(board, IDLE)


def test_a_motor_that_does_not_obey_gets_an_emergency_stop() -> None:
    with armed(watchdog=0.5) as (stage, board, drive):
        run(stage, 0.02)
        drive._orders[0x07] = lambda axis, data: None  # it takes no state any more
        stage.disarm()
        assert states(board) == [IDLE, IDLE]
        assert all(axis.values["error"] & 0x4000 for axis in board.inside.axes)


def test_disarmed_it_can_be_armed_again_and_its_watchdogs_are_tried_once() -> None:
    with armed() as (stage, board, drive):
        run(stage, 0.02)
        stage.disarm()
        assert states(board) == [IDLE, IDLE]
        time.sleep(0.2)  # they expire meanwhile
        with overheard(drive) as taken:
            stage.arm()
        assert sum(frame.command == codec.STATE for frame in taken) == 2
        run(stage, 0.02)
        assert states(board) == [CLOSED_LOOP, CLOSED_LOOP]
