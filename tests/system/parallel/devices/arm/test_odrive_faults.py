"""Everything that can go wrong on the wire and in the drive: what is said, how soon, and that no motor stays driven."""

import contextlib
import time

import pytest

from devices.arm.motors import OdriveStage
from devices.emulators.odrive.axis import CLOSED_LOOP, IDLE
from devices.emulators.odrive.board import ENDPOINT_IN, ENDPOINT_OUT, TEXT_IN, TEXT_OUT
from haptics.errors import DeviceFault, DeviceNotFoundError, DeviceOpenError
from tests.devices.arm.odrive_rig import HOME, PATIENCE, Place, armed, make, run, states, until

pytestmark = pytest.mark.usefixtures("stepped")


@pytest.fixture(autouse=True)
def _own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.getbasetemp() / "cache"))


@pytest.fixture(autouse=True, params=["native", "text"])
def protocol(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """How commands and samples go."""
    monkeypatch.setattr(Place, "protocol", request.param)
    return str(request.param)


RUINOUS = {
    "unplug": "the drive was unplugged, or lost its power: plug it in, home it and start again",
    "read-error": "an answer was lost .*: check cable and hub",
    "write-error": "a packet was lost .*: check cable and hub",
    "nak": "the drive did not take a packet in time|the drive does not answer",
    "stall": r"the drive refused .* \(stall\): switch its supply off and on",
    "wrong-crc": "the drive does not answer: it drops packets",
    "lost-answer": "the drive does not answer",
    "short": "answered with 0 bytes in place of [14]: it does not know what it was asked for|at its serial port",
    "motor-fault": "the motors are not driven any more: axis 0: motor: fault of the gate driver",
    "encoder-jump": r"the encoder of axis 0 jumped by \+0\.12.* turns: check its cable",
}


@pytest.mark.parametrize("fault", RUINOUS)
def test_a_fault_in_a_run_is_told_with_what_to_do_and_leaves_no_motor_driven(fault: str, protocol: str) -> None:
    if (fault, protocol) == ("wrong-crc", "text"):
        pytest.skip("lines of text have no checksum of a table")
    with armed(watchdog=0.1) as (stage, board):
        run(stage, 0.02)
        board.faults.set(fault)
        with pytest.raises(DeviceFault, match=RUINOUS[fault]):
            run(stage, PATIENCE)
        until(board, IDLE)
        with pytest.raises(DeviceFault):
            stage.tick(HOME)
        with contextlib.suppress(DeviceFault):
            stage.close()
        assert states(board) == [IDLE, IDLE]


@pytest.mark.parametrize("fault", ["nak", "lost-answer", "delay-5ms", "delay-20ms"])
def test_what_lasts_a_moment_only_is_survived(fault: str) -> None:
    with armed() as (stage, board):
        run(stage, 0.03)
        board.faults.set(fault)
        run(stage, 0.02)
        board.faults.clear()
        run(stage, 0.1)
        assert states(board) == [CLOSED_LOOP, CLOSED_LOOP]
        assert time.perf_counter() - stage.sampled < 5e-3


def test_a_pipe_that_has_stalled_once_is_set_going_again(protocol: str) -> None:
    with armed() as (stage, board):
        run(stage, 0.02)
        pipes = {"native": {ENDPOINT_IN, ENDPOINT_OUT}, "text": {TEXT_IN, TEXT_OUT}}[protocol]
        board.halted.update(pipes)
        run(stage, 0.05)
        assert not board.halted
        assert states(board) == [CLOSED_LOOP, CLOSED_LOOP]


def test_slow_transfers_make_samples_old_and_nothing_else(protocol: str) -> None:
    ages = []
    for latency in (0.0, 1e-3):
        with armed(latency=latency) as (stage, board):
            run(stage, 0.1)
            stage.tick(HOME)
            ages.append(time.perf_counter() - stage.sampled)
            assert states(board) == [CLOSED_LOOP, CLOSED_LOOP]
    transfers = {"native": 5, "text": 2}[protocol]  # of a round, at least: one after the other
    assert ages[1] > transfers * 1e-3


def test_answers_that_come_too_late_are_not_taken_for_others() -> None:
    with armed(reply_timeout=0.002) as (stage, board):
        board.faults.set("lost-answer")
        run(stage, 0.003)
        board.faults.clear()
        run(stage, 0.1)
        assert stage._streaming is not None
        assert not stage._streaming.failure


def test_whatever_ends_the_thread_the_tick_hears_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    with armed() as (stage, board):
        run(stage, 0.02)
        monkeypatch.setattr(stage._streaming, "_take", lambda *_: 1 / 0)
        with pytest.raises(DeviceFault, match="division by zero"):
            run(stage, PATIENCE)
        until(board, IDLE)


def test_a_drive_that_is_unplugged_and_put_back_must_be_homed_anew() -> None:
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


def test_a_drive_that_comes_back_under_another_address_when_it_is_reset_is_found() -> None:
    stage, board = make()
    board.faults.set("reset-comes-anew")
    address = board.address
    with stage:
        assert board.address != address
        assert stage.drive.get("vbus_voltage") == 24.0


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("no-permission", r"may not be opened .*\n.*1209.*0d32"),
        ("busy", "held by another program.*fuser"),
        ("nak", "did not take a packet in time"),
        ("stall", "stall"),
        ("lost-answer", "does not answer"),
        ("short", "answered with 0 bytes in place of 4"),
        ("wrong-crc", "does not answer: it drops packets that do not end with the checksum"),
    ],
)
def test_what_keeps_it_from_being_opened_is_told_with_what_to_do(fault: str, message: str) -> None:
    stage, board = make()
    board.faults.set(fault)
    with pytest.raises(DeviceOpenError, match=message):
        stage.open()
    assert not board.owners
    board.faults.clear()
    with stage:
        stage.home(HOME)
        stage.arm()


def test_an_axis_that_refuses_to_be_armed_is_told_and_both_are_let_go() -> None:
    stage, board = make()
    with stage:
        stage.home(HOME)
        board.inside.axes[1].values["encoder.is_ready"] = False
        with pytest.raises(DeviceOpenError, match=r"could not be armed: axis 1: a state was asked for .*calibrate"):
            stage.arm()
        assert states(board) == [IDLE, IDLE]


def test_a_table_that_lacks_something_is_told() -> None:
    stage, _ = make()
    with stage:
        for ask in (stage.drive.get, stage.drive.call):
            with pytest.raises(DeviceOpenError, match=r"the drive has no axis2\.error.*0\.5\.2 to 0\.5\.6"):
                ask("axis2.error")


def test_timed_faults_are_for_runs_by_settings_alone() -> None:
    stage, board = make("motor-fault@0.15")
    assert isinstance(stage, OdriveStage)
    with stage:
        stage.home(HOME)
        stage.arm()
        with pytest.raises(DeviceFault, match="fault of the gate driver"):
            run(stage, PATIENCE)
        assert board.now >= 0.15
