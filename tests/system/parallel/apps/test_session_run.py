"""Sessions with a servo process: changes during the run, stops, full disks, lost processes, and advice."""

from __future__ import annotations

import json
import math
import os
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from apps.cli import answer_of, main
from apps.session.application import Application
from apps.session.record import ParameterAdvice, session_metadata
from apps.session.run import Session, record_offline
from apps.settings.config import complete
from apps.settings.models import fitting
from apps.verification import examine
from apps.verify.check import verify as verified
from devices import is_virtual
from devices.virtual.joystick import VirtualJoystick
from haptics.device import MAX_CHANNELS
from haptics.elements.models import MasslessImpedance
from haptics.errors import ConfigurationError, DeviceFault, ServoLost
from haptics.friction.laws import Coulomb
from haptics.recording.checks import OK
from haptics.recording.recorder import Recorder, RunCloser
from haptics.recording.recording import EVENTS, METADATA, PART, SETTINGS, TICKS, Recording
from haptics.recording.replay import verify
from haptics.records import ROW, Permission
from haptics.scenes import read_scene, scene_table
from haptics.trace import Reader, Trace
from tests.apps.session.test_service import tables
from tests.haptics.doubles import make_spec
from tests.processes import program, recordings
from tests.system.parallel.commands import haptics


def make_session(folder, **tables):
    session = {"model": "C", "record": str(folder), **tables.pop("session", {})}
    return Session(complete({"session": session, **tables}), lambda line: None)


FULL = "No space left on device"


def full(*_, **__):
    raise OSError(28, FULL)


class Script:
    """Executes its steps in order, each once a number of ticks has been recorded."""

    def __init__(self, session, steps):
        self.session = session
        self.steps = steps

    def __call__(self):
        rows = self.session.servo.trace.count
        while self.steps and rows >= self.steps[0][0]:
            self.steps.pop(0)[1]()


def test_changed_parameters_act_are_journalled_and_replay_and_a_refused_one_has_no_effect(tmp_path):
    session = make_session(tmp_path)
    refused: list[str] = []

    def change():
        with pytest.raises(ConfigurationError, match=r"element\.stiffness = -5") as caught:
            session.change("element.stiffness", -5.0)
        refused.append(str(caught.value))

    steps: list[tuple[int, Any]] = [
        (100, change),
        (800, lambda: session.change("law.force", 2.5)),
        (1200, lambda: session.change("element.stiffness", 3000.0)),
        (1600, session.stop),
    ]
    outcome = session.run(Script(session, steps))
    assert (outcome.reason, len(refused)) == ("stopped", 1)
    recording = Recording(Path(outcome.summary["recording"]))
    assert [entry["version"] for entry in recording.settings] == [0, 1, 2]
    assert recording.settings[2]["law"]["force"] == 2.5
    assert recording.settings[2]["element"]["stiffness"] == 3000.0
    rows = recording.rows
    assert set(rows["settings_version"]) == {0, 1, 2}
    slipping = (rows["sticking"] == 0) & (rows["settings_version"] == 1)
    assert np.hypot(*rows["friction_force"][slipping].T) == pytest.approx(2.5)
    assert verify(recording).mismatches == 0


