"""Windows, keys and preparation of sessions, with front ends behind real pipes."""

from __future__ import annotations

import json
import os
import pickle
import re
import signal
import subprocess
import time
from argparse import Namespace
from multiprocessing import Pipe
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from apps.cli import open_windows
from apps.front_ends.front_end import ProcessFrontEnd
from apps.front_ends.messages import Captioned, Close, HoldKey, Key, Preparing, SessionEnded, SetParameter, Start, Stop
from apps.session import application
from apps.session.application import Application, tables_of_start
from apps.session.record import BEFORE, KeyEvent, KeyJournal, tick_at
from apps.session.run import Progress, Session
from apps.session.service import Service
from apps.settings.config import complete, gather
from apps.settings.options import offers
from apps.stage import launch as stage_launch
from apps.view import launch
from haptics.errors import ConfigurationError, DeviceFault
from haptics.recording.recorder import Recorder
from haptics.recording.recording import ORIGIN, Recording
from haptics.records import ROW, Status
from haptics.servo.control import Supervision
from haptics.servo.kernels import CONTROL, KEY_TIMEOUT
from haptics.shared import Mailbox, SharedFile
from haptics.trace import Trace
from tests.apps.session.persons import Person, listen, repeat
from tests.conftest import MISSING_QT
from tests.processes import RUN, program, spawned_by, until_running
from tests.system.parallel.commands import run_python


def config_of(*assignments):
    return complete(gather(None, assignments))


def after(config, *choices):
    """Return the next session after Start with a device, a model, a hand, and perhaps a law."""
    return complete(tables_of_start(config, Start(*choices)))


def test_start_repeats_the_session_or_takes_the_defaults_of_another_model_device_or_law():
    present = config_of("session.model=C", "law.force=2.5", "device.mass=0.3", "envelope.max_force=8", "session.seed=4")
    assert after(present, "virtual-joystick", "C", "minimum-jerk") == present
    model = after(config_of("session.model=C", "law.force=2.5"), "virtual-joystick", "B", "minimum-jerk")
    assert model.law["force"] == 2.5
    assert model.element == {"mass": 0.1, "stiffness": 6000.0, "damping": 10.0}
    device = after(present, "virtual-arm", "A", "minimum-jerk")
    assert (device.law, device.envelope) == ({"name": "coulomb", "force": 6.0}, {})
    assert "mass" not in device.device_settings
    assert after(present, "virtual-joystick", "C", "minimum-jerk", "coulomb").law == present.law
    law = after(present, "virtual-joystick", "C", "minimum-jerk", "coulomb-viscous").law
    assert law == {"name": "coulomb-viscous", "force": 4.0, "viscosity": 5.0}
    with pytest.raises(ConfigurationError, match="Possible"):
        after(present, "virtual-arm", "C", "minimum-jerk")


def test_present_hand_keeps_its_settings_and_can_be_chosen(tmp_path):
    path = tmp_path / "path.csv"
    path.write_text("t,x,y\n0,0,0\n1,0.01,0\n2,0,0\n")
    present = config_of("hand.name=recorded", f"hand.file={path}")
    assert after(present, "virtual-joystick", "B", "recorded").device_settings["hand"]["file"] == str(path)
    assert after(present, "virtual-joystick", "B", "minimum-jerk").hand == "minimum-jerk"
    assert "recorded" in offers(present)["hands"]
    assert "recorded" not in offers(config_of())["hands"]


@pytest.mark.parametrize(
    ("tables", "obstacle", "words"),
    [
        ({"hand": {"name": "mouse"}}, "", "live view"),
        ({"envelope": {"dead_man": "key"}}, "", r"space bar of the live view .* leave --headless out"),
        ({"envelope": {"dead_man": "key"}}, "no display", "there is none: no display"),
    ],
)
def test_mouse_and_held_key_need_a_window_before_anything_is_recorded(tables, obstacle, words, tmp_path):
    tables = {**tables, "session": {"record": str(tmp_path / "recordings")}}
    with pytest.raises(ConfigurationError, match=words):
        Application(tables, **({"obstacle": obstacle} if obstacle else {})).run()
    assert list(tmp_path.iterdir()) == []


