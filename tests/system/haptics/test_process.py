"""The servo process: started, controlled, abandoned and killed; processes on standby."""

import functools
import json
import os
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest

from haptics import ConfigurationError, Coulomb, DeviceFault, InertialImpedance, MasslessImpedance, Stribeck
from haptics.errors import ServoLost
from haptics.recording.recorder import Recorder
from haptics.recording.recording import EVENTS, Recording
from haptics.records import Permission
from haptics.servo.control import Job, SharedFiles
from haptics.servo.process import ServoProcess
from haptics.servo.standby import Standby
from haptics.trace import Reader
from tests.haptics.doubles import BenchDevice
from tests.processes import ended, program, until


def make_bench(fail_at, clock):
    return BenchDevice(clock, fail_at=fail_at)


def make_nothing(clock):
    raise ConfigurationError("bench.gain = -1: must be at least 0.")


def make_job(folder, factory, duration):
    element = MasslessImpedance(Coulomb(4.0), 6000.0, 10.0)
    return Job(factory, element, None, duration, folder, SharedFiles.unique())


@pytest.fixture
def recorder(tmp_path):
    recorder = Recorder(tmp_path / "run", {})
    yield recorder
    recorder._ticks.close()


Start = Any


@pytest.fixture
def start(recorder):
    servos: list[ServoProcess] = []

    def begin(factory=None, duration=None):
        servo = ServoProcess(make_job(recorder.folder, factory or functools.partial(make_bench, None), duration))
        servos.append(servo)
        recorder.attach(Reader(servo.trace))
        servo.start()
        return servo

    yield begin
    for servo in servos:
        servo.close()


def await_message(servo, seconds=90.0):
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        servo.beat()
        servo.connection.poll(0.02)
        message = servo.next_message()
        if message is not None and message[0] not in {"compiling", "compiled", "opening"}:
            return message
    raise AssertionError("no message from the servo")


def await_ticks(servo, count):
    until = time.monotonic() + 30.0
    while servo.trace.count < count:
        assert time.monotonic() < until
        servo.beat()
        time.sleep(0.005)


def test_run_of_a_given_length_ends_by_itself(start, recorder):
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


def test_published_parameters_are_active_within_a_tick(start, recorder):
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


def test_marker_is_in_the_rows_within_a_tick(start, recorder):
    servo = start()
    assert await_message(servo)[0] == "ready"
    await_ticks(servo, 20)
    assert set(servo.trace.since(0)["marker"]) == {0}
    for marker in (7, -1, 2**62):
        servo.mark(marker)
        set_at = servo.trace.count
        await_ticks(servo, set_at + 30)
        assert set(servo.trace.since(set_at + 1)["marker"]) == {marker}


def test_recording_has_the_time_of_tick_0(start, recorder):
    before = time.monotonic_ns(), datetime.now(UTC)
    servo = start(duration=0.1)
    while await_message(servo)[0] != "ended":
        recorder.drain()
    recorder.drain()
    after = time.monotonic_ns(), datetime.now(UTC)
    metadata = Recording(recorder.folder).metadata
    assert before[0] < metadata["origin_monotonic_ns"] < after[0] - 0.09e9
    assert before[1] < datetime.fromisoformat(metadata["origin_utc"]) < after[1]


def test_run_keeps_its_model_and_law(start):
    servo = start()
    other_law = MasslessImpedance(Stribeck(2.0, 3.0, 0.1), 6000.0, 10.0)
    other_model = InertialImpedance(Coulomb(2.0), 0.1, 600.0, 10.0)
    for other in (other_law, other_model):
        with pytest.raises(ConfigurationError, match="start a new run for others"):
            servo.publish(other)
    assert servo.next_version == 1


def test_terminated_servo_fades_out_and_reports(start, recorder):
    servo = start()
    assert await_message(servo)[0] == "ready"
    await_ticks(servo, 20)
    os.kill(servo.pid, signal.SIGTERM)
    assert await_message(servo) == ("ended", "stopped")
    rows = servo.trace.since(0)
    assert rows["permission"][-1] == Permission.ENDING
    assert rows["command"][-1].tolist() == [0.0, 0.0]
    assert json.loads((recorder.folder / EVENTS).read_text())["event"] == "stopped"


