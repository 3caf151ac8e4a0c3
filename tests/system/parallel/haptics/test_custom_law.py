"""Custom laws in other processes, behind a rendering, in recordings and on the command line."""

import copy
import functools
import json
import multiprocessing
import os
import pickle
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.settings.config import complete, gather
from haptics import ClosedForm, Coulomb, MasslessImpedance, Stribeck, friction_law, simulate
from haptics.device import State
from haptics.errors import ConfigurationError, RecordingError
from haptics.recording.recording import Recording
from haptics.recording.replay import recompute, verify
from haptics.records import ROW, Status
from haptics.rendering.programs import parameters_of
from haptics.rendering.rendering import Rendering
from haptics.servo.control import Job, SharedFiles
from haptics.servo.process import ServoProcess
from tests.haptics.changing import record_change
from tests.haptics.doubles import BenchDevice, make_spec
from tests.haptics.friction.test_custom_law import exponential
from tests.haptics.references import norms, rubber, steepest
from tests.haptics.strategies import KINDS, PHYSICS, Meeting, log_floats, make, wandering
from tests.processes import NO_PICTURE, ROOT

every_kind = pytest.mark.parametrize("kind", KINDS)


@friction_law
def constant(speed, level=4.0):
    return level


def coupling(law):
    return MasslessImpedance(law, 6000.0, 10.0)


def table(law):
    return {"name": "custom", "source": law.source, **law.parameters}


# ---- to another process


def answers(element, inputs):
    """Address of the law's function, the next steps of `element` and the same steps in one call; run elsewhere."""
    address = int(element.copy_record()["law"]["address"][0])
    whole = simulate(element, inputs).output
    return address, np.array([element.step(row) for row in inputs]), whole


@every_kind
def test_pickled_element_keeps_its_state(kind):
    element, inputs = make(kind, rubber(static=5.5)), wandering(kind, 400)
    for row in inputs[:200]:
        element.step(row)
    expected = simulate(element, inputs[200:]).output
    for twin in (pickle.loads(pickle.dumps(element)), copy.copy(element), copy.deepcopy(element)):
        np.testing.assert_array_equal(simulate(twin, inputs[200:]).output, expected)


def test_law_is_compiled_again_in_another_process():
    elements = [coupling(rubber(static=5.5)), coupling(ClosedForm(rubber(static=4.1, kinetic=4.0, width=1.0)))]
    inputs = wandering("C", 400)
    for element in elements:
        for row in inputs[:100]:
            element.step(row)
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        far = list(pool.map(answers, elements, [inputs[100:]] * 2))
    for element, (_, steps, whole) in zip(elements, far, strict=True):
        expected = simulate(element, inputs[100:]).output
        np.testing.assert_array_equal(steps, expected)
        np.testing.assert_array_equal(whole, expected)


# ---- in front of a device


def tick(rendering, speed):
    """Command [N] along the first axis for one sample at `speed` [m/s]."""
    state = State(0.0, np.zeros(2), np.array([speed, 0.0]), np.zeros(2))
    return float(rendering.tick(state, 0.0, np.zeros(1, ROW), 0, (0, 0.0, 0.0, 0))[0])


def test_settings_without_an_address_keep_the_law():
    rendering = Rendering(coupling(constant(level=4.0)), make_spec(max_force_rate=1e9))
    assert tick(rendering, 0.5) == -4.0
    parameters = parameters_of(coupling(constant(level=3.0)))
    parameters["law"]["address"] = 0
    rendering.configure(parameters, 1)
    assert rendering.core["version"][0] == 1
    assert tick(rendering, 0.5) == -3.0


def test_change_to_a_custom_law_needs_an_address():
    rendering = Rendering(coupling(Coulomb(4.0)), make_spec(max_force_rate=1e9))
    parameters = parameters_of(coupling(constant(level=2.0)))
    rendering.configure(parameters, 1)
    assert tick(rendering, 0.5) == -2.0
    strange = parameters.copy()
    strange["law"]["address"] = 0
    other = Rendering(coupling(Coulomb(4.0)), make_spec(max_force_rate=1e9))
    other.configure(strange, 1)
    assert tick(other, 0.5) == 0.0
    assert other.core["status"][0] & Status.NOT_FINITE


