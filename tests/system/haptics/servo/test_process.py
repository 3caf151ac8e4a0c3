"""The servo process for real: spawned, spoken to, deserted and killed."""

import functools
import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from haptics import ConfigurationError, Coulomb, DeviceFault, InertialImpedance, MasslessImpedance, Stribeck
from haptics.clock import Clock
from haptics.errors import ServoLost
from haptics.recording.recorder import Recorder
from haptics.recording.recording import EVENTS, Recording
from haptics.records import Permission
from haptics.servo.job import Job, Paths
from haptics.servo.process import ServoProcess
from haptics.trace import Reader
from tests.haptics.doubles import BenchDevice
from tests.processes import ended, program, until


def make_bench(fail_at: int | None, clock: Clock) -> BenchDevice:
    return BenchDevice(clock, fail_at=fail_at)


def make_nothing(clock: Clock) -> BenchDevice:
    raise ConfigurationError("bench.gain = -1: must be at least 0.")


def make_job(folder: Path, factory: Any, duration: float | None) -> Job:
    element = MasslessImpedance(Coulomb(4.0), 6000.0, 10.0)
    return Job(factory, element, None, duration, folder, Paths.unique())


@pytest.fixture
def recorder(tmp_path: Path) -> Iterator[Recorder]:
    recorder = Recorder(tmp_path / "run", {})
    yield recorder
    recorder._ticks.close()


Start = Any


@pytest.fixture
def start(recorder: Recorder) -> Iterator[Start]:
    servos: list[ServoProcess] = []

    def begin(factory: Any = None, duration: float | None = None) -> ServoProcess:
        servo = ServoProcess(make_job(recorder.folder, factory or functools.partial(make_bench, None), duration))
        servos.append(servo)
        recorder.follow(Reader(servo.trace))
        servo.start()
        return servo

    yield begin
    for servo in servos:
        servo.close()


def await_message(servo: ServoProcess, seconds: float = 90.0) -> tuple[str, Any]:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        servo.beat()
        servo.connection.poll(0.02)
        message = servo.next_message()
        if message is not None and message[0] not in {"compiling", "compiled", "opening"}:
            return message
    raise AssertionError("the servo said nothing")


def await_ticks(servo: ServoProcess, count: int) -> None:
    until = time.monotonic() + 30.0
    while servo.trace.count < count:
        assert time.monotonic() < until
        servo.beat()
        time.sleep(0.005)


def test_a_run_of_a_given_length_ends_by_itself(start: Start, recorder: Recorder) -> None:
    servo = start(duration=0.5)
    kind, real_time = await_message(servo)
    assert kind == "ready"
    assert real_time["scheduling"] in {"fifo", "other"}
    assert await_message(servo) == ("ended", "completed")
    recorder.drain()
    rows = recorder.rows()
    assert rows["tick"][-1] <= 499
    assert len(rows) == servo.trace.count
    assert (np.diff(rows["tick"]) >= 1).all()


def test_a_changed_parameter_is_in_force_within_a_tick_of_being_published(start: Start, recorder: Recorder) -> None:
    servo = start()
    assert await_message(servo)[0] == "ready"
    for force in (1.0, 2.0, 3.0):
        await_ticks(servo, servo.trace.count + 50)
        servo.publish(MasslessImpedance(Coulomb(force), 6000.0, 10.0))
        # The row that may be under way still has the old settings, the one after it must have the new ones.
        published = servo.trace.count
        await_ticks(servo, published + 50)
        rows = servo.trace.since(published + 1)
        assert (rows["settings_version"] == force).all()
        assert np.hypot(*rows["command"][-1]) == pytest.approx(force)


def test_a_marker_is_in_the_rows_within_a_tick_of_being_set(start: Start, recorder: Recorder) -> None:
    servo = start()
    assert await_message(servo)[0] == "ready"
    await_ticks(servo, 20)
    assert set(servo.trace.since(0)["marker"]) == {0}
    for marker in (7, -1, 2**62):
        servo.mark(marker)
        set_at = servo.trace.count
        await_ticks(servo, set_at + 30)
        assert set(servo.trace.since(set_at + 1)["marker"]) == {marker}


def test_a_recording_says_when_its_tick_0_was(start: Start, recorder: Recorder) -> None:
    before = time.monotonic_ns(), datetime.now(UTC)
    servo = start(duration=0.1)
    while await_message(servo)[0] != "ended":
        recorder.drain()
    recorder.drain()
    after = time.monotonic_ns(), datetime.now(UTC)
    metadata = Recording(recorder.folder).metadata
    assert before[0] < metadata["origin_monotonic_ns"] < after[0] - 0.09e9
    assert before[1] < datetime.fromisoformat(metadata["origin_utc"]) < after[1]


