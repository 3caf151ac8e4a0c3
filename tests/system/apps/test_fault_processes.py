"""Failing devices and killed or stopped processes of real sessions: how soon the device is safe, and no lost data.

Times are read from the log of the device and the journal of the session, both in monotonic time. The machine may stall,
so the tests have the marker `wall_clock`.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
import pytest

from haptics.recording.recording import Recording
from haptics.recording.replay import verify
from haptics.records import Permission, Status
from haptics.rendering.envelope import FADE_OUT
from tests.conftest import MISSING_QT
from tests.processes import (
    RUN,
    Application,
    device_log,
    ended,
    program,
    recordings,
    spawned_by,
    state_of,
    until,
    written,
)

PROMPT = 0.02
"""Longest time until the output is safe, or a stopped servo is killed [s]."""

SLOW_HAND = ("--set", "hand.speed=0.03", "--set", "hand.pause=0", "--set", "hand.rest=0", "--seed", "3")
"""A hand that slides for seconds: there is a force to lose."""

DEVICE_FAULTS = {
    "read-error": ("virtual-joystick", "Input/output error (read, fault on demand)"),
    "infinite": ("virtual-arm", "was not a finite number"),
    "hang": ("virtual-joystick", "has not run for 1 s"),
}


def run(folder, *arguments):
    """Run a session until it ends."""
    where, pipe = ("--headless", "--record", str(folder)), subprocess.PIPE
    with program(*RUN, *where, *arguments, stdout=pipe, stderr=pipe) as process:
        out, err = process.communicate(timeout=300)
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


@pytest.mark.parametrize("fault", sorted(DEVICE_FAULTS))
def test_failing_device_is_status_4_and_named_with_its_tick(tmp_path, fault):
    device, complaint = DEVICE_FAULTS[fault]
    done = run(tmp_path, "--device", device, "--fault", f"{fault}@0.3", "--duration", "30")
    assert done.returncode == 4, done.stderr
    assert "Traceback" not in done.stderr
    answer = json.loads(done.stdout)
    assert complaint in answer["error"]
    assert answer["reason"] == "fault"
    recording = Recording(Path(answer["recording"]))
    assert len(recording.rows) == answer["ticks"]
    assert answer["lost_ticks"] == 0
    assert np.isfinite(recording.rows["command"]).all()
    assert verify(recording).mismatches == 0
    last = int(recording.rows["tick"][-1])
    if fault == "hang":
        assert f"after tick {last}" in answer["error"]
        assert last == pytest.approx(299, abs=30)
        return
    tick = int(answer["error"].removeprefix(f"{device} failed at tick ").partition(":")[0])
    assert tick in (last, last + 1)
    assert tick >= 300


by_signal = pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP], ids=lambda number: number.name)


class SlidingSession(Application):
    """A session with a sliding handle."""

    def __init__(self, application, folder):
        super().__init__(application, folder)
        self._recordings = folder / "recordings"
        until(self._slides, "the handle never slid")
        (self.recording,) = recordings(self._recordings)
        (self.servo,) = spawned_by(application.pid)

    def event(self):
        """Return the last line of the journal."""
        return dict(json.loads((self.recording / "events.jsonl").read_text().splitlines()[-1]))

    def _slides(self):
        assert self.application.poll() is None, self.said
        commands = [device_log(folder)["command"] for folder in recordings(self._recordings)]
        return any(len(one) > 500 and bool((np.hypot(*one[-100:].T) > 3.0).all()) for one in commands)


@pytest.fixture
def session(tmp_path):
    arguments = ("--device", "virtual-joystick", "--model", "C", "--duration", "60", *SLOW_HAND)
    where = ("--headless", "--record", str(tmp_path / "recordings"))
    with written(tmp_path, *RUN, *where, *arguments) as application:
        yield SlidingSession(application, tmp_path)


def safe_at(session):
    """Return the time of the first command without force that remains [s, monotonic]."""
    told = device_log(session.recording)
    pushed = np.flatnonzero(told["command"].any(axis=1))
    return float(told["monotonic_ns"][pushed[-1] + 1]) * 1e-9


def judge_fade(rows):
    """Check that the force decreases during the ticks that are permitted to end."""
    told = (rows["permission"] & int(Permission.ENDING)) != 0
    assert 1 <= told.sum() <= round(FADE_OUT * 1e3) + 1
    assert told[-1]
    forces = np.hypot(*rows["command"][told].T)
    assert (np.diff(forces) <= 0.0).all()
    assert forces[0] < 0.95 * np.hypot(*rows["command"][~told][-1])


@pytest.mark.wall_clock
@by_signal
def test_device_without_the_application_is_safe_within_20_ms(session, number):
    lost = time.monotonic()
    session.application.send_signal(number)
    until((session.recording / "events.jsonl").exists, "nothing was written into the journal")
    time.sleep(0.05)
    event, safe = session.event(), safe_at(session)
    assert event["event"] == "application lost"
    assert event["safe_output_monotonic_ns"] * 1e-9 == pytest.approx(safe, abs=0.02)
    if number == signal.SIGSTOP:
        session.application.send_signal(signal.SIGCONT)
        assert session.application.wait(60.0) == 4, session.said
        assert "was brought to its safe output after tick" in session.answer["error"]
        assert "virtual-joystick" in session.answer["error"]
        assert Recording(session.recording).metadata["state"] == "complete"
        assert session.answer["lost_ticks"] == 0
    until(lambda: ended(session.servo), "the servo never ended", every=0.001)
    recording = Recording(session.recording)
    assert len(recording.rows) == event["ticks"]
    assert verify(recording).mismatches == 0
    judge_fade(recording.rows)
    if number == signal.SIGKILL:
        assert recording.metadata["state"] == "interrupted"
    assert safe - lost <= PROMPT


@pytest.mark.wall_clock
@by_signal
def test_lost_servo_is_ended_within_20_ms_and_its_device_commanded_no_more(session, number):
    lost = time.monotonic()
    os.kill(session.servo, number)
    until(lambda: state_of(session.servo) in "TZX", "the servo was not stopped", every=0.0002)
    until(lambda: state_of(session.servo) != "T", "the servo was not killed", every=0.0002)
    killed = time.monotonic()
    until(lambda: ended(session.servo), "the servo never ended", every=0.001)
    status = session.application.wait(60.0)
    assert status == 4, session.said
    assert "Traceback" not in session.said
    word = "was stopped from outside" if number == signal.SIGSTOP else "killed by SIGKILL"
    assert word in session.answer["error"]
    recording = Recording(session.recording)
    last = int(recording.rows["tick"][-1])
    assert f"after tick {last}" in session.answer["error"]
    assert recording.metadata["state"] == "interrupted"
    assert session.answer["lost_ticks"] == 0 and len(recording.rows) == session.answer["ticks"]
    assert verify(recording).mismatches == 0
    # The watchdog of the device acts from now on: no command may feed it.
    silent = float(device_log(session.recording)["monotonic_ns"][-1]) * 1e-9
    assert recording.metadata["device"]["watchdog"] == pytest.approx(0.02)
    assert session.event()["event"] == "servo lost"
    # The system needs up to 50 ms to remove a killed process on busy processors.
    instants = (silent, killed) if number == signal.SIGSTOP else (silent,)
    assert max(instants) - lost <= PROMPT


# --- the arm: the emulated drive records the state of its motors at the end. The first session compiles its kernels.


ARM = (
    *("--device", "arm", "--set", "device.emulated=true", "--set", "device.motors.watchdog=0.4"),
    *("--set", "device.motors.reply_timeout=0.15", "--set", "device.sensor.patience=0.1"),
    *("--set", "hand.speed=0.1", "--set", "hand.pause=0", "--set", "hand.rest=0", "--set", "hand.tremor=0"),
)
"""Arm of a patient driver, and a hand without tremor that moves all the time."""

LATEST = 1.0
"""Longest time from a fault to loose motors on a busy machine [s]."""


def account(recording):
    """Return the final state of the emulated drive."""
    file = recording / "emulated_arm.json"
    until(lambda: file.exists() and file.read_text().endswith("}"), "the emulated drive did not end")
    return dict(json.loads(file.read_text()))


WIRE_FAULTS = {"motors.unplug": "the drive was unplugged", "sensor.mute": "has sent no usable force|was too old"}
"""Further faults are tested without a session in tests/devices/arm."""


@pytest.mark.timeout(400)
@pytest.mark.wall_clock
@pytest.mark.parametrize("fault", WIRE_FAULTS)
def test_fault_of_a_wire_ends_the_session_with_loose_motors(tmp_path, fault):
    done = run(tmp_path, *ARM, "--model", "A", "--duration", "30", "--set", f"device.wire_faults=['{fault}@1']")
    (recording,) = recordings(tmp_path)
    end = account(recording)
    assert done.returncode == 4, done.stderr
    assert "Traceback" not in done.stderr
    answer = json.loads(done.stdout)
    assert answer["reason"] == "fault"
    assert answer["error"].startswith("arm failed at tick ")
    assert any(words in answer["error"] for words in WIRE_FAULTS[fault].split("|")), answer["error"]
    assert answer["lost_ticks"] == 0
    assert end["states"] == [1, 1]
    assert end["torques"] == [0.0, 0.0]
    assert 1.0 <= end["loose_at"] <= 1.0 + LATEST
    rows = Recording(recording).rows
    stale = np.flatnonzero(rows["status"] & int(Status.STALE))  # it holds until the fault is final
    sent = stale[np.isfinite(rows["command"][stale]).all(axis=1)]
    assert (rows["command"][sent] == rows["command"][sent - 1]).all()
    assert verify(Recording(recording)).mismatches == 0


@pytest.mark.timeout(400)
@pytest.mark.wall_clock
def test_watchdogs_of_the_drive_release_the_motors_of_a_killed_session(tmp_path):
    folder = tmp_path / "recordings"
    where = ("--headless", "--record", str(folder))
    with written(tmp_path, *RUN, *where, *ARM, "--model", "A", "--duration", "60") as process:

        def moves():
            assert process.poll() is None, Application(process, tmp_path).said
            sent = [device_log(recording)["command"] for recording in recordings(folder)]
            return any(len(one) > 300 and bool(np.ptp(one[-200:], axis=0).max() > 1e-3) for one in sent)

        until(moves, "the arm never moved")
        os.killpg(process.pid, signal.SIGKILL)
        (recording,) = recordings(folder)
        end = account(recording)
    assert (end["states"], end["errors"], end["torques"]) == ([1, 1], [0x800, 0x800], [0.0, 0.0])


# --- kills at random moments, with fixed seeds, counted from three events: start of the victim, recording, first tick.
# HAPTICS_KILLS is the number of kills per process.

KILLS = int(os.environ.get("HAPTICS_KILLS", "3"))
TICKS = 1000
EVENTS = ("start", "recording", "first tick")
LONGEST_DELAY = {"application": (3.0, 2.0, 1.6), "servo": (2.0, 2.0, 1.05), "view": (3.0, 2.0, 1.6)}
"""Longest delay of a kill after each event [s]; the run takes 1 s."""


class KilledSession(Application):
    """A session whose processes are marked in their environment."""

    def __init__(self, application, folder, victim):
        super().__init__(application, folder)
        self.folder, self.victim = folder, victim

    def processes(self):
        """Return the command lines of the living processes of this session."""
        found, mark = {}, f"HAPTICS_KILL={self.folder}\0".encode()
        for entry in Path("/proc").iterdir():
            with suppress(OSError):  # the process has ended
                if entry.name.isdigit() and mark in (entry / "environ").read_bytes():
                    found[int(entry.name)] = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        return found

    def pid(self):
        """Return the victim's process id once it exists; the servo is started before the view."""
        if self.victim == "application":
            return self.application.pid
        children = sorted(pid for pid, command in self.processes().items() if "spawn_main" in command)
        place = 1 if self.victim == "view" else 0
        return children[place] if len(children) > place else None

    def recording(self):
        found = recordings(self.folder / "recordings")
        assert len(found) < 2, found
        return found[0] if found else None

    def commands(self):
        """Return the commands of the device in order, once it has received one."""
        folder = self.recording()
        sent = device_log(folder) if folder else None
        return sent if sent is not None and len(sent) else None

    def until(self, question):
        """Return the first answer other than None, or None if the session ends before."""
        while (found := question()) is None and self.application.poll() is None:
            time.sleep(0.002)
        return found


