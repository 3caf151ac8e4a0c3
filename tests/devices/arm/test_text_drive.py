"""The stage and the emulated drive, talking in lines of text: which way is chosen, and that the port is given back."""

from __future__ import annotations

import contextlib
import time
from typing import Any

import numpy as np
import pytest

from devices.arm.motors import OdriveStage
from devices.arm.motors.rounds import NativeRounds, TextRounds
from devices.emulators.odrive.axis import CLOSED_LOOP, IDLE
from devices.emulators.odrive.board import TEXT, EmulatedOdrive
from haptics.device import Vector
from haptics.errors import DeviceFault, DeviceOpenError
from tests.devices.arm.odrive_rig import HOME, armed, make, run, states, until

pytestmark = pytest.mark.usefixtures("stepped")


@pytest.fixture(autouse=True)
def _own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.getbasetemp() / "cache"))


def rounds_of(stage: OdriveStage) -> Any:
    return stage._streaming._rounds  # type: ignore[union-attr]


@pytest.mark.parametrize(("protocol", "way"), [("auto", TextRounds), ("text", TextRounds), ("native", NativeRounds)])
def test_text_is_chosen_where_the_drive_takes_it(protocol: str, way: type) -> None:
    with armed(protocol=protocol) as (stage, _):
        assert isinstance(rounds_of(stage), way)


def silent(board: EmulatedOdrive, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the serial port take what comes and say nothing, as if it were set to another protocol."""
    monkeypatch.setattr("devices.emulators.odrive.text.TextProtocol.take", lambda *_: iter(()))


def test_a_port_that_says_nothing_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    stage, board = make(protocol="auto", watchdog=0.5)
    silent(board, monkeypatch)
    with stage:
        stage.home(HOME)
        stage.arm()
        assert isinstance(rounds_of(stage), NativeRounds)
        assert TEXT in board.drivers
        run(stage, 0.05)
        assert states(board) == [CLOSED_LOOP, CLOSED_LOOP]


def test_text_that_was_demanded_and_is_not_there_is_said_before_a_motor_is_driven(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stage, board = make(protocol="text")
    silent(board, monkeypatch)
    with stage:
        stage.home(HOME)
        with pytest.raises(DeviceOpenError, match="protocol=native"):
            stage.arm()
        assert states(board) == [IDLE, IDLE]
        assert not [axis for axis in board.inside.axes if axis.values.get("config.enable_watchdog")]


def test_the_port_is_the_systems_again_when_the_motors_are_loose() -> None:
    with armed(protocol="text") as (stage, board):
        assert TEXT not in board.drivers
        run(stage, 0.02)
        stage.disarm()
        assert TEXT in board.drivers
        stage.arm()
        run(stage, 0.02)
        assert states(board) == [CLOSED_LOOP, CLOSED_LOOP]


def test_the_motors_follow_position_and_speed() -> None:
    def reference(now: float) -> tuple[Vector, Vector]:
        return HOME + 0.4 * (1.0 - np.cos(6.0 * now)), np.full(2, 2.4 * np.sin(6.0 * now))

    errors = []
    with armed(protocol="text", reduction_1=2.0, reduction_2=-2.0) as (stage, _):
        start = time.perf_counter()

        def command(now: float) -> Vector:
            angles = stage.look()
            errors.append(angles - reference(stage.sampled - start)[0])
            return reference(now)[0]

        run(stage, 1.0, command)
    assert np.abs(errors[100:]).max() < 0.05


def test_commands_that_stay_out_let_the_motors_go() -> None:
    with armed(protocol="text", watchdog=0.05) as (stage, board):
        run(stage, 0.05, lambda now: HOME + now)
        until(board, IDLE)
        assert all(axis.values["controller.input_vel"] == 0.0 for axis in board.inside.axes)
        with pytest.raises(DeviceFault, match="watchdog"):
            run(stage, 1.0)


def test_arming_that_fails_leaves_no_motor_driven(monkeypatch: pytest.MonkeyPatch) -> None:
    stage, board = make(protocol="text")
    monkeypatch.setattr("devices.arm.motors.streaming.Streaming.start", lambda _: 1 / 0)
    with contextlib.suppress(DeviceFault), stage:
        stage.home(HOME)
        with pytest.raises(ZeroDivisionError):
            stage.arm()
        assert states(board) == [IDLE, IDLE]
        assert TEXT in board.drivers


def test_arming_that_fails_says_so_if_the_motors_may_still_be_driven(monkeypatch: pytest.MonkeyPatch) -> None:
    stage, board = make(protocol="text")
    monkeypatch.setattr("devices.arm.motors.streaming.Streaming.start", lambda _: board.unplug() or 1 / 0)
    with contextlib.suppress(DeviceFault), stage:
        stage.home(HOME)
        with pytest.raises(DeviceOpenError, match="could not be disarmed"):
            stage.arm()
