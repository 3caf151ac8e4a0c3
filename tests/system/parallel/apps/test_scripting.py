"""Sessions controlled by a script: `haptics.open_session` in simulated and in real time."""

from __future__ import annotations

import doctest
import os
import re
import signal
import subprocess
import time
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
import pytest

import haptics
from apps.experiment.journal import sessions_below, trial_rows
from apps.scripting import client, session
from apps.verification import examine
from haptics.errors import RecordingError
from haptics.recording.checks import OK
from haptics.recording.recording import Recording
from haptics.records import Status
from tests.processes import ROOT, program


@pytest.fixture
def simulated(tmp_path):
    with haptics.open_session(
        "virtual-joystick", law=haptics.Coulomb(3.0), clock="off", record=tmp_path, settings={"device.seed": 3}
    ) as session:
        yield session


def require_clean(recording):
    found = examine(recording)
    assert (found.mismatches, found.verdict) == (0, OK), found.findings


def examples():
    """Return the examples of all docstrings of the scripting interface."""
    found = [example for module in (client, session) for example in doctest.DocTestFinder().find(module)]
    return [pytest.param(example, id=example.name) for example in found if example.examples]


@pytest.mark.parametrize("example", examples())
def test_example_of_a_docstring(example, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with haptics.open_session("virtual-joystick", hand="minimum-jerk", clock="off") as session:
        example.globs = {"haptics": haptics, "np": np, "session": session}
        result = doctest.DocTestRunner().run(example)
    assert (result.failed, result.attempted > 0) == (0, True)


@pytest.mark.parametrize("clock", ["off", "wall"])
def test_advice_is_a_warning_of_the_opening(tmp_path, clock):
    settings = {"element.stiffness": 60_000.0}
    with pytest.warns(haptics.ParameterWarning, match=r"element\.stiffness = 60000 N/m") as caught:
        session = haptics.open_session("virtual-joystick", model="C", clock=clock, record=tmp_path, settings=settings)
    session.close()
    assert len(caught) == 1


def test_steps_changes_and_marks_hold_from_the_next_tick(simulated):
    assert (simulated.tick, simulated.status) == (0, "running")
    simulated.advance(0.5)
    assert simulated.configure(law=haptics.Coulomb(5.0)) == 501
    simulated.mark(7)
    simulated.advance(0.5)
    assert simulated.law == {"name": "coulomb", "force": 5.0}
    assert simulated.configure(law="stribeck", model="B") == 1001
    assert (simulated.model, "force" in simulated.law) == ("B", False)
    assert simulated.configure(model="C") == 1001
    simulated.advance(0.25)
    assert simulated.configure(law={"viscosity": 2.0}, element={"stiffness": 3000.0}) == 1251
    assert (simulated.law["name"], simulated.law["viscosity"]) == ("stribeck", 2.0)
    simulated.wait(0.25)
    rows = simulated.since(0)
    assert np.array_equal(rows["tick"], np.arange(1501))
    assert np.array_equal(np.flatnonzero(np.diff(rows["settings_version"])), [500, 1000, 1250])
    assert np.array_equal(np.flatnonzero(rows["marker"] == 7), np.arange(501, 1501))
    assert np.array_equal(simulated.latest(0.25)["tick"], np.arange(1251, 1501))
    simulated.stop()
    recording = simulated.recording
    assert (simulated.status, simulated.certificate["ticks"]) == ("stopped", len(recording))
    assert recording.rows[:1501].tobytes() == rows.tobytes()
    assert rows.dtype == recording.rows.dtype
    require_clean(recording)


def test_rows_older_than_the_shared_memory_come_from_the_recording(simulated):
    simulated.advance(40.0)
    rows = simulated.since(3)
    assert np.array_equal(rows["tick"], np.arange(3, 40001))
    assert np.array_equal(simulated.since(39990)["tick"], np.arange(39990, 40001))
    assert len(simulated.since(50000)) == 0
    frame = simulated.to_frame(1.0)
    assert len(frame) == 1000
    assert "position_x_m" in frame.columns


def test_change_behind_the_gate_is_not_felt(simulated):
    simulated.advance(1.0)
    tick = simulated.configure(law=haptics.Coulomb(0.5), gate=True)
    simulated.advance(0.2)
    gate = simulated.since(tick - 1)["gate"]
    assert (gate[0], gate[-1]) == (0.0, 1.0)
    simulated.gate(open=False)
    simulated.configure(law=haptics.Coulomb(2.0), gate=True)
    simulated.advance(0.2)
    assert simulated.latest(0.05)["gate"].max() == 0.0  # a gate that was closed stays closed


def test_events_are_found_at_their_tick(simulated):
    tick = simulated.wait_until(lambda rows: np.hypot(*rows["velocity"].T) > 0.02, timeout=10.0)
    speed = np.hypot(*simulated.since(0)["velocity"].T)
    assert tick == np.flatnonzero(speed > 0.02)[0]
    now = simulated.tick
    assert simulated.wait_until(lambda rows: False, timeout=0.1) is None
    assert simulated.tick == now + 100


def test_button_is_found_at_its_tick(tmp_path):
    settings = {"hand.presses": ["1@0.5", "2@0.8"]}
    with haptics.open_session("virtual-joystick", clock="off", record=tmp_path, settings=settings) as session:
        assert session.wait_for_button(timeout=0.2) is None
        assert session.wait_for_button(timeout=1.0) == (1, 500)
        assert session.wait_for_button() == (2, 800)


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        (lambda s: s.configure(law={"force": -1.0}), r"law\.force"),
        (lambda s: s.configure(model="A"), "model A is an admittance"),
        (lambda s: s.configure(element={"stiffnes": 1.0}), "element.stiffness"),
        (lambda s: s.configure(scene="none"), "unknown scene"),
        (lambda s: s.mark(1.5), "integer"),
        (lambda s: s.advance(float("nan")), "finite"),
    ],
)
def test_invalid_request_changes_nothing(simulated, request_, words):
    with pytest.raises(haptics.ConfigurationError, match=words):
        request_(simulated)
    simulated.advance(0.01)
    assert simulated.latest(0.01)["settings_version"].max() == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"device": "none"}, "unknown device"),
        ({"model": "A", "device": "virtual-joystick"}, "do not go together"),
        ({"settings": {"law.force": -3.0}}, r"law\.force"),
        ({"settings": {"force": 3.0}}, "not a key"),
        ({"hand": "nobody"}, "unknown hand"),
        ({"hand": "mouse"}, "view=True"),
        ({"on_script_exit": "continue"}, "give a duration"),
        ({"on_script_exit": "never"}, "'stop' or 'continue'"),
    ],
)
def test_invalid_session_is_refused(arguments, words, tmp_path):
    with pytest.raises(haptics.ConfigurationError, match=words):
        haptics.open_session(**{"record": tmp_path, **arguments})
    assert not list(tmp_path.iterdir())