@contextmanager
def session_with(victim, number, folder):
    """Start a session, with a window where the view is killed and in half of the other kills of the application."""
    for name in ("temporary", "runtime"):
        (folder / name).mkdir(parents=True, mode=0o700)
    environment = {
        **os.environ,
        "HAPTICS_KILL": str(folder),
        "TMPDIR": str(folder / "temporary"),
        "XDG_RUNTIME_DIR": str(folder / "runtime"),
        "QT_QPA_PLATFORM": "offscreen",
        "DISPLAY": ":0",  # need not exist: the window is drawn off the screen
    }
    window = victim == "view" or (victim == "application" and number % 2 == 1 and not MISSING_QT)
    arguments = ["--device", "virtual-joystick", "--duration", f"{TICKS / 1000:g}", "--seed", str(number)]
    arguments += ["--record", str(folder / "recordings"), *([] if window else ["--headless"])]
    with written(folder, *RUN, *arguments, env=environment, cwd=folder) as application:
        yield KilledSession(application, folder, victim)


def kill(victim, number, folder):
    """Kill a process of a session and judge the remaining state; return whether the kill met a running session."""
    event = EVENTS[number % len(EVENTS)]
    delay = np.random.default_rng([number, len(victim)]).random() * LONGEST_DELAY[victim][number % len(EVENTS)]
    with session_with(victim, number, folder) as run:
        pid = run.until(run.pid)
        run.until({"start": run.pid, "recording": run.recording, "first tick": run.commands}[event])
        time.sleep(float(delay))
        hit = run.application.poll() is None and pid in run.processes()
        killed_ns = time.monotonic_ns()
        if hit:
            os.kill(pid, signal.SIGKILL)
        status = run.application.wait(90.0)
        until(lambda: not run.processes(), "a process of the session remains")
        assert not list((folder / "temporary").iterdir())
        assert not list(Path("/dev/shm").glob(f"haptics-{run.application.pid}-*"))
        if victim != "application":  # a killed one may leave an unnamed recording, which a later session removes
            assert not list((folder / "recordings").glob(".*"))
    recording = None if run.recording() is None else judge_recording(run, killed_ns)
    if hit and victim == "servo":
        judge_loss_of_servo(run, status, recording)
    elif victim != "application":
        judge_undisturbed(run, status, recording)
    return hit


