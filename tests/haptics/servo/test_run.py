"""The side of the application: handle of the servo process, watchdog, and run, without a running servo."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import threading
from multiprocessing import Pipe
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from haptics import ConfigurationError, Coulomb, DeviceFault, MasslessImpedance, Stribeck
from haptics.errors import ServoLost
from haptics.kernel_cache import COMPILATION
from haptics.recording.recorder import Recorder
from haptics.recording.recording import Recording
from haptics.records import NEUTRAL
from haptics.servo.control import DISMISSED, Job, SharedFiles
from haptics.servo.kernels import SETTINGS
from haptics.servo.process import ServoProcess, serve_job
from haptics.servo.run import FREEZE_TIMEOUT, Run, ServoWatchdog
from haptics.servo.standby import TERMINAL_SIGNALS, Standby
from haptics.shared import Mailbox
from tests.haptics.doubles import BenchDevice

ELEMENT = MasslessImpedance(Coulomb(4.0), 6000.0, 10.0)


def make_nothing(clock):
    raise ConfigurationError("bench.gain = -1: must be at least 0.")


@pytest.fixture
def recorder(tmp_path):
    recorder = Recorder(tmp_path / "run", {})
    yield recorder
    recorder._ticks.close()


@pytest.fixture
def make_job(recorder):
    jobs = []

    def make(factory=BenchDevice):
        jobs.append(Job(factory, ELEMENT, None, None, recorder.folder, SharedFiles.unique()))
        return jobs[-1]

    yield make
    for job in jobs:
        job.paths.close()


def add_rows(trace, count):
    trace.slots[:count] = NEUTRAL
    trace.slots["tick"][:count] = np.arange(count)
    trace.counter[0] = count


# --- handle of the process --------------------------------------------------------------------------------------------


def test_progress_names_the_last_tick(make_job):
    servo = ServoProcess(make_job())
    assert servo.newest_tick == -1
    assert servo.progress_phrase == "before its first tick"
    for count in (1, 5):
        add_rows(servo.trace, count)
        assert servo.newest_tick == count - 1
        assert servo.progress_phrase.startswith(f"after tick {count - 1}; ")
    servo.close()


def test_process_id_is_the_one_of_the_standby(make_job):
    with Standby() as standby:
        servo = ServoProcess(make_job(), standby)
        assert servo.pid == standby.process.pid > 0
        servo.close()


def test_settings_use_the_mailbox_until_a_program_was_sent(make_job):
    standby = Standby()
    servo = ServoProcess(make_job(), standby)
    settings = Mailbox(servo.job.paths.settings.path, SETTINGS)
    received = standby._far_programs

    def switch(element):
        servo.switch_program(element, {"version": servo.next_version})
        found = settings.read()
        return servo.next_version - 1, 0 if found is None else int(found[1]["version"][0]), received.poll()

    assert switch(MasslessImpedance(Coulomb(2.0), 6000.0, 10.0)) == (1, 1, False)
    assert switch(MasslessImpedance(Stribeck(2.0, 3.0, 0.1), 6000.0, 10.0)) == (2, 1, True)
    assert received.recv() == {"version": 2}
    # Sent through the mailbox, these numbers could apply before the program that precedes them.
    assert switch(MasslessImpedance(Coulomb(3.0), 6000.0, 10.0)) == (3, 1, True)
    servo.close()


# --- watchdog ---------------------------------------------------------------------------------------------------------


class StubServo:
    """Servo process with a settable state."""

    def __init__(self, halted=False):
        self.halted, self.killed = halted, False
        self.trace, self.progress_phrase = SimpleNamespace(count=0), "after tick 7"

    def kill(self):
        self.killed = True


@pytest.fixture
def now(monkeypatch):
    """Monotonic clock of the watchdog, set by the test [s]."""
    now = [100.0]
    monkeypatch.setattr("haptics.servo.run.time", SimpleNamespace(monotonic=lambda: now[0]))
    return now


def checks_until_lost(servo, now, most=1000):
    """Check every 20 ms; return the number of checks before the servo counts as lost, None if it does not."""
    watch = ServoWatchdog()
    for number in range(most):
        try:
            watch.check(servo, started=True)
        except ServoLost:
            return number
        now[0] += 0.02
    return None


def test_stopped_servo_is_killed(now):
    servo: Any = StubServo(halted=True)
    with pytest.raises(ServoLost, match="was stopped from outside and was ended after tick 7"):
        ServoWatchdog().check(servo, started=True)
    assert servo.killed


def test_servo_without_ticks_is_killed_after_the_timeout(now):
    servo: Any = StubServo()
    assert checks_until_lost(servo, now) == pytest.approx(FREEZE_TIMEOUT / 0.02, abs=1)
    assert servo.killed


def test_time_before_the_start_and_during_a_suspension_does_not_count(now):
    servo: Any = StubServo()
    watch = ServoWatchdog()
    for _ in range(10):
        watch.check(servo, started=False)
        now[0] += 60.0
    for _ in range(10):
        watch.check(servo, started=True)
        now[0] += 60.0  # this process was suspended as well
    assert not servo.killed


# --- run --------------------------------------------------------------------------------------------------------------


@pytest.fixture
def run(recorder, make_job):
    run = Run(recorder, make_job(), "the bench", lambda line: None)
    yield run
    run.servo.close()


def receive(run, message):
    run.servo.next_message = lambda: message
    return run.wait_and_handle(ServoWatchdog(), lambda: ())


def test_run_ends_if_its_recording_cannot_be_written(run):
    with run.writing():
        raise OSError(errno.ENOSPC, "No space left on device")
    assert run.stopping
    assert "could not be written (No space left on device)" in str(run.ending.fault)


def test_end_that_was_not_requested_is_a_fault(run):
    with pytest.raises(DeviceFault, match="another program terminated the servo process"):
        receive(run, ("ended", "stopped"))
    run.stop()
    assert receive(run, ("ended", "stopped")) == "stopped"


def test_run_that_its_servo_has_given_up_is_a_fault(run):
    run.servo.loss = "the application sent no heartbeat for 1 s"
    with pytest.raises(DeviceFault, match="safe output after tick -1: the application sent no heartbeat for 1 s"):
        receive(run, ("ended", "application lost"))


# --- side of the servo ------------------------------------------------------------------------------------------------


@pytest.fixture
def own_signals(monkeypatch):
    """Restore the signal handlers and the compilation watcher of this process."""
    before = {number: signal.getsignal(number) for number in {*TERMINAL_SIGNALS, signal.SIGTERM}}
    monkeypatch.setattr(COMPILATION, "watcher", COMPILATION.watcher)
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("dismissed", [True, False])
def test_servo_completes_the_recording_of_a_dead_application_only(dismissed, make_job, recorder, own_signals):
    job = make_job(make_nothing)
    handle = ServoProcess(job)
    application, servo = Pipe()
    programs = Pipe(duplex=False)[0]
    if dismissed:
        application.send(DISMISSED)
    thread = threading.Thread(target=lambda: (application.recv(), application.close()))
    thread.start()  # reads the error of the job and closes its end
    serve_job(job, servo, programs)
    thread.join()
    metadata = Recording(recorder.folder).metadata
    assert metadata["state"] == ("running" if dismissed else "interrupted")
    assert metadata.get("error") == (None if dismissed else "bench.gain = -1: must be at least 0.")
    handle.close()


def test_process_that_was_stopped_or_has_ended_is_lost_without_compilation_too():
    code = (
        "import os, signal, subprocess, sys, numpy as np\n"
        "from haptics.servo.kernels import APPLICATION_ENDED, APPLICATION_HALTED, SCRATCH, process_loss\n"
        "process = subprocess.Popen([sys.executable, '-c', 'input()'], stdin=subprocess.PIPE)\n"
        "status, scratch = os.open(f'/proc/{process.pid}/stat', os.O_RDONLY), np.zeros(SCRATCH, np.int64)\n"
        "assert process_loss(status, scratch) == 0\n"
        "process.send_signal(signal.SIGSTOP)\n"
        "os.waitpid(process.pid, os.WUNTRACED)\n"
        "assert process_loss(status, scratch) == APPLICATION_HALTED\n"
        "process.send_signal(signal.SIGCONT)\n"
        "process.communicate()\n"
        "assert process_loss(status, scratch) == APPLICATION_ENDED\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60, env={**os.environ, "NUMBA_DISABLE_JIT": "1"})
