"""Motors of the arm over USB and CAN in stepped time: faults end runs with idle motors, short faults are survived."""

import contextlib
import math
import time

import numpy as np
import pytest

from devices.emulators.odrive.axis import CLOSED_LOOP, IDLE
from devices.emulators.odrive.board import ENDPOINT_IN, ENDPOINT_OUT, TEXT_IN, TEXT_OUT
from haptics.errors import DeviceFault, DeviceNotFoundError, DeviceOpenError
from tests.devices.arm.odrive_rig import (
    HOME,
    PATIENCE,
    Place,
    armed,
    go_on,
    make,
    make_on_can,
    run,
    states,
    tick,
    until,
)

pytestmark = pytest.mark.usefixtures("stepped", "own_cache")

USB = ("native", "text")
WIRES = (*USB, "can")


@pytest.fixture
def wire(request, monkeypatch):
    """The protocol of USB, or CAN."""
    if request.param != "can":
        monkeypatch.setattr(Place, "protocol", request.param)
    return request.param


def make_on(wire, **settings):
    return make_on_can(**settings)[:2] if wire == "can" else make(**settings)


@contextlib.contextmanager
def armed_on(wire, **settings):
    """Yield a stage that holds its motors at home, and its drive."""
    if wire != "can":
        with armed(**settings) as rig:
            yield rig
        return
    stage, board, _ = make_on_can(**{"reply_timeout": 0.1} | settings)
    stage.open()
    try:
        stage.home(HOME)
        stage.arm()
        yield stage, board
    finally:
        board.faults.clear()
        with contextlib.suppress(DeviceFault):
            stage.close()


def on_wires(*names):
    return pytest.mark.parametrize("wire", names, indirect=True)


# --- following -------------------------------------------------------------------------------------------------------


def test_motors_follow_position_and_speed_over_usb():
    def reference(now):
        phase = math.tau * 2.0 * now
        swing = 0.2 * np.array((1.0 - math.cos(phase), math.sin(phase) - phase * math.exp(-40.0 * now)))
        return HOME + swing, 0.2 * math.tau * 2.0 * np.array((math.sin(phase), math.cos(phase)))

    with armed(integrator_gain=0.0) as (stage, _):
        start, errors = time.perf_counter(), []
        while (now := time.perf_counter() - start) < 0.6:
            command, speeds = reference(now)
            angles = tick(stage, command, speeds)
            if now > 0.2:
                errors.append(angles - reference(stage.sampled - start)[0])
            go_on(stage)
        assert np.abs(errors).max() < 0.05  # without the speed the lag is 0.13 rad


# --- faults in a run -------------------------------------------------------------------------------------------------

ENDED = {
    "unplug": "the drive was unplugged, or lost its power: plug it in, home it and start again",
    "read-error": "an answer was lost .*: check cable and hub",
    "write-error": "a packet was lost .*: check cable and hub",
    "nak": "the drive did not take a packet in time|the drive does not answer",
    "stall": r"the drive refused .* \(stall\): switch its supply off and on",
    "wrong-crc": "the drive does not answer: it drops packets",
    "lost-answer": "the drive does not answer",
    "short": "answered with 0 bytes in place of [14]: the request is unknown to it|at its serial port",
    "motor-fault": "the motors were disabled: axis 0: motor: fault of the gate driver",
    "encoder-jump": r"the encoder of axis 0 jumped by \+0\.12.* turns: check its cable",
}
ENDED_ON_CAN = {
    "unplug": "nobody on the bus of can0 acknowledges a frame|does not get its frames out|does not answer as node",
    "read-error": r"a frame was lost at can0 \(.*\): check cable and adapter",
    "write-error": "can0 does not get its frames out: is the drive switched on",
    **dict.fromkeys(("nak", "lost-answer", "short"), "the drive does not answer as node [01] of can0"),
    "link-down": "the CAN interface can0 is down: sudo ip link set can0 up type can bitrate 1000000",
    "bus-off": r"can0 has left the bus .*\(bus off\): check the bit rates",
    "wrong-bit-rate": "its bit rate is not the drive's|can0 does not get its frames out",
    **{fault: ENDED[fault] for fault in ("motor-fault", "encoder-jump")},
}
ENDING = [(wire, fault) for wire in USB for fault in ENDED if (wire, fault) != ("text", "wrong-crc")]
ENDING += [("can", fault) for fault in ENDED_ON_CAN]


@pytest.mark.parametrize(("wire", "fault"), ENDING, indirect=["wire"])
def test_fault_in_a_run_is_reported_and_leaves_no_motor_driven(wire, fault):
    """Lines of text have no checksum of a table, so that `wrong-crc` does not exist for them."""
    with armed_on(wire, **({} if wire == "can" else {"watchdog": 0.1})) as (stage, board):
        run(stage, 0.02)
        board.faults.set(fault)
        with pytest.raises(DeviceFault, match=(ENDED_ON_CAN if wire == "can" else ENDED)[fault]):
            run(stage, PATIENCE)
        until(board, IDLE)
        if wire != "can":
            with pytest.raises(DeviceFault):
                tick(stage, HOME)
        with contextlib.suppress(DeviceFault):
            stage.close()
        assert states(board) == [IDLE, IDLE]


def test_can_drive_of_version_0_6_names_its_fault():
    with armed_on("can", version=(0, 6, 10)) as (stage, board):
        run(stage, 0.02)
        board.faults.set("motor-fault")
        with pytest.raises(DeviceFault, match="motors were disabled: axis 0: fault of the gate driver"):
            run(stage, PATIENCE)
        until(board, IDLE)


SHORT = [(wire, fault) for wire in WIRES for fault in ("nak", "lost-answer", "delay-5ms", "delay-20ms")]