def wanted(views=1, stage=False, headless=False):
    return Namespace(headless=headless, views=views, stage=stage, theme="dark")


def test_several_windows_need_a_display(monkeypatch):
    with pytest.raises(ConfigurationError, match=r"--views 2: no window can be shown \(--headless was given\); leave"):
        open_windows(wanted(2, headless=True))
    monkeypatch.setattr(launch, "window_obstacle", lambda: "no display")
    with pytest.raises(ConfigurationError, match=r"--views 3: no window can be shown \(no display\)"):
        open_windows(wanted(3))
    assert open_windows(wanted()) == ([], "no display")
    monkeypatch.setattr(launch, "window_obstacle", lambda: None)
    assert len(open_windows(wanted(3))[0]) == 3


def test_stage_is_opened_with_the_view_alone_or_not_at_all_with_its_reason(monkeypatch, capsys):
    monkeypatch.setattr(launch, "window_obstacle", lambda: None)
    monkeypatch.setattr(stage_launch, "stage_obstacle", lambda: None)

    def kinds(arguments):
        windows, obstacle = open_windows(arguments)
        return [window.func for window in windows], obstacle

    assert kinds(wanted(stage=True)) == ([launch.start_view, stage_launch.start_stage], "")
    assert kinds(wanted(0, stage=True)) == ([stage_launch.start_stage], "")
    monkeypatch.setattr(launch, "window_obstacle", lambda: "Qt cannot be loaded")
    assert kinds(wanted(stage=True)) == ([stage_launch.start_stage], "Qt cannot be loaded")
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(stage_launch, "stage_obstacle", lambda: "no OpenGL")
    assert open_windows(wanted(stage=True)) == ([], "Qt cannot be loaded")
    assert capsys.readouterr().err == "no stage: no OpenGL.\n"
    assert open_windows(wanted(0, stage=True)) == ([], "--views 0 was given, and there is no stage (no OpenGL)")
    assert open_windows(wanted(stage=True, headless=True)) == ([], "--headless was given")
    assert "no stage: --headless was given" in capsys.readouterr().err
    with pytest.raises(ConfigurationError, match="--views 0: leaves no window; add --stage"):
        open_windows(wanted(0))


def test_waiting_for_the_window_is_interrupted():
    app = Application({})
    with pytest.raises(ConfigurationError, match="no window could be opened"):
        app._require_window(config_of("envelope.dead_man=key"))
    app._interrupt()
    with pytest.raises(KeyboardInterrupt):
        app._require_window(config_of("envelope.dead_man=key"))


class Visitor(Person):
    """A front end that sends messages during each run and closes after a number of runs."""

    def __init__(self, runs, *in_mid_run):
        super().__init__()
        self.runs, self.in_mid_run, self.pipe = runs, list(in_mid_run), Pipe()

    @property
    def connection(self):
        return self.pipe[0]

    def send(self, message):
        super().send(message)
        self.says += self.in_mid_run if message == Preparing("") else []
        if isinstance(message, SessionEnded):
            self.runs -= 1
            self.says += [] if self.runs else [Close()]


def shown_to(visitor, folder, duration):
    tables: dict[str, dict[str, Any]] = {
        "session": {"model": "C", "duration": duration, "record": str(folder / "kept"), "picture": False},
        "device": {"name": "virtual-joystick"},
    }
    again, windows = str(folder / "again"), [lambda: visitor]
    return Application(
        tables, windows=windows, obstacle="", notify=lambda line: None, caption="look", again=again
    ).run()


def test_repeated_run_ends_when_the_window_is_closed(tmp_path, monkeypatch):
    monkeypatch.setattr(application, "PAUSE", 0.05)
    visitor = Visitor(2)
    outcome = shown_to(visitor, tmp_path, 0.2)
    assert outcome.reason == "completed"
    assert visitor.told.count(Captioned("look")) == 2
    assert [str(folder) for folder in (tmp_path / "kept").iterdir()] == [outcome.summary["recording"]]
    assert len(list((tmp_path / "again").iterdir())) == 1