def test_scenes_are_set_changed_and_removed_during_a_run_that_replays(tmp_path):
    hand = {"points": [[-0.05, 0.0], [0.05, 0.01]], "pause": 0.01, "rest": 0.0, "speed": 0.6}
    session = make_session(tmp_path, session={"scene": "ice-wood-rubber"}, hand=hand)
    trace, latest = session.servo.trace, 0
    whole = scene_table(read_scene("relief"))
    steps: list[dict[str, Any]] = [
        {"law": {"static_force": 3.0}},
        {"scene": "border"},
        {"element": {"stiffness": 3000.0}},
        {"session": {"model": "B"}},
        {"scene": whole},
        {"scene": ""},
        {"law": {"viscosity": 4.0}},
    ]
    changes = list(steps)

    def change():  # once the last change has arrived
        nonlocal latest
        rows = trace.since(trace.count - 1)
        if not len(rows) or rows["settings_version"][-1] != len(steps) - len(changes) or trace.count - latest < 300:
            return
        latest = trace.count
        if changes:
            session.configure(changes.pop(0))
        else:
            session.stop()

    outcome = session.run(change)
    assert outcome.reason == "stopped", outcome.fault
    recording = Recording(Path(outcome.summary["recording"]))
    rows = recording.rows
    assert set(rows["settings_version"].tolist()) == set(range(8))
    assert recording.metadata["configuration"]["scene"]["name"] == "ice, wood, rubber"
    assert recording.settings[5]["scene"] == whole and "scene" not in recording.settings[6]
    there = [set(rows["region"][rows["settings_version"] == version].tolist()) for version in range(8)]
    assert all(regions and min(regions) >= 0 for regions in there[:6])
    assert there[6] == there[7] == {-1}
    found = verify(recording)
    assert (found.mismatches, found.verdict) == (0, "ok")
    assert verified(recording.folder)[1].verdict == "ok"


RUBBER = """
def rubber(speed, static=4.0, kinetic=3.0, width=2.0):
    return kinetic + (static - kinetic) / (1.0 + speed / width)
"""
CHANGES: list[dict[str, Any]] = [
    {"law": {"name": "coulomb", "force": 3.0}},
    {"law": {"name": "coulomb", "force": 1.0}},
    {"law": {"name": "stribeck", "static_force": 4.0, "kinetic_force": 3.0, "stribeck_velocity": 2.0}},
    {"law": {"name": "custom", "source": RUBBER}},
    {"law": {"name": "custom", "source": RUBBER, "static": 5.0}},
    {"session": {"model": "B"}},
    {"session": {"model": "C"}},
    {"session": {"model": "lugre"}, "law": {"name": "coulomb-viscous"}},
    {"session": {"model": "iwan"}},
    {"element": {"stiffness": 3000.0}},
]


def test_run_with_random_changes_of_law_model_and_gate_replays(tmp_path):
    session = make_session(tmp_path, law={"name": "coulomb", "force": 6.0})
    random = np.random.default_rng(3)
    trace, changed, latest = session.servo.trace, 0, 0

    def change():  # every 60 ticks; a busy machine may need longer to compile a law
        nonlocal changed, latest
        if changed < 50 and trace.count - latest >= 60:
            session.configure(CHANGES[random.integers(len(CHANGES))])
            session.gate(bool(random.integers(2)))
            session.mark(changed)
            changed, latest = changed + 1, trace.count
        elif changed == 50 <= trace.since(trace.count - 1)["settings_version"][-1] and trace.count - latest >= 600:
            session.stop()

    outcome = session.run(change)
    assert outcome.reason == "stopped", outcome.fault
    recording = Recording(Path(outcome.summary["recording"]))
    rows = recording.rows
    assert [entry["version"] for entry in recording.settings] == list(range(51))
    assert rows["settings_version"][-1] == 50
    assert (np.diff(rows["settings_version"]) >= 0).all()
    assert {entry["model"] for entry in recording.settings} >= {"B", "C", "lugre"}
    assert len(np.unique(rows["marker"])) > 40
    assert (rows["gate"] == 0.0).any() and (rows["gate"] == 1.0).any()
    found = verify(recording)
    assert (found.mismatches, found.verdict) == (0, "ok")


@pytest.mark.parametrize(
    ("tables", "words"),
    [
        ({"session": {"rate": 500.0}}, r"session\.rate: a run goes on with its own"),
        ({"device": {"mass": 1.0}}, "device: a run goes on with its own"),
        ({"session": {"model": "A"}}, "model"),
        ({"law": {"name": "coulomb", "force": -1.0}}, r"law\.force = -1"),
    ],
)
def test_settings_that_cannot_change_during_a_run_are_refused(tables, words):
    with pytest.raises(ConfigurationError, match=words):
        complete({}).with_tables({"element": {"stiffness": 3000.0}, **tables})