@pytest.mark.parametrize(("wire", "fault"), [*SHORT, ("can", "lost-frames"), ("can", "bus-off")], indirect=["wire"])
def test_short_fault_is_survived(wire, fault):
    with armed_on(wire) as (stage, board):
        run(stage, 0.03)
        board.faults.set(fault)
        run(stage, 0.02)
        board.faults.clear()
        run(stage, 0.1)
        assert states(board) == [CLOSED_LOOP, CLOSED_LOOP]
        assert time.perf_counter() - stage.sampled < 5e-3


@on_wires(*USB)
def test_pipe_that_stalled_once_is_restarted(wire):
    with armed() as (stage, board):
        run(stage, 0.02)
        board.halted.update({"native": {ENDPOINT_IN, ENDPOINT_OUT}, "text": {TEXT_IN, TEXT_OUT}}[wire])
        run(stage, 0.05)
        assert not board.halted
        assert states(board) == [CLOSED_LOOP, CLOSED_LOOP]


@on_wires(*USB)
def test_slow_transfers_make_samples_old_only(wire):
    ages = []
    for latency in (0.0, 1e-3):
        with armed(latency=latency) as (stage, board):
            run(stage, 0.1)
            tick(stage, HOME)
            ages.append(time.perf_counter() - stage.sampled)
            assert states(board) == [CLOSED_LOOP, CLOSED_LOOP]
    transfers = {"native": 5, "text": 2}[wire]  # the least in a round, one after the other
    assert ages[1] > transfers * 1e-3


def test_lost_can_frames_make_samples_old_only():
    with armed_on("can") as (stage, board):
        board.faults.set("lost-frames")  # every second one
        ages = []

        def command(now):
            ages.append(time.perf_counter() - stage.sampled)
            return HOME + now

        run(stage, 0.15, command)
        assert states(board) == [CLOSED_LOOP, CLOSED_LOOP]
        assert 2e-3 < max(ages) < 0.03


@on_wires(*USB)
def test_error_of_the_thread_ends_the_run(wire, monkeypatch):
    with armed() as (stage, board):
        run(stage, 0.02)
        monkeypatch.setattr(stage._streaming, "_round", lambda *_: 1 / 0)
        with pytest.raises(DeviceFault, match="division by zero"):
            run(stage, PATIENCE)
        until(board, IDLE)


# --- opening ---------------------------------------------------------------------------------------------------------

UNOPENED = {
    "no-permission": r"drive 1209:0d32 is there, but may not be opened .*: haptics doctor udev prints",
    "busy": "held by another program.*fuser",
    "nak": "did not take a packet in time",
    "stall": "stall",
    "lost-answer": "does not answer",
    "short": "answered with 0 bytes in place of 4",
    "wrong-crc": "does not answer: it drops packets that do not end with the checksum",
}
UNOPENED_ON_CAN = {
    **dict.fromkeys(("unplug", "nak"), "axis 0 was not heard as node 0 of can0"),
    "wrong-bit-rate": "axis 0 was not heard as node 0 of can0. .*its bit rate is not the drive's.* bitrate 1000000",
    "link-down": "the CAN interface can0 is down",
    "bus-off": r"axis 0 was not heard .*\(bus off\)",
    "short": "the drive does not answer",
    "write-error": "does not get its frames out",
}
UNOPENING = [(wire, fault) for wire in USB for fault in UNOPENED] + [("can", fault) for fault in UNOPENED_ON_CAN]


@pytest.mark.parametrize(("wire", "fault"), UNOPENING, indirect=["wire"])
def test_fault_at_opening_is_reported(wire, fault):
    stage, board = make_on(wire)
    board.faults.set(fault)
    with pytest.raises(DeviceOpenError, match=(UNOPENED_ON_CAN if wire == "can" else UNOPENED)[fault]):
        stage.open()
    if wire == "can":
        return
    assert not board.owners
    board.faults.clear()
    with stage:
        stage.home(HOME)
        stage.arm()


@on_wires(*WIRES)
def test_axis_that_refuses_to_be_armed_leaves_both_idle(wire):
    stage, board = make_on(wire, **({"watchdog": 0.1} if wire == "can" else {}))
    with stage:
        stage.home(HOME)
        board.inside.axes[1].values["encoder.is_ready"] = False
        with pytest.raises(DeviceOpenError, match=r"could not be armed: axis 1: a state was asked for .*calibrate"):
            stage.arm()
        assert states(board) == [IDLE, IDLE]


@on_wires(*USB)
def test_drive_that_was_unplugged_must_be_homed_again(wire):
    stage, board = make()
    with stage:
        stage.home(HOME)
        stage.arm()
        run(stage, 0.02)
        board.unplug()
        with pytest.raises(DeviceFault, match="unplugged"):
            run(stage, PATIENCE)
        with pytest.raises(DeviceFault, match="could not be disarmed"):
            stage.close()
        with pytest.raises(DeviceNotFoundError):
            stage.open()
        board.plug()
        stage.open()
        assert not stage.homed
        stage.home(HOME)
        stage.arm()
        run(stage, 0.05)
        assert states(board) == [CLOSED_LOOP, CLOSED_LOOP]


@on_wires(*USB)
def test_drive_with_another_address_after_its_reset_is_found(wire):
    stage, board = make()
    board.faults.set("reset-comes-anew")
    address = board.address
    with stage:
        assert board.address != address
        assert stage.drive.get("vbus_voltage") == 24.0


@on_wires(*USB)
def test_missing_endpoint_is_named_with_the_versions(wire):
    stage, _ = make()
    with stage:
        for ask in (stage.drive.get, stage.drive.call):
            with pytest.raises(DeviceOpenError, match=r"the drive has no axis2\.error.*0\.5\.2 to 0\.5\.6"):
                ask("axis2.error")