def test_stopped_run_is_not_repeated(tmp_path, monkeypatch):
    monkeypatch.setattr(application, "LINGER", 0.05)
    visitor = Visitor(9, Stop())
    assert shown_to(visitor, tmp_path, 30.0).reason == "stopped"
    assert visitor.runs == 8
    assert not (tmp_path / "again").exists()


@given(st.integers(0, 10**16), st.sampled_from([1000.0, 333.0, 8000.0, 10.0, 997.3]))
@example(0, 1000.0)
@example(3_003_003, 333.0)
def test_tick_lasts_from_its_deadline_to_the_next(elapsed, rate):
    """Deadlines are whole periods from tick 0, to the nanosecond."""

    def deadline(tick):
        return int(tick * (1.0 / rate) * 1e9 + 0.5)

    tick = tick_at(elapsed, rate)
    assert deadline(tick) <= elapsed < deadline(tick + 1)
    assert tick_at(deadline(tick), rate) == tick
    assert tick_at(-1 - elapsed, rate) == BEFORE


@pytest.fixture
def journal(tmp_path):
    """A key journal of a recording whose trace has no tick 0 yet."""
    recorder, trace = Recorder(tmp_path / "run", {}), Trace.create(tmp_path / "trace")
    yield KeyJournal(recorder, trace, 1000.0), recorder, trace
    recorder.close({}, complete=True)


def test_keys_are_journalled_with_the_tick_that_was_due(journal):
    keys, recorder, trace = journal
    now = time.monotonic()
    events = [keys.write("f", True, now)]
    trace.origin[0] = round(1e9 * (now - 2.0))
    events += [keys.write("f", False, now - 0.5005), keys.write("left", True, now + 100.0), keys.write("j", True, 0.0)]
    assert [event.tick for event in events[:2]] == [BEFORE, 1499]
    assert 2000 <= events[2].tick < 12000, "a key of the future belongs to the present tick"
    assert events[3].tick == BEFORE
    assert events[1].monotonic_ns == pytest.approx(1e9 * (now - 0.5005), abs=1e3)
    written = Recording(recorder.folder).events
    assert [entry.pop("event") for entry in written] == ["key"] * 4
    assert [KeyEvent(**entry) for entry in written] == events


def test_key_without_a_clock_belongs_to_the_newest_tick(journal):
    _, recorder, trace = journal
    keys = KeyJournal(recorder, trace, None)
    assert keys.write("f", True, time.monotonic()).tick == BEFORE
    row = np.zeros((), ROW)
    row["tick"] = 41
    trace.append(row)
    assert keys.write("f", False, time.monotonic()).tick == 41


