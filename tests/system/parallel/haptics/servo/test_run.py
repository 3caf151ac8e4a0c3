"""A run in its real servo process: whatever ends it, the servo is gone and the recording says how it ended."""

import functools
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from haptics.clock import Clock
from haptics.device import Causality
from haptics.errors import ConfigurationError, HapticError
from haptics.recording.recorder import Recorder
from haptics.recording.recording import Recording
from haptics.servo.job import SILENCE
from haptics.servo.run import NeverStarted, Run
from tests.haptics.doubles import BenchDevice
from tests.processes import ended
from tests.system.haptics.servo.test_process import make_bench, make_job, make_nothing


class Attended(Run):
    """Does one thing, once 100 ticks have been executed."""

    def __init__(self, folder: Path, act: Callable[["Attended"], object], factory: object = None) -> None:
        recorder = Recorder(folder, {})
        job = make_job(recorder.folder, factory or functools.partial(make_bench, None), None)
        super().__init__(recorder, job, "bench", lambda line: None)
        self._acts = [act]

    def attend(self) -> None:
        if self._acts and self.servo.trace.count > 100:
            self._acts.pop()(self)


def test_a_run_that_is_stopped_is_recorded_whole_and_certified(tmp_path: Path) -> None:
    run = Attended(tmp_path / "run", Run.stop)
    reason = run.follow()
    assert (reason, run.ending.fault) == ("stopped", None)
    found = run.ending.certify(Causality.IMPEDANCE, used=run.servo.used, granted=run.granted)
    recording = Recording(tmp_path / "run")
    assert len(recording.rows) == found["ticks"] == run.servo.trace.count > 100
    assert (recording.metadata["state"], recording.metadata["reason"]) == ("complete", "stopped")
    assert recording.metadata["certificate"].items() >= {**run.granted, "lost_ticks": 0}.items()
    assert ended(run.servo.pid)


class Telling(BenchDevice):
    """Says something of itself when it is open."""

    @property
    def facts(self) -> dict[str, float | None]:
        return {"current_limit_a": 10.0, "torque_limit_nm": None} if self.opened else {"open": False}


def make_telling(clock: Clock) -> Telling:
    return Telling(clock)


def test_what_a_device_says_of_itself_when_it_is_open_is_recorded(tmp_path: Path) -> None:
    Attended(tmp_path / "run", Run.stop, make_telling).follow()
    facts = Recording(tmp_path / "run").metadata["device_facts"]
    assert facts == {"current_limit_a": 10.0, "torque_limit_nm": None}


def test_what_takes_its_time_is_no_silence(tmp_path: Path) -> None:
    def busy() -> int:
        until = time.monotonic() + 1.3 * SILENCE
        while time.monotonic() < until:  # as a compiler is: at work in Python
            pass
        return 7

    found: list[int] = []

    def act(run: Attended) -> None:
        found.append(run.meanwhile(busy))
        run.stop()

    run = Attended(tmp_path / "run", act)
    reason = run.follow()
    assert (reason, run.ending.fault, found) == ("stopped", None, [7])
    assert run.recorder.count > 1e3 * SILENCE


def test_what_goes_wrong_meanwhile_comes_out_as_it_is(tmp_path: Path) -> None:
    def slow() -> None:
        raise TimeoutError("mine")

    run = Attended(tmp_path / "run", lambda run: run.meanwhile(slow))
    with pytest.raises(TimeoutError, match="mine"):
        run.follow()


def test_a_mistake_beside_a_run_ends_it_and_closes_its_recording(tmp_path: Path) -> None:
    run = Attended(tmp_path / "run", lambda run: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        run.follow()
    recording = Recording(tmp_path / "run")
    assert recording.metadata["state"] == "interrupted"
    assert len(recording.rows) == run.servo.trace.count > 100
    assert ended(run.servo.pid)


@pytest.mark.parametrize(
    ("number", "words", "state"),
    [
        (signal.SIGKILL, "bench lost its servo: the servo process died", "interrupted"),
        (signal.SIGTERM, "bench was brought to its safe output after tick .* another program terminated", "complete"),
    ],
)
def test_a_servo_that_somebody_else_ends_is_a_fault_of_the_run(
    number: int, words: str, state: str, tmp_path: Path
) -> None:
    run = Attended(tmp_path / "run", lambda run: os.kill(run.servo.pid, number))
    run.follow()
    with pytest.raises(HapticError, match=words):
        raise run.ending.fault or AssertionError
    recording = Recording(tmp_path / "run")
    assert (recording.metadata["state"], recording.metadata["reason"]) == (state, "fault")
    assert len(recording.rows) == run.servo.trace.count
    assert ended(run.servo.pid)


def test_a_run_that_is_called_off_before_its_device_is_open_leaves_nothing(tmp_path: Path) -> None:
    run = Attended(tmp_path / "run", Run.stop)
    run.stop()
    with pytest.raises(NeverStarted):
        run.follow()
    assert list(tmp_path.iterdir()) == []
    assert ended(run.servo.pid)


def test_a_device_that_cannot_be_made_leaves_nothing(tmp_path: Path) -> None:
    run = Attended(tmp_path / "run", Run.stop, make_nothing)
    with pytest.raises(ConfigurationError, match=r"bench\.gain"):
        run.follow()
    assert list(tmp_path.iterdir()) == []