def test_a_run_keeps_its_model_and_its_law(start: Start) -> None:
    servo = start()
    other_law = MasslessImpedance(Stribeck(2.0, 3.0, 0.1), 6000.0, 10.0)
    other_model = InertialImpedance(Coulomb(2.0), 0.1, 600.0, 10.0)
    for other in (other_law, other_model):
        with pytest.raises(ConfigurationError, match="start a new run for others"):
            servo.publish(other)
    assert servo.next_version == 1


def test_a_stop_request_is_obeyed(start: Start) -> None:
    servo = start()
    assert await_message(servo)[0] == "ready"
    await_ticks(servo, 20)
    servo.stop()
    assert await_message(servo) == ("ended", "stopped")


def test_a_servo_that_is_asked_to_terminate_fades_out_and_says_so(start: Start, recorder: Recorder) -> None:
    servo = start()
    assert await_message(servo)[0] == "ready"
    await_ticks(servo, 20)
    os.kill(servo.pid, signal.SIGTERM)
    assert await_message(servo) == ("ended", "stopped")
    rows = servo.trace.since(0)
    assert rows["permission"][-1] == Permission.ENDING
    assert rows["command"][-1].tolist() == [0.0, 0.0]
    assert json.loads((recorder.folder / EVENTS).read_text())["event"] == "stopped"


def test_a_fault_arrives_with_the_last_rows(start: Start, recorder: Recorder) -> None:
    servo = start(functools.partial(make_bench, 77))
    assert await_message(servo)[0] == "ready"
    with pytest.raises(DeviceFault, match="the cable was pulled") as caught:
        await_message(servo)
    assert len(caught.value.rows) == 77
    event = json.loads((recorder.folder / EVENTS).read_text())
    assert event["event"] == "fault"
    assert event["safe_output_monotonic_ns"] >= event["noticed_monotonic_ns"] > 0


def test_an_error_before_the_first_tick_arrives_as_itself(start: Start) -> None:
    servo = start(make_nothing)
    with pytest.raises(ConfigurationError, match=r"bench\.gain"):
        await_message(servo)


def test_a_killed_servo_is_noticed_and_named(start: Start, recorder: Recorder) -> None:
    servo = start()
    assert await_message(servo)[0] == "ready"
    await_ticks(servo, 100)
    os.kill(servo.pid, signal.SIGKILL)
    with pytest.raises(ServoLost, match="killed by SIGKILL"):
        await_message(servo, 5.0)
    count = servo.trace.count
    recorder.drain()
    assert recorder.rows()["tick"][-1] >= count - 2  # everything that was ever published is on disk


def test_a_silent_application_counts_as_lost(start: Start, recorder: Recorder) -> None:
    servo = start()
    assert await_message(servo)[0] == "ready"
    last_beat = time.monotonic_ns()
    assert servo.connection.poll(5.0)
    assert servo.next_message() == ("ended", "application lost")
    event = json.loads((recorder.folder / EVENTS).read_text())
    assert 0.5e9 < event["noticed_monotonic_ns"] - last_beat < 1.5e9


DESERTER = """
import functools, sys
from pathlib import Path
from haptics.recording.recorder import Recorder
from haptics.records import Permission
from haptics.trace import Reader
from tests.system.haptics.servo.test_process import ServoProcess, await_message, make_bench, make_job

if __name__ == "__main__":
    recorder = Recorder(Path(sys.argv[1]), {})
    servo = ServoProcess(make_job(recorder.folder, functools.partial(make_bench, None), None))
    recorder.follow(Reader(servo.trace))
    servo.start()
    await_message(servo)
    print(servo.pid, flush=True)
    while True:
        servo.beat()
        servo.connection.poll(0.02)
        recorder.drain()
"""


def test_a_killed_application_leaves_a_safe_device_and_a_complete_recording(tmp_path: Path) -> None:
    folder = tmp_path / "deserted"
    with program("-c", DESERTER, str(folder), stdout=subprocess.PIPE) as application:
        assert application.stdout is not None
        servo_pid = int(application.stdout.readline())
        time.sleep(0.5)
        killed_ns = time.monotonic_ns()
        application.kill()
        application.wait()
        until(lambda: ended(servo_pid), "the servo never ended", 10.0)
    event = json.loads((folder / EVENTS).read_text())
    assert event["event"] == "application lost"
    assert 0 <= event["safe_output_monotonic_ns"] - event["noticed_monotonic_ns"] < 20e6
    assert event["noticed_monotonic_ns"] - killed_ns < 1.5e9
    recording = Recording(folder)
    assert recording.metadata["state"] == "interrupted"
    assert (folder / "ticks.npy.part").exists()
    assert len(recording.rows) == event["ticks"]