def test_front_end_killed_with_the_held_key_releases_it_and_the_run_continues(tmp_path):
    tables = {"session": {"model": "C", "record": str(tmp_path)}, "envelope": {"dead_man": "key"}}
    session, told = Session(complete(tables), lambda line: None), []  # type: Session, list[str]
    service, heard = Service(told.append), []  # type: Service, list[KeyEvent]
    session.keys.listen(heard.append)
    said = (Key("f", True), Key("f", False), SetParameter("law.force", 2.5))
    holds = ProcessFrontEnd(repeat, said, name="holds the key")
    for front in (holds, ProcessFrontEnd(listen, (str(tmp_path / "looks"),), name="looks")):
        service.fronts.add(front)
    service.begin(session)
    trace, killed = session.servo.trace, []  # type: Any, list[float]

    def felt():
        rows = trace.since(trace.count - 300)
        return len(rows) == 300 and not (rows["status"] & Status.RELEASED).any()

    def kill():
        killed.append(time.monotonic())
        os.kill(holds._process.pid or 0, signal.SIGKILL)

    def later():
        return time.monotonic() > killed[0] + 0.5

    steps: list[tuple[Any, Any]] = [(felt, kill), (later, session.stop)]

    def attend():
        service.run_periodic_tasks()
        if steps and steps[0][0]():
            steps.pop(0)[1]()

    outcome = session.run(attend, service.connections)
    service.fronts.close()
    assert (outcome.reason, outcome.fault) == ("stopped", None)
    assert told == ["a window ended unexpectedly; the run goes on with the others."]
    recording = Recording(Path(outcome.summary["recording"]))
    rows, origin = recording.rows, recording.metadata[ORIGIN]
    death = np.searchsorted(rows["time"], killed[0] - 1e-9 * origin)
    free = (rows["status"] & Status.RELEASED) != 0
    last = np.flatnonzero(~free)[-1]  # possibly before the kill, on a busy machine that delays the repeated key
    assert rows["time"][last] - rows["time"][death] < KEY_TIMEOUT + 0.01
    assert rows["time"][-1] - rows["time"][last] > 0.2, "the run went on without it"
    assert re.findall(r"ValuesInForce.*law.force': 2.5", (tmp_path / "looks").read_text())
    keys = [{**event} for event in recording.events if event["event"] == "key"]
    assert [(key["name"], key["down"], key["tick"]) for key in keys] == [("f", True, BEFORE), ("f", False, BEFORE)]
    assert [event.monotonic_ns for event in heard] == [key["monotonic_ns"] for key in keys]
    assert recording.events[-1]["event"] == "stopped"


def test_keys_are_stamped_with_ticks_and_a_full_disk_ends_the_run(tmp_path, monkeypatch):
    session = Session(complete({"session": {"model": "C", "record": str(tmp_path)}}), lambda line: None)
    pressed: list[tuple[int, float]] = []

    def press():
        pressed.append((session.servo.newest_tick, time.monotonic()))
        session.handle_key("f", True, pressed[-1][1])

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    def fill_the_disk():
        monkeypatch.setattr(Recorder, "journal_event", full)
        session.handle_key("f", False, time.monotonic())

    steps = [(200, press), (300, fill_the_disk)]

    def attend():
        if steps and session.servo.trace.count >= steps[0][0]:
            steps.pop(0)[1]()

    outcome = session.run(attend)
    assert isinstance(outcome.fault, DeviceFault)
    assert "No space left" in str(outcome.fault)
    recording = Recording(Path(outcome.summary["recording"]))
    (key,) = [event for event in recording.events if event["event"] == "key"]
    ((newest, instant),) = pressed
    assert key["monotonic_ns"] == round(instant * 1e9)
    assert key["tick"] >= newest, "a tick is never executed before it is due"
    elapsed = instant - 1e-9 * recording.metadata[ORIGIN]
    assert key["tick"] * 1e-3 - 1e-6 <= elapsed < (key["tick"] + 1) * 1e-3 + 1e-6


with_qt = pytest.mark.skipif(bool(MISSING_QT), reason=MISSING_QT)
KEY = ("--set", "envelope.dead_man=key")


@pytest.fixture
def ends():
    """Both ends of the lane: the session and the servo."""
    file = SharedFile("control")
    lane = Mailbox(file.path, CONTROL, create=True)
    session = Session.__new__(Session)
    session._key_ns = Mailbox(file.path, CONTROL).record["key_ns"]
    yield session, Supervision(lane)
    file.close()


def test_key_is_held_until_it_is_released(ends):
    session, servo = ends
    assert not servo.key_is_held()
    session.hold_key(time.monotonic())
    assert servo.key_is_held()
    session.hold_key(None)
    assert not servo.key_is_held()


@pytest.mark.parametrize(("old", "held"), [(0.0, True), (0.1, True), (0.151, False), (1.0, False)])
def test_key_is_released_150_ms_after_the_last_message(ends, monkeypatch, old, held):
    """`docs/safety.md` promises it; three messages of the view may be late or lost."""
    session, servo = ends
    now = time.monotonic()
    monkeypatch.setattr("apps.session.run.time", SimpleNamespace(monotonic_ns=lambda: round((now - old) * 1e9)))
    session.hold_key(now - old)
    assert servo.key_is_held() == held