def test_fault_is_raised_in_the_script(tmp_path):
    session = haptics.open_session("virtual-joystick", record=tmp_path, settings={"session.faults": ["unplug@0.3"]})
    with pytest.raises(haptics.DeviceFault, match="failed at tick") as caught, session:
        session.wait(5.0)
    assert caught.value.recording == session.folder
    assert caught.value.rows is not None
    assert session.status == "fault"
    with pytest.raises(haptics.DeviceFault):
        session.mark(1)


def test_error_of_the_script_ends_the_run_in_order(tmp_path):
    with pytest.raises(ZeroDivisionError), haptics.open_session("virtual-joystick", record=tmp_path) as session:
        session.wait(0.1)
        _ = 1 // 0
    assert session.status == "stopped"
    require_clean(session.recording)


def test_changes_in_real_time_hold_from_the_returned_tick(tmp_path):
    random = np.random.default_rng(5)
    with haptics.open_session("virtual-joystick", hand="minimum-jerk", record=tmp_path) as session:
        ticks = [session.configure(law=haptics.Coulomb(force)) for force in random.uniform(0.5, 5.0, 50)]
    rows = session.recording.rows
    for version, tick in enumerate(ticks, start=1):
        assert rows["tick"][rows["settings_version"] == version][0] == tick
    require_clean(session.recording)