def test_run_that_can_no_longer_be_recorded_is_stopped(tmp_path):
    session = make_session(tmp_path)

    def fill_the_disk():
        session.recorder.drain = full
        session.recorder.close = full

    outcome = session.run(Script(session, [(300, fill_the_disk)]))
    assert isinstance(outcome.fault, DeviceFault) and FULL in str(outcome.fault)
    recording = Recording(Path(outcome.summary["recording"]))
    assert recording.metadata["state"] == "interrupted"
    assert len(recording.rows) >= 250
    assert outcome.summary["lost_ticks"] == outcome.summary["ticks"] - len(recording.rows)
    assert outcome.summary["lost_ticks"] >= 8, "the fade-out follows the last row that could be written"
    session.recorder._ticks.close()


def test_description_of_a_run_is_complete(tmp_path):
    session = make_session(tmp_path, session={"duration": 0.3, "seed": 9}, hand={"name": "minimum-jerk"})
    outcome = session.run()
    assert outcome.reason == "completed"
    metadata = Recording(Path(outcome.summary["recording"])).metadata
    assert metadata["state"] == "complete"
    assert metadata["device"]["identity"] == "virtual, seed 9"
    assert metadata["configuration"]["law"] == {"name": "coulomb", "force": 4.0}
    assert metadata["certificate"]["ticks"] + metadata["certificate"]["skipped"] == 300
    assert metadata["certificate"]["scheduling"] in {"fifo", "other"}
    assert metadata["versions"]["numpy"] == np.__version__
    assert metadata["parameter_file_hash"] is None


def test_sessions_of_the_same_second_have_separate_folders(tmp_path):
    config = complete({"session": {"model": "C", "record": str(tmp_path)}})
    sessions = [Session(config, lambda line: None) for _ in range(3)]
    assert len({session.folder for session in sessions}) == 3
    for session in sessions:
        session.recorder._ticks.close()
        session.servo.job.paths.close()


def test_button_presses_are_recorded_without_a_clock_and_replay(tmp_path):
    hand = {"name": "scripted-force", "script": [[0.0, 1.0, 0.0]], "presses": ["2@0.05+0.1", "1@0.1+0.1"]}
    session = make_session(tmp_path, session={"clock": "off", "duration": 0.3, "picture": False}, hand=hand)
    recording = Recording(Path(session.run().summary["recording"]))
    ticks = recording.rows["tick"]
    two, one = (ticks >= 50) & (ticks < 150), (ticks >= 100) & (ticks < 200)
    assert recording.rows["buttons"].tolist() == (two * 0b100 + one * 0b10).tolist()
    assert len(ticks) == 300
    assert verify(recording).mismatches == 0


def fill(path):
    """Make writes to `path` fail as on a full disk; return a function that undoes it."""
    kept = path.with_name(f"{path.name}.kept")
    if path.exists():
        path.rename(kept)
    path.symlink_to("/dev/full")

    def make_room():
        path.unlink()
        if kept.exists():
            kept.rename(path)

    return make_room


def description(session):
    """Return the temporary file of the description of a recording."""
    return (session.folder / METADATA).with_suffix(".tmp")


def judge_kept(outcome, told):
    """Check that a full disk ended the run with status 4 and without loss; return its recording."""
    assert isinstance(outcome.fault, DeviceFault)
    fault = str(outcome.fault)
    assert FULL in fault and told in fault and "\n" not in fault
    answer = answer_of(outcome)
    assert (answer.status, answer.result["reason"]) == (4, "fault")
    assert answer.result["recording"] in answer.error
    assert answer.result["lost_ticks"] == 0
    recording = Recording(Path(answer.result["recording"]))
    assert len(recording.rows) == answer.result["ticks"] > 0
    assert verify(recording).mismatches == 0
    return recording


