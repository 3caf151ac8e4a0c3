"""Everything that can go wrong on the bus, at the interface, in the drive: what is said; no motor stays driven."""

from __future__ import annotations

import errno
import re
import time
from contextlib import suppress

import numpy as np
import pytest

from devices.arm.motors.can.port import failure, in_words
from devices.emulators.odrive.axis import CLOSED_LOOP, IDLE
from haptics.errors import DeviceFault, DeviceOpenError
from tests.devices.arm.can.test_can_stage import armed
from tests.devices.arm.odrive_rig import HOME, PATIENCE, make_on_can, run, states, until

pytestmark = pytest.mark.usefixtures("stepped")

RUINOUS = {
    "unplug": "nobody on the bus of can0 acknowledges a frame|does not get its frames out|does not answer as node",
    "read-error": r"a frame was lost at can0 \(.*\): check cable and adapter",
    "write-error": "can0 does not get its frames out: is the drive switched on",
    "nak": "the drive does not answer as node [01] of can0",
    "lost-answer": "the drive does not answer as node [01] of can0",
    "short": "the drive does not answer as node [01] of can0",
    "link-down": "the CAN interface can0 is down: sudo ip link set can0 up type can bitrate 1000000",
    "bus-off": r"can0 has left the bus .*\(bus off\): check the bit rates",
    "wrong-bit-rate": "its bit rate is not the drive's|can0 does not get its frames out",
    "motor-fault": "the motors are not driven any more: axis 0: motor: fault of the gate driver",
    "encoder-jump": r"the encoder of axis 0 jumped by \+0\.12.* turns: check its cable",
}


@pytest.mark.parametrize("fault", RUINOUS)
def test_a_fault_in_a_run_is_told_with_what_to_do_and_leaves_no_motor_driven(fault: str) -> None:
    with armed() as (stage, board, _):
        run(stage, 0.02)
        board.faults.set(fault)
        with pytest.raises(DeviceFault, match=RUINOUS[fault]):
            run(stage, PATIENCE)
        until(board, IDLE)
        with suppress(DeviceFault):
            stage.close()
        assert states(board) == [IDLE, IDLE]


@pytest.mark.parametrize("fault", ["nak", "lost-answer", "lost-frames", "bus-off", "delay-5ms", "delay-20ms"])
def test_what_lasts_a_moment_only_is_survived(fault: str) -> None:
    with armed() as (stage, board, _):
        run(stage, 0.03)
        board.faults.set(fault)
        run(stage, 0.02)
        board.faults.clear()
        run(stage, 0.1)
        assert states(board) == [CLOSED_LOOP, CLOSED_LOOP]
        assert time.perf_counter() - stage.sampled < 5e-3


def test_every_second_frame_lost_makes_samples_older_and_nothing_else() -> None:
    with armed() as (stage, board, _):
        board.faults.set("lost-frames")
        ages = []

        def command(now: float) -> np.ndarray:
            ages.append(time.perf_counter() - stage.sampled)
            return HOME + now

        run(stage, 0.15, command)
        assert states(board) == [CLOSED_LOOP, CLOSED_LOOP]
        assert 2e-3 < max(ages) < 0.03


UNOPENED = {
    "unplug": "axis 0 was not heard as node 0 of can0",
    "nak": "axis 0 was not heard as node 0 of can0",
    "wrong-bit-rate": "axis 0 was not heard as node 0 of can0. .*its bit rate is not the drive's.* bitrate 1000000",
    "link-down": "the CAN interface can0 is down",
    "bus-off": r"axis 0 was not heard .*\(bus off\)",
    "short": "the drive does not answer",
    "write-error": "does not get its frames out",
}


@pytest.mark.parametrize("fault", UNOPENED)
def test_what_keeps_it_from_being_opened_is_told_with_what_to_do(fault: str) -> None:
    stage, board, _ = make_on_can()
    board.faults.set(fault)
    with pytest.raises(DeviceOpenError, match=UNOPENED[fault]):
        stage.open()


def test_an_axis_that_refuses_to_be_armed_is_told_and_both_are_let_go() -> None:
    stage, board, _ = make_on_can(watchdog=0.1)
    with stage:
        stage.home(HOME)
        board.inside.axes[1].values["encoder.is_ready"] = False
        with pytest.raises(DeviceOpenError, match=r"could not be armed: axis 1: a state was asked for .*calibrate"):
            stage.arm()
        assert states(board) == [IDLE, IDLE]


def test_a_pro_says_in_its_own_words_what_is_wrong() -> None:
    with armed(version=(0, 6, 10)) as (stage, board, _):
        run(stage, 0.02)
        board.faults.set("motor-fault")
        with pytest.raises(DeviceFault, match="not driven any more: axis 0: fault of the gate driver"):
            run(stage, PATIENCE)
        until(board, IDLE)


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (errno.ENETDOWN, "is down: sudo ip link set can7 up"),
        (errno.ENODEV, "is down"),
        (errno.ENOBUFS, "does not get its frames out"),
        (errno.EIO, "a frame was lost at can7"),
    ],
)
def test_errors_of_an_interface_have_words(number: int, words: str) -> None:
    assert words in str(failure(OSError(number, "what"), "can7"))


def test_error_frames_have_words_and_other_news_of_an_interface_have_none() -> None:
    classes = {0x40: "bus off", 0x08: "bit rate", 0x80: "bit rate", 0x20: "acknowledges", 0x04: "", 0x100: "", 0x02: ""}
    for kind, words in classes.items():
        told = in_words(kind, "can7")
        assert re.search(words, told) if words else not told