def judge_recording(run, killed_ns):
    folder = run.recording()
    assert folder is not None
    recording = Recording(folder)
    rows, commands = np.array(recording.rows), run.commands()
    skips = (rows["status"][1:] & int(Status.AFTER_SKIP)) != 0
    assert (np.diff(rows["tick"])[~skips] == 1).all()
    if commands is not None:
        unrecorded = commands[~np.isin(commands["time"], rows["time"])]
        assert not (unrecorded["monotonic_ns"] < killed_ns - 50e6).any()
        assert len(np.unique(unrecorded["time"])) <= 1  # the last command of the killed servo
    assert verify(recording).mismatches == 0
    events = folder / "events.jsonl"
    if run.victim == "application" and events.exists() and "application lost" in events.read_text():
        assert (recording.metadata["state"], recording.metadata["reason"]) == ("interrupted", "application lost")
    return recording


def judge_loss_of_servo(run, status, recording):
    """A lost servo is status 4, except after the completion of the run."""
    assert "Traceback" not in run.said
    if status == 0:
        assert run.answer["reason"] == "completed"
    else:
        assert status == 4, run.said
        assert "killed by SIGKILL" in run.said and str(run.recording()) in run.said
        assert recording is not None and recording.metadata["state"] == "interrupted"


def judge_undisturbed(run, status, recording):
    """Without the view, or after a late kill, the run is completed."""
    assert status == 0, run.said
    assert "Traceback" not in run.said
    assert run.answer["ticks"] + run.answer["skipped"] == TICKS
    assert run.answer["lost_ticks"] == 0
    assert recording is not None and recording.metadata["state"] == "complete"
    assert len(recording.rows) == run.answer["ticks"]


@pytest.mark.timeout(120 + 60 * KILLS)
@pytest.mark.parametrize(
    "victim",
    ["application", "servo", pytest.param("view", marks=pytest.mark.skipif(bool(MISSING_QT), reason=MISSING_QT))],
)
def test_kill_loses_no_data_and_leaves_no_process(victim, tmp_path):
    with ThreadPoolExecutor(2) as pool:
        pending = [pool.submit(kill, victim, number, tmp_path / str(number)) for number in range(KILLS)]
    if errors := [error for one in pending if (error := one.exception()) is not None]:
        raise ExceptionGroup(f"{len(errors)} of {KILLS} kills", errors)
    assert any(one.result() for one in pending)