def judge_stopped(outcome):
    """Check that the run was stopped in order and its recording has the reason; return it."""
    recording = judge_kept(outcome, "the run was stopped")
    state = tuple(recording.metadata[key] for key in ("state", "reason", "error"))
    assert state == ("complete", "fault", str(outcome.fault))
    assert recording.metadata["certificate"]["ticks"] == len(recording.rows)
    assert recording.rows["permission"][-1] & Permission.ENDING, "no fade-out"
    return recording


def test_change_that_cannot_be_journalled_has_no_effect_and_ends_the_run(tmp_path):
    session = make_session(tmp_path)

    def change():
        make_room = fill(session.folder / SETTINGS)
        session.change("law.force", 2.5)
        make_room()

    recording = judge_stopped(session.run(Script(session, [(300, change)])))
    assert set(recording.rows["settings_version"]) == {0}
    assert [entry["version"] for entry in recording.settings] == [0]
    assert session.config.law["force"] == 4.0


def test_advice_that_cannot_be_written_ends_the_run(tmp_path):
    session = make_session(tmp_path)

    def change():
        make_room = fill(description(session))
        session.change("element.stiffness", 20_000.0)
        make_room()

    recording = judge_stopped(session.run(Script(session, [(300, change)])))
    assert [entry["version"] for entry in recording.settings] == [0, 1]
    assert recording.metadata["advice"][-1]["settings_version"] == 1


def test_run_whose_device_facts_cannot_be_written_is_stopped(tmp_path):
    session = make_session(tmp_path)
    room = [fill(description(session))]

    def clear():
        if session.ending.fault is not None and room:
            room.pop()()

    recording = judge_stopped(session.run(clear))
    assert recording.metadata["real_time"]["scheduling"] in {"fifo", "other"}


def test_end_that_cannot_be_written_is_a_fault_with_every_tick_kept(tmp_path):
    session = make_session(tmp_path)
    steps = [(200, lambda: fill(description(session))), (300, session.stop)]
    recording = judge_kept(session.run(Script(session, steps)), "its end is missing, its ticks are kept")
    assert "certificate" not in recording.metadata


def test_certificate_that_cannot_be_written_is_a_fault(tmp_path, monkeypatch):
    session = make_session(tmp_path, session={"duration": 0.3})

    certificate = session.recorder.summary.certificate

    def filling(*arguments):
        fill(description(session))
        return certificate(*arguments)

    monkeypatch.setattr(session.recorder.summary, "certificate", filling)
    recording = judge_kept(session.run(), "its certificate is missing")
    assert recording.metadata["state"] == "complete"
    assert recording.metadata["reason"] == "completed"


def test_recording_without_its_first_parameters_is_not_begun(tmp_path, monkeypatch):
    monkeypatch.setattr(Recorder, "journal_settings", full)
    with pytest.raises(ConfigurationError, match=f"no recording can be made there .{FULL}"):
        make_session(tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def ending(tmp_path):
    """The end of a run of 40 ticks whose recording is still open, without the run."""
    trace = Trace.create(tmp_path / "trace")
    recorder = Recorder(tmp_path / "run", {})
    recorder.attach(Reader(trace))
    for tick in range(40):
        row = np.zeros(1, ROW)
        row["tick"] = tick
        trace.append(row[0])
    recorder.drain()
    yield RunCloser(recorder, trace, lambda line: None), recorder
    recorder._ticks.close()


@pytest.mark.parametrize("later", [(), (DeviceFault("the view is gone."),)], ids=["alone", "and a later fault"])
def test_run_with_a_lost_servo_is_interrupted(ending, later):
    end, recorder = ending
    for fault in (ServoLost("the servo process died.", recorder.rows()), *later):
        end.fail(fault)
    end.close("stopped", complete=True)
    assert len(Recording(recorder.folder)) == 40
    recording = Recording(recorder.folder)
    assert recording.metadata["state"] == "interrupted"
    assert (recording.metadata["reason"], recording.metadata["error"]) == ("fault", "the servo process died.")
    assert (recorder.folder / PART).exists()
    event = json.loads((recorder.folder / EVENTS).read_text())
    assert (event["event"], event["ticks"]) == ("servo lost", 40)


def test_other_fault_leaves_a_complete_recording(ending):
    end, recorder = ending
    end.fail(DeviceFault("the view is gone."))
    end.close("stopped", complete=True)
    assert Recording(recorder.folder).metadata["state"] == "complete"
    assert not (recorder.folder / EVENTS).exists()


def test_recording_whose_ticks_cannot_be_synchronised_is_interrupted(ending, monkeypatch):
    end, recorder = ending

    def broken(descriptor):
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "fsync", broken)
    end.close("stopped", complete=True)
    assert len(Recording(recorder.folder)) == 40
    assert "Input/output error" in str(end.fault)
    metadata = Recording(recorder.folder).metadata
    assert (metadata["state"], metadata["reason"], metadata["error"]) == ("interrupted", "stopped", None)


