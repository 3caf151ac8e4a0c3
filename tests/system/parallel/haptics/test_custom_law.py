"""Custom laws in other processes, behind a rendering, in recordings and on the command line."""

import copy
import json
import multiprocessing
import pickle
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
from haptics.recording.replay import verify
from haptics.records import ROW, Status
from haptics.rendering.programs import parameters_of
from haptics.rendering.rendering import Rendering
from tests.haptics.changing import record_change
from tests.haptics.doubles import make_spec
from tests.haptics.friction.test_custom_law import exponential
from tests.haptics.references import norms, rubber, steepest
from tests.haptics.strategies import KINDS, PHYSICS, Meeting, log_floats, make, wandering
from tests.processes import NO_PICTURE
from tests.system.parallel.commands import haptics

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
    """Return the next steps of `element` and the same steps in one call; run in another process."""
    whole = simulate(element, inputs).output
    return np.array([element.step(row) for row in inputs]), whole


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
    for element, (steps, whole) in zip(elements, far, strict=True):
        expected = simulate(element, inputs[100:]).output
        np.testing.assert_array_equal(steps, expected)
        np.testing.assert_array_equal(whole, expected)


# ---- in front of a device


def tick(rendering, speed):
    """Command [N] along the first axis for one sample at `speed` [m/s]."""
    state = State(0.0, np.zeros(2), np.array([speed, 0.0]), np.zeros(2))
    return float(rendering.tick(state, 0.0, np.zeros(1, ROW), 0, (0, 0.0, 0.0, 0))[0])


def test_settings_have_the_address_of_a_custom_law_or_keep_the_law_of_the_element():
    rendering = Rendering(coupling(constant(level=4.0)), make_spec(max_force_rate=1e9))
    assert tick(rendering, 0.5) == -4.0
    parameters = parameters_of(coupling(constant(level=3.0)))
    parameters["law"]["address"] = 0
    rendering.configure(parameters, 1)
    assert rendering.core["version"][0] == 1
    assert tick(rendering, 0.5) == -3.0
    parameters = parameters_of(coupling(constant(level=2.0)))
    for address, force in ((parameters["law"]["address"].copy(), -2.0), (0, 0.0)):
        other = Rendering(coupling(Coulomb(4.0)), make_spec(max_force_rate=1e9))
        parameters["law"]["address"] = address
        other.configure(parameters, 1)
        assert tick(other, 0.5) == force
    assert other.core["status"][0] & Status.NOT_FINITE


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
    settings = ("--set", "law.file=law.py", "--set", "law.static=5")
    ran = json.loads(haptics("run", *SESSION, *settings, "--json", folder=tmp_path).stdout)
    assert ran["reason"] == "completed"
    (tmp_path / "law.py").unlink()  # the recording stands by itself
    law = Recording(tmp_path / ran["recording"]).settings[0]["law"]
    assert (law["name"], law["static"], law["kinetic"]) == ("custom", 5.0, 3.0)
    assert law["source"].startswith("def rubber(speed, static=4.0")
    verified = json.loads(haptics("replay", "--verify", ran["recording"], "--json", folder=tmp_path).stdout)
    assert (verified["mismatches"], verified["ticks"]) == (0, ran["ticks"])


@pytest.mark.parametrize(
    ("text", "settings", "complaint"),
    [
        (LAW, ("law.statik=5",), "unknown setting 'law.statik'. Did you mean 'law.static'?"),
        (LAW, ("law.name=coulomb",), "a file holds a custom law; leave law.name out"),
        (LAW + "\n\ndef second(speed):\n    return 1.0\n", (), "2 functions where there must be one"),
        ("import os\n\n\ndef f(speed):\n    return os.getpid()\n", (), "attribute 'getpid' is not allowed|'os' comes"),
        ("def f(speed):\n    return -1.0\n", (), "its level at 0 m/s is -1 N"),
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