def make_bench(clock):
    return BenchDevice(clock, max_force_rate=1e9)


def await_ticks(servo, count, more=lambda: None):
    """Wait until the servo has executed `count` ticks; raise its errors."""
    until = time.monotonic() + 90.0
    while servo.trace.count < count:
        assert time.monotonic() < until
        servo.beat()
        servo.next_message()
        more()
        time.sleep(0.005)


def test_servo_process_renders_it_and_takes_settings(tmp_path):
    job = Job(functools.partial(make_bench), coupling(constant(level=4.0)), None, None, tmp_path, SharedFiles.unique())
    servo = ServoProcess(job)
    try:
        servo.start()
        await_ticks(servo, 60)
        assert np.hypot(*servo.trace.since(servo.trace.count - 1)["command"][0]) == pytest.approx(4.0)
        servo.publish(coupling(constant(level=2.5)))
        await_ticks(servo, servo.trace.count + 60)
        row = servo.trace.since(servo.trace.count - 1)
        assert row["settings_version"][0] == 1
        assert np.hypot(*row["command"][0]) == pytest.approx(2.5)
    finally:
        servo.close()


# ---- in a recording


def record(folder, trace, model, laws):
    """Record a run in which the second law takes over at tick 400, with noisy samples."""
    random = np.random.default_rng(5)

    def shake(state, number):
        state.velocity += random.normal(0, 0.05, 2)
        state.force += random.normal(0, 2.0, 2)

    return record_change(folder, trace, model, laws, shake, at=400, duration=1.0)


@every_kind
def test_recording_replays_with_the_same_bits(tmp_path, trace, kind):
    laws = [table(rubber(static=5.0, kinetic=4.0, viscosity=1.0)), table(rubber(static=4.0, kinetic=3.0, width=0.3))]
    found = verify(record(tmp_path / "run", trace, kind, laws))
    assert (found.ticks, found.mismatches) == (1000, 0)


def test_source_in_a_recording_decides(tmp_path, trace):
    folder = tmp_path / "run"
    recording = record(folder, trace, "C", [table(rubber()), table(rubber(static=5.5))])
    assert recording.rows["sticking"].mean() < 0.99
    settings = (folder / "settings.jsonl").read_text()
    assert settings.count("kinetic + (static - kinetic)") == 2
    (folder / "settings.jsonl").write_text(settings.replace("speed / width", "speed / (width + 0.01)"))
    assert verify(Recording(folder)).mismatches > 500