KILLED = """
import os, signal, sys
from apps.cli import answer_of, main
from haptics.recording.recorder import RunCloser
RunCloser.certify = lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL)
main(["run", "--duration", "0.5", "--headless", "--record", sys.argv[1]])
"""


def test_session_killed_during_its_certificate_leaves_a_closed_recording(tmp_path, capsys):
    with program("-c", KILLED, str(tmp_path)) as process:
        assert process.wait(90) == -signal.SIGKILL
    (folder,) = recordings(tmp_path)
    recording = Recording(folder)
    assert (recording.metadata["state"], recording.metadata["reason"]) == ("complete", "completed")
    assert recording.metadata["error"] is None
    assert "certificate" not in recording.metadata
    assert (folder / TICKS).exists()
    assert (verify(recording).ticks, verify(recording).mismatches) == (len(recording), 0)
    assert 0 < len(recording) <= 500  # a busy machine skips some
    assert main(["replay", str(folder), "--headless", "--json"]) == 0
    assert Path(json.loads(capsys.readouterr().out)["picture"]).exists()


JOYSTICK = make_spec(mass=0.2, damping=1.0, delay=0.5e-3, position_resolution=10e-6)


def model_c(stiffness, force=4.0):
    return MasslessImpedance(Coulomb(force), stiffness, 10.0)


@pytest.mark.parametrize(
    ("device", "model"), [(name, model) for name, models in fitting().items() if is_virtual(name) for model in models]
)
def test_defaults_give_no_warning_except_for_models_without_damping(device, model):
    config = complete({"session": {"model": model}, "device": {"name": device}})
    element = config.built_element
    undamped = hasattr(element, "stiffness") and not hasattr(element, "damping")
    assert bool(ParameterAdvice(config.spec).consider(element, 0)) is undamped
    assert undamped is (model in {"dahl", "hayward-armstrong"})


def test_arm_without_a_sufficient_mass_can_be_recorded():
    config = complete({"session": {"model": "A"}, "device": {"name": "virtual-arm"}})
    vars(config)["spec"] = replace(config.spec, least_mass=math.inf)
    assert "no element.mass keeps it" in ParameterAdvice(config.spec).consider(config.built_element, 0)
    assert json.loads(json.dumps(session_metadata(config), allow_nan=False))["device"]["least_mass"] is None


def test_crossing_a_bound_warns_once_and_again_after_a_return_and_a_note_does_not_warn():
    counsel = ParameterAdvice(JOYSTICK)
    assert counsel.consider(model_c(7e3), 0) == ""
    assert [entry.pop("severity") for entry in counsel.record] == ["note"]
    counsel = ParameterAdvice(JOYSTICK)
    said = [counsel.consider(model_c(K), version) for version, K in enumerate((4.5e3, 2e4, 3e4, 5e4, 4.5e3, 2e4))]
    assert [bool(line) for line in said] == [False, True, False, False, False, True]
    assert [entry["settings_version"] for entry in counsel.record] == [1, 5]
    assert counsel.warnings == [said[1], said[5]]