def test_message_from_the_future_expires_like_a_present_one(ends):
    session, servo = ends
    session.hold_key(time.monotonic() + 60.0)
    assert servo.key_is_held()
    time.sleep(1.1 * KEY_TIMEOUT)
    assert not servo.key_is_held()


def test_message_has_the_time_of_its_creation():
    before = time.monotonic()
    said = HoldKey(True)
    after = time.monotonic()
    received = pickle.loads(pickle.dumps(said))
    assert before <= received.at == said.at <= after
    assert received == HoldKey(True)


@with_qt
def test_run_whose_window_dies_with_its_key_is_status_4(tmp_path):
    unseen = {**os.environ, "WAYLAND_DISPLAY": "", "DISPLAY": ":0", "QT_QPA_PLATFORM": "offscreen"}
    pipe = subprocess.PIPE
    with program(*RUN, *KEY, "--record", str(tmp_path), env=unseen, stdout=pipe, stderr=pipe) as process:
        recording = until_running(process, tmp_path)
        _servo, view = spawned_by(process.pid)
        os.kill(view, signal.SIGKILL)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 4, err
    assert "the live view ended unexpectedly, and with it the dead-man's key" in err
    assert "Traceback" not in err
    answer, metadata = json.loads(out), json.loads((recording / "recording.json").read_text())
    assert answer["reason"] == metadata["reason"] == "fault"
    assert answer["lost_ticks"] == 0
    assert metadata["state"] == "complete"


def test_count_and_seconds_are_shown_until_the_device_is_open(monkeypatch):
    now, lines, shown = [100.0], [], []  # type: list[float], list[str], list[str]
    monkeypatch.setattr("apps.session.run.time.monotonic", lambda: now[0])
    progress = Progress("pantograph", None, lines.append, shown.append, quiet=True)
    progress.show_preparation()
    assert shown == []
    for message in (("compiling", (1, 40)), ("compiling", (2, 40)), ("opening", None), ("ready", None)):
        progress.handle_message(*message)
        now[0] += 7.0
        progress.show_preparation()
    texts = [f"kernel {number} of about 40 ({seconds} s;" for number, seconds in ((1, 0), (1, 7), (2, 7), (2, 14))]
    assert [text in line for text, line in zip(texts, shown, strict=False)] == [True] * 4
    assert "pantograph (14 s)" in shown[4] and shown[-1] == ""
    assert len(lines) == 1


def test_failed_opening_leaves_no_recording(tmp_path):
    arguments = ("--device", "pantograph", "--set", "device.port=/dev/null", "--set", "device.at_home=true")
    done = run_python(*RUN, *arguments, "--headless", folder=tmp_path, status=3)
    assert json.loads(done.stdout)["error"]
    assert list((tmp_path / "recordings").iterdir()) == []


def test_waiting_opening_can_be_interrupted(tmp_path):
    waits = ("device.emulated=true", "device.at_home=true", "device.hold=10")
    settings = [word for setting in waits for word in ("--set", setting)]
    screen, terminal = os.openpty()  # the progress is shown on a terminal only
    arguments = (*RUN, "--device", "pantograph", *settings, "--headless")
    with program(*arguments, cwd=tmp_path, stdout=subprocess.PIPE, stderr=terminal) as process:
        said = b""
        while b"opening pantograph" not in said:
            assert process.poll() is None
            said += os.read(screen, 1000)
        begun = time.monotonic()
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=60)
        passed = time.monotonic() - begun
    os.close(screen)
    os.close(terminal)
    assert process.returncode == 130
    assert json.loads(out) == {"error": "interrupted"}
    assert passed < 6.0  # the device would be held for 10 s before it is armed
    assert list((tmp_path / "recordings").iterdir()) == []