def test_recorded_change_to_a_custom_law_is_replayed_with_that_law(tmp_path, trace):
    """The program never records such a change, but a file may contain it."""
    folder = tmp_path / "run"
    recording = record(folder, trace, "C", [{"name": "coulomb", "force": 4.0}, {"name": "coulomb", "force": 2.0}])
    assert verify(Recording(folder)).mismatches == 0
    lines = [json.loads(line) for line in (folder / "settings.jsonl").read_text().splitlines()]
    lines[1]["law"] = table(constant(level=2.0))
    (folder / "settings.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    computed = recompute(Recording(folder), recording.rows)
    np.testing.assert_allclose(computed["command"], recording.rows["command"], rtol=0.0, atol=1e-12)


@pytest.mark.parametrize(
    "evil", ["__import__('os').system('touch pwned')", "open('pwned', 'w')", "math.__loader__", "(1).__class__"]
)
def test_source_in_a_recording_can_only_compute(tmp_path, trace, evil):
    folder = tmp_path / "run"
    record(folder, trace, "C", [table(constant()), table(constant(level=3.0))])
    settings = (folder / "settings.jsonl").read_text()
    (folder / "settings.jsonl").write_text(settings.replace("return level", f"return {evil}"))
    with pytest.raises(RecordingError, match="does not hold what a replay needs"):
        verify(Recording(folder))
    assert not Path("pwned").exists()


# ---- from the command line


def haptics(*arguments, folder):
    """Run a command; return its exit status, its JSON and its standard error."""
    command = [sys.executable, "-m", "apps", *arguments, "--json"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=100, check=False
    )
    return done.returncode, json.loads(done.stdout), done.stderr


LAW = '''
import math

UNUSED = math.pi


def rubber(speed, static=4.0, kinetic=3.0, width=0.2):
    """Level [N] that falls slowly with the sliding speed [m/s]."""
    return kinetic + (static - kinetic) / (1.0 + speed / width)
'''
SESSION = "--device virtual-joystick --model C --duration 0.5 --headless --record runs".split() + list(NO_PICTURE)


def test_law_file_works_from_command_line_to_replay(tmp_path):
    (tmp_path / "law.py").write_text(LAW, encoding="utf-8-sig")  # as editors on Windows like it
    status, ran, _ = haptics("run", *SESSION, "--set", "law.file=law.py", "--set", "law.static=5", folder=tmp_path)
    assert (status, ran["reason"]) == (0, "completed")
    (tmp_path / "law.py").unlink()  # the recording stands by itself
    settings = Recording(tmp_path / ran["recording"]).settings[0]["law"]
    assert settings["name"] == "custom"
    assert (settings["static"], settings["kinetic"]) == (5.0, 3.0)
    assert settings["source"].startswith("def rubber(speed, static=4.0")
    status, verified, _ = haptics("replay", "--verify", ran["recording"], folder=tmp_path)
    assert (status, verified["mismatches"], verified["ticks"]) == (0, 0, ran["ticks"])


@pytest.mark.parametrize(
    ("text", "settings", "complaint"),
    [
        (LAW, ("law.statik=5",), "unknown setting 'law.statik'. Did you mean 'law.static'?"),
        (LAW, ("law.name=coulomb",), "a file holds a custom law; leave law.name out"),
        (LAW + "\n\ndef second(speed):\n    return 1.0\n", (), "2 functions where there must be one"),
        ("import os\n\n\ndef f(speed):\n    return os.getpid()\n", (), "attribute 'getpid' is not allowed|'os' comes"),
        (None, (), "law.file = 'law.py': cannot be read"),
    ],
)
def test_invalid_law_file_is_refused_in_one_line(tmp_path, monkeypatch, text, settings, complaint):
    monkeypatch.chdir(tmp_path)
    if text is not None:
        (tmp_path / "law.py").write_text(text)
    tables = gather(None, ["law.file=law.py", *settings])
    tables["session"], tables["device"] = {"model": "C"}, {"name": "virtual-joystick"}
    with pytest.raises(ConfigurationError) as caught:
        complete(tables)
    assert any(part in str(caught.value) for part in complaint.split("|"))
    assert "\n" not in str(caught.value)


def test_invalid_law_file_ends_the_command_with_status_2(tmp_path):
    (tmp_path / "law.py").write_text("def f(speed):\n    return -1.0\n")
    status, result, messages = haptics("run", *SESSION, "--set", "law.file=law.py", folder=tmp_path)
    assert status == 2
    assert "its level at 0 m/s is -1 N" in result["error"]
    assert messages.count("\n") == 1
    assert not (tmp_path / "runs").exists()


@PHYSICS
@given(log_floats(0.1, 50.0), st.floats(1.0, 3.0), log_floats(1e-3, 1.0), st.floats(0.0, 10.0), st.floats(0.01, 0.9))
def test_custom_stribeck_law_equals_the_built_in_one(kinetic, ratio, width, viscosity, share):
    law = Stribeck(kinetic, kinetic * ratio, width, viscosity)
    twin = exponential(kinetic=kinetic, static=kinetic * ratio, width=width, viscosity=viscosity)
    meeting = Meeting(law, 1e-3 / (share * min(1.0, steepest(law))))
    x = meeting.arguments()
    expected, found = meeting.answers(x), Meeting(twin, meeting.mass).answers(x)
    size = np.maximum(law.breakaway_force, norms(expected.force))
    assert np.all(norms(found.force - expected.force) <= 1e-12 * size)
    assert np.all(norms(found.velocity - expected.velocity) <= 1e-12 * np.maximum(norms(x), meeting.mobility * size))
    assert twin.mobility_limit == pytest.approx(law.mobility_limit, rel=1e-3)