def test_fault_arrives_with_the_last_rows(start, recorder):
    servo = start(functools.partial(make_bench, 77))
    assert await_message(servo)[0] == "ready"
    with pytest.raises(DeviceFault, match="the cable was pulled") as caught:
        await_message(servo)
    assert len(caught.value.rows) == 77
    event = json.loads((recorder.folder / EVENTS).read_text())
    assert event["event"] == "fault"
    assert event["safe_output_monotonic_ns"] >= event["noticed_monotonic_ns"] > 0


def test_killed_servo_is_reported(start, recorder):
    servo = start()
    assert await_message(servo)[0] == "ready"
    await_ticks(servo, 100)
    os.kill(servo.pid, signal.SIGKILL)
    with pytest.raises(ServoLost, match="killed by SIGKILL"):
        await_message(servo, 5.0)
    count = servo.trace.count
    recorder.drain()
    assert recorder.rows()["tick"][-1] >= count - 2  # everything that was ever published is on disk


def test_silent_application_counts_as_lost(start, recorder):
    servo = start()
    assert await_message(servo)[0] == "ready"
    last_beat = time.monotonic_ns()
    assert servo.connection.poll(5.0)
    assert servo.next_message() == ("ended", "application lost")
    event = json.loads((recorder.folder / EVENTS).read_text())
    assert event["details"] == servo.loss == "the application sent no heartbeat for 1 s"
    assert 0.5e9 < event["noticed_monotonic_ns"] - last_beat < 1.5e9


DESERTER = """
import functools, sys
from pathlib import Path
from haptics.recording.recorder import Recorder
from haptics.records import Permission
from haptics.trace import Reader
from tests.system.haptics.test_process import ServoProcess, await_message, make_bench, make_job

if __name__ == "__main__":
    recorder = Recorder(Path(sys.argv[1]), {})
    servo = ServoProcess(make_job(recorder.folder, functools.partial(make_bench, None), None))
    recorder.attach(Reader(servo.trace))
    servo.start()
    await_message(servo)
    print(servo.pid, flush=True)
    while True:
        servo.beat()
        servo.connection.poll(0.02)
        recorder.drain()
"""


def test_killed_application_leaves_a_safe_device_and_a_recording(tmp_path):
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
    assert event["details"] == "the application has ended"
    assert 0 <= event["safe_output_monotonic_ns"] - event["noticed_monotonic_ns"] < 20e6
    assert event["noticed_monotonic_ns"] - killed_ns < 1.5e9
    recording = Recording(folder)
    assert recording.metadata["state"] == "interrupted"
    assert recording.metadata["error"] == "the application has ended"
    assert (folder / "ticks.npy.part").exists()
    assert len(recording.rows) == event["ticks"]


# --- standby


def test_standby_starts_without_numpy_and_numba():
    program = "import sys, haptics.servo.standby; assert not {'numpy', 'numba'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


def test_standby_ends_with_its_application():
    program = (
        "import os\nfrom haptics.servo.standby import Standby\n"
        "standby = Standby()\nstandby.start()\nprint(standby.process.pid, flush=True)\nos._exit(0)"
    )
    done = subprocess.run([sys.executable, "-c", program], check=True, timeout=60, stdout=subprocess.PIPE)
    until(lambda: ended(int(done.stdout)), "the standby outlived its application")


def test_servo_runs_on_a_standby_process(tmp_path):
    with Standby() as standby:
        servo = ServoProcess(make_job(tmp_path, functools.partial(make_bench, None), 0.05), standby)
        try:
            servo.start()
            assert servo.pid == standby.process.pid
            assert await_message(servo)[0] == "ready"
            assert await_message(servo) == ("ended", "completed")
        finally:
            servo.close()
    assert not standby.process.is_alive()


def test_closing_an_unstarted_servo_ends_the_standby(tmp_path):
    with Standby() as standby:
        ServoProcess(make_job(tmp_path, functools.partial(make_bench, None), 0.05), standby).close()
        assert not standby.process.is_alive()


def test_killed_standby_is_reported_as_lost(tmp_path):
    with Standby() as standby:
        standby.process.kill()
        standby.process.join()
        servo = ServoProcess(make_job(tmp_path, functools.partial(make_bench, None), 0.05), standby)
        try:
            servo.start()
            with pytest.raises(ServoLost, match="SIGKILL"):
                await_message(servo)
        finally:
            servo.close()
