"""A custom law elsewhere: in another process, behind a rendering, in a recording, on the command line."""

from __future__ import annotations

import copy
import functools
import json
import multiprocessing
import os
import pickle
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from haptics import ClosedForm, Coulomb, CustomLaw, Element, MasslessImpedance, friction_law, simulate
from haptics.clock import Clock
from haptics.device import State
from haptics.errors import RecordingError
from haptics.recording.recording import Recording
from haptics.recording.replay import again, verify
from haptics.records import ROW, Status
from haptics.rendering.programs import parameters_of
from haptics.rendering.rendering import Rendering
from haptics.servo.job import Job, Paths
from haptics.servo.process import ServoProcess
from haptics.trace import Trace
from tests.haptics.changing import record_change
from tests.haptics.doubles import BenchDevice, make_spec
from tests.haptics.references import Array, rubber
from tests.haptics.strategies import KINDS, make, wandering
from tests.processes import NO_PICTURE

ROOT = Path(__file__).parents[5]
every_kind = pytest.mark.parametrize("kind", KINDS)


@friction_law
def constant(speed, level=4.0):
    return level


@friction_law
def half(speed, level=4.0):
    return 0.5 * level


def coupling(law: CustomLaw) -> MasslessImpedance:
    return MasslessImpedance(law, 6000.0, 10.0)


# ---- to another process


def answers(element: Element, inputs: Array) -> tuple[int, Array, Array]:
    """Address of the law's function, the next steps of `element` and the same steps in one call; run elsewhere."""
    address = int(element.copy_record()["law"]["address"][0])
    whole = simulate(element, inputs).output
    return address, np.array([element.step(row) for row in inputs]), whole


def test_a_law_comes_out_of_a_pickle_as_it_went_in() -> None:
    law = rubber(static=6.0, width=0.2)
    for twin in (pickle.loads(pickle.dumps(law)), copy.copy(law), copy.deepcopy(law)):
        assert twin == law
        assert hash(twin) == hash(law)
        assert twin.breakaway_force == law.breakaway_force
        assert twin.slopes == law.slopes
        assert twin.mobility_limit == law.mobility_limit
        np.testing.assert_array_equal(twin.implicit((0.2, 0.1), 1e-3), law.implicit((0.2, 0.1), 1e-3))


@every_kind
def test_an_element_comes_out_of_a_pickle_with_its_state(kind: str) -> None:
    element, inputs = make(kind, rubber(static=5.5)), wandering(kind, 400)
    for row in inputs[:200]:
        element.step(row)
    expected = simulate(element, inputs[200:]).output
    for twin in (pickle.loads(pickle.dumps(element)), copy.copy(element), copy.deepcopy(element)):
        np.testing.assert_array_equal(simulate(twin, inputs[200:]).output, expected)


def test_it_is_compiled_again_in_a_process_that_knows_nothing() -> None:
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


def tick(rendering: Rendering, speed: float) -> float:
    """Command [N] along the first axis for one sample at `speed` [m/s]."""
    state = State(0.0, np.zeros(2), np.array([speed, 0.0]), np.zeros(2))
    return float(rendering.tick(state, 0.0, np.zeros(1, ROW), 0, (0, 0.0, 0.0, 0))[0])


def test_new_settings_from_another_process_bring_numbers_but_no_address() -> None:
    """An address of another process means nothing here: settings come without, and that of the law in force is kept."""
    rendering = Rendering(coupling(constant(level=4.0)), make_spec(max_force_rate=1e9))
    assert tick(rendering, 0.5) == -4.0
    parameters = parameters_of(coupling(constant(level=3.0)))
    parameters["law"]["address"] = 0
    rendering.configure(parameters, 1)
    assert rendering.core["version"][0] == 1
    assert tick(rendering, 0.5) == -3.0


def test_a_custom_law_after_another_law_needs_an_address_and_gives_no_force_without() -> None:
    rendering = Rendering(coupling(Coulomb(4.0)), make_spec(max_force_rate=1e9))
    parameters = parameters_of(coupling(half()))
    rendering.configure(parameters, 1)
    assert tick(rendering, 0.5) == -2.0
    strange = parameters.copy()
    strange["law"]["address"] = 0
    other = Rendering(coupling(Coulomb(4.0)), make_spec(max_force_rate=1e9))
    other.configure(strange, 1)
    assert tick(other, 0.5) == 0.0
    assert other.core["status"][0] & Status.NOT_FINITE


def make_bench(clock: Clock) -> BenchDevice:
    return BenchDevice(clock, max_force_rate=1e9)


def await_ticks(servo: ServoProcess, count: int, more: Callable[[], object] = lambda: None) -> None:
    """Let the servo work until it has executed `count` ticks; whatever it has to say is an error or ``ready``."""
    until = time.monotonic() + 90.0
    while servo.trace.count < count:
        assert time.monotonic() < until
        servo.beat()
        servo.next_message()
        more()
        time.sleep(0.005)


def test_a_servo_process_serves_it_and_takes_new_settings(tmp_path: Path) -> None:
    job = Job(functools.partial(make_bench), coupling(constant(level=4.0)), None, None, tmp_path, Paths.unique())
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


def table(law: CustomLaw) -> dict[str, Any]:
    return {"name": "custom", "source": law.source, **law.parameters}