SCRIPT = """
import sys, time
import haptics
session = haptics.open_session("virtual-joystick", hand="minimum-jerk", record=sys.argv[1], {more})
session.configure(law=haptics.Coulomb(4.0))
print(session.folder, flush=True)
{then}
"""


@contextmanager
def script(folder, then, more=""):
    """Run a script that controls a session; yield its process and its recording."""
    text = SCRIPT.format(then=then, more=more)
    with program("-c", text, str(folder), stdout=subprocess.PIPE) as process:
        yield process, Recording(Path(process.stdout.readline().strip()))


def ended(recording, timeout=20.0):
    """Wait until a recording is closed and return it."""
    until = time.monotonic() + timeout
    while True:
        with suppress(RecordingError):  # its file of ticks is being renamed
            recording = Recording(recording.folder)
            if recording.metadata["state"] != "running":
                return recording
        assert time.monotonic() < until, "the run goes on"
        time.sleep(0.01)


@pytest.mark.wall_clock
def test_killed_script_ends_the_run_within_100_ms(tmp_path):
    with script(tmp_path, "time.sleep(60)") as (process, recording):
        time.sleep(0.5)
        killed = time.monotonic_ns()
        process.kill()
        found = ended(recording)
    assert "the script that controls the session has ended" in found.metadata["error"]
    assert found.events[-1]["safe_output_monotonic_ns"] - killed < 100e6


def test_script_without_close_ends_the_run_in_order(tmp_path):
    with script(tmp_path, "session.wait(0.2)") as (process, recording):
        assert process.wait(30) == 0
        assert ended(recording).metadata["state"] == "complete"


def test_run_may_go_on_without_its_script(tmp_path):
    with script(tmp_path, "time.sleep(60)", 'duration=2.0, on_script_exit="continue"') as (process, recording):
        process.kill()
        found = ended(recording)
    assert (found.metadata["state"], found.rows["tick"][-1]) == ("complete", 1999)


@pytest.mark.parametrize("then", ["time.sleep(2)", "x = [k for k in range(60_000_000)]"], ids=["blocks", "computes"])
def test_busy_script_does_not_stop_the_ticks(then, tmp_path):
    with script(tmp_path, f"{then}\nsession.close()") as (process, recording):
        assert process.wait(60) == 0
    recording = ended(recording)
    assert recording.metadata["certificate"]["longest_gap_us"] < 0.5e6  # the script was busy for two seconds
    require_clean(recording)


def test_stopped_script_does_not_stop_the_run(tmp_path):
    with script(tmp_path, "time.sleep(0.1)\nsession.close()", "duration=3.0") as (process, recording):
        os.kill(process.pid, signal.SIGSTOP)
        found = ended(recording)
        assert found.rows["tick"][-1] == 2999
        os.kill(process.pid, signal.SIGCONT)
        assert process.wait(30) == 0
    assert not (found.rows["status"] & int(Status.STALE)).any()


def test_own_trials_of_the_examples_survive_being_killed(tmp_path):
    command = (str(ROOT / "examples" / "own_trials.py"), str(tmp_path / "data"), "P01", "--simulate")
    with program(*command, stdout=subprocess.PIPE) as process:
        for line in process.stdout:
            if line.startswith("trial 20:"):
                process.kill()
                break
    with program(*command, stdout=subprocess.PIPE) as process:
        said = process.stdout.read()
        assert process.wait(60) == 0
    assert re.match(r"(20|2\d) trials were run before", said)
    assert "threshold (75 % correct)" in said
    assert re.search(r"delivered exactly in (\d+) of \1 trials", said)
    (place,) = sessions_below(tmp_path / "data")
    trials = [row["trial"] for row in trial_rows(place, None) if row["counts"]]
    assert trials == list(range(1, len(trials) + 1))
    for recording in (place.folder / "blocks").iterdir():
        require_clean(Recording(recording))