def test_second_bound_warns_without_repeating_the_first():
    counsel = ParameterAdvice(JOYSTICK)
    first, second = counsel.consider(model_c(2e4), 0), counsel.consider(model_c(2e4, force=0.5), 1)
    assert "element.stiffness = 20000" in first and "encoder" not in first
    assert "encoder" in second and "element.stiffness = 20000" not in second


@pytest.mark.parametrize(
    ("law", "key", "first", "bound", "words"),
    [
        ({}, "element.stiffness", 20_000.0, "stiffness", "element.stiffness = 20000 N/m"),
        (
            {"name": "coulomb-viscous-closed-form", "viscosity": 1.0},
            *("law.viscosity", 30.0, "approximation", "choose the exact law, coulomb-viscous,"),
        ),
    ],
    ids=["stiffness", "closed form"],
)
def test_parameter_beyond_a_bound_warns_once_and_is_recorded(tmp_path, law, key, first, bound, words):
    """The closed form of a law that is too steep is a poor approximation: condition (48)."""
    lines: list[str] = []
    warned: list[str] = []
    config = complete({"session": {"model": "C", "record": str(tmp_path)}, "law": law})
    session = Session(config, lines.append, warned.append)
    steps: list[tuple[int, Any]] = [
        (100, lambda: session.change(key, first)),
        (150, lambda: session.change(key, 1.5 * first)),
        (200, session.stop),
    ]
    outcome = session.run(Script(session, steps))
    assert len(warned) == 1 and words in warned[0]
    assert warned[0] not in lines
    assert outcome.summary["advice"] == warned
    advice = Recording(Path(outcome.summary["recording"])).metadata["advice"]
    found = [(entry["settings_version"], entry["bound"]) for entry in advice if entry["severity"] == "warning"]
    assert found == [(1, bound)]


def test_device_warns_once_about_its_channels(tmp_path, monkeypatch):
    def review(device, channels):
        assert channels.shape == (len(channels), MAX_CHANNELS) and len(channels) >= 100
        return "the device has a limit"

    monkeypatch.setattr(VirtualJoystick, "review", review, raising=False)
    warned: list[str] = []
    config = complete({"session": {"model": "C", "record": str(tmp_path), "duration": 0.8}})
    outcome = Session(config, lambda line: None, warned.append).run()
    assert outcome.summary["advice"] == warned == ["the device has a limit"]


def test_error_of_opening_comes_without_advice(tmp_path):
    wish = "run --device forcedimension --model C --set element.stiffness=60000 --headless --set device.library=nowhere"
    done = haptics(*wish.split(), folder=tmp_path, status=2)
    assert "device.library = 'nowhere': does not exist" in done.stderr.splitlines()[-1]
    assert "advice:" not in done.stderr and "60000" not in done.stderr


def test_command_warns_in_one_line_and_runs(tmp_path):
    wish = "run --device virtual-joystick --model C --set element.stiffness=60000 --duration 0.3 --headless --json"
    done = haptics(*wish.split(), folder=tmp_path)
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("advice: ")]
    assert "element.stiffness = 60000 N/m" in line and "buzzes above 10500 N/m" in line
    answer = json.loads(done.stdout)
    assert line == f"advice: {answer['advice'][0]}"
    metadata = json.loads((tmp_path / answer["recording"] / "recording.json").read_text())
    assert [entry["bound"] for entry in metadata["advice"]] == ["stiffness"]
    assert metadata["advice"][0]["limit"] == pytest.approx(10_466.0, rel=1e-3)


def test_offline_session_equals_the_session_of_a_servo_process(tmp_path):
    own = record_offline(complete(tables(tmp_path)), tmp_path / "own")
    outcome = Application(tables(tmp_path / "there"), notify=lambda line: None).run()
    other = Recording(Path(outcome.summary["recording"]))
    assert len(own.rows) == len(other.rows) == 500
    for name in ("tick", "position", "velocity", "command", "friction_force", "hand_force", "status"):
        np.testing.assert_array_equal(own.rows[name], other.rows[name])
    found = examine(own)
    assert (found.mismatches, found.verdict) == (0, OK)