def record(folder: Path, trace: Trace, model: str, laws: list[dict[str, Any]]) -> Recording:
    """Record a run in which the second law takes over at tick 400, with noisy samples."""
    random = np.random.default_rng(5)

    def shake(state: State, number: int) -> None:
        state.velocity += random.normal(0, 0.05, 2)
        state.force += random.normal(0, 2.0, 2)

    return record_change(folder, trace, model, laws, shake, at=400, duration=1.0)


@every_kind
def test_a_recording_replays_with_the_same_bits(tmp_path: Path, trace: Trace, kind: str) -> None:
    laws = [table(rubber(static=5.0, kinetic=4.0, viscosity=1.0)), table(rubber(static=4.0, kinetic=3.0, width=0.3))]
    found = verify(record(tmp_path / "run", trace, kind, laws))
    assert (found.ticks, found.mismatches) == (1000, 0)


def test_the_text_in_a_recording_decides(tmp_path: Path, trace: Trace) -> None:
    """Another function, or another number, is another law: the replay differs from the first tick it changes."""
    folder = tmp_path / "run"
    recording = record(folder, trace, "C", [table(rubber()), table(rubber(static=5.5))])
    assert recording.rows["sticking"].mean() < 0.99
    settings = (folder / "settings.jsonl").read_text()
    assert settings.count("kinetic + (static - kinetic)") == 2
    (folder / "settings.jsonl").write_text(settings.replace("speed / width", "speed / (width + 0.01)"))
    assert verify(Recording(folder)).mismatches > 500


def test_a_recording_in_which_another_law_became_a_custom_one_is_computed_with_that_law(
    tmp_path: Path, trace: Trace
) -> None:
    """Such a recording is never made, but it may be read: every law must come with its own function."""
    folder = tmp_path / "run"
    recording = record(folder, trace, "C", [{"name": "coulomb", "force": 4.0}, {"name": "coulomb", "force": 2.0}])
    assert verify(Recording(folder)).mismatches == 0
    lines = [json.loads(line) for line in (folder / "settings.jsonl").read_text().splitlines()]
    lines[1]["law"] = table(half())
    (folder / "settings.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    computed = again(Recording(folder), recording.rows)
    np.testing.assert_allclose(computed["command"], recording.rows["command"], rtol=0.0, atol=1e-12)


@pytest.mark.parametrize(
    "evil", ["__import__('os').system('touch pwned')", "open('pwned', 'w')", "math.__loader__", "(1).__class__"]
)
def test_the_text_in_a_recording_cannot_do_anything_but_compute(tmp_path: Path, trace: Trace, evil: str) -> None:
    folder = tmp_path / "run"
    record(folder, trace, "C", [table(constant()), table(constant(level=3.0))])
    settings = (folder / "settings.jsonl").read_text()
    (folder / "settings.jsonl").write_text(settings.replace("return level", f"return {evil}"))
    with pytest.raises(RecordingError, match="does not hold what a replay needs"):
        verify(Recording(folder))
    assert not Path("pwned").exists()


# ---- from the command line


def haptics(*arguments: str, folder: Path) -> tuple[int, dict[str, Any], str]:
    """Run a command; return its exit status, its JSON and its words."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-m", "apps", *arguments, "--json"],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    return done.returncode, json.loads(done.stdout), done.stderr


LAW = '''
import math

UNUSED = math.pi


def rubber(speed, static=4.0, kinetic=3.0, width=0.2):
    """Level [N] that falls slowly with the sliding speed [m/s]."""
    return kinetic + (static - kinetic) / (1.0 + speed / width)
'''
SESSION = (
    "--device",
    "virtual-joystick",
    "--model",
    "C",
    "--duration",
    "0.5",
    "--headless",
    "--record",
    "runs",
    *NO_PICTURE,
)


def test_a_file_is_a_law_from_the_command_line_to_the_replay(tmp_path: Path) -> None:
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
        (LAW, ("law.static=five",), "law.static = 'five': must be a finite number."),
        (LAW, ("law.width=0.001",), "condition 15"),
        (LAW, ("law.name=coulomb",), "a file holds a custom law; leave law.name out"),
        (LAW + "\n\ndef second(speed):\n    return 1.0\n", (), "2 functions where there must be one"),
        ("def f(speed):\n    return math.log(speed)\n", (), "level at 0 m/s is -inf N"),
        ("import os\n\n\ndef f(speed):\n    return os.getpid()\n", (), "attribute 'getpid' is not allowed|'os' comes"),
        ("this is no Python", (), "not valid Python"),
        (None, (), "law.file = 'law.py': cannot be read"),
    ],
)
def test_what_is_wrong_with_a_file_is_said_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str | None, settings: tuple[str, ...], complaint: str
) -> None:
    from apps.settings.config import complete, gather
    from haptics.errors import ConfigurationError

    monkeypatch.chdir(tmp_path)
    if text is not None:
        (tmp_path / "law.py").write_text(text)
    tables = gather(None, ["law.file=law.py", *settings])
    tables["session"], tables["device"] = {"model": "C"}, {"name": "virtual-joystick"}
    with pytest.raises(ConfigurationError) as caught:
        complete(tables)
    assert any(part in str(caught.value) for part in complaint.split("|"))
    assert "\n" not in str(caught.value)


def test_a_wrong_file_ends_the_command_with_status_2(tmp_path: Path) -> None:
    (tmp_path / "law.py").write_text("def f(speed):\n    return -1.0\n")
    status, said, words = haptics("run", *SESSION, "--set", "law.file=law.py", folder=tmp_path)
    assert status == 2
    assert "its level at 0 m/s is -1 N" in said["error"]
    assert words.count("\n") == 1
    assert not (tmp_path / "runs").exists()
