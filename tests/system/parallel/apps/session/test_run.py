"""Sessions in their real processes: parameters that change on the way, stops, and a disk that refuses."""

import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from apps.session.run import Session
from apps.settings.config import complete
from apps.verify.check import verify as verified
from haptics.errors import ConfigurationError, DeviceFault, DeviceOpenError
from haptics.recording.recording import Recording
from haptics.recording.replay import verify
from haptics.scenes import read_scene, scene_table
from haptics.servo.job import SILENCE


def make_session(folder: Path, **tables: dict[str, Any]) -> Session:
    session = {"model": "C", "record": str(folder), **tables.pop("session", {})}
    return Session(complete({"session": session, **tables}), lambda line: None)


class Script:
    """Does one thing after the other, each once the given number of ticks has been recorded."""

    def __init__(self, session: Session, steps: list[tuple[int, Any]]) -> None:
        self.session = session
        self.steps = steps

    def __call__(self) -> None:
        rows = self.session.servo.trace.count
        while self.steps and rows >= self.steps[0][0]:
            self.steps.pop(0)[1]()


def test_parameters_changed_on_the_way_act_are_journalled_and_replay(tmp_path: Path) -> None:
    session = make_session(tmp_path)
    script = Script(
        session,
        [
            (800, lambda: session.change("law.force", 2.5)),
            (1200, lambda: session.change("element.stiffness", 3000.0)),
            (1600, session.stop),
        ],
    )
    outcome = session.run(script)
    assert outcome.reason == "stopped"
    recording = Recording(Path(outcome.summary["recording"]))
    assert [entry["version"] for entry in recording.settings] == [0, 1, 2]
    assert recording.settings[2]["law"]["force"] == 2.5
    assert recording.settings[2]["element"]["stiffness"] == 3000.0
    rows = recording.rows
    assert set(rows["settings_version"]) == {0, 1, 2}
    slipping = (rows["sticking"] == 0) & (rows["settings_version"] == 1)
    assert np.hypot(*rows["friction_force"][slipping].T) == pytest.approx(2.5)
    assert verify(recording).mismatches == 0


def test_a_change_that_is_not_allowed_changes_nothing(tmp_path: Path) -> None:
    session = make_session(tmp_path)
    refused: list[str] = []

    def change() -> None:
        with pytest.raises(ConfigurationError, match=r"element\.stiffness = -5") as caught:
            session.change("element.stiffness", -5.0)
        refused.append(str(caught.value))

    outcome = session.run(Script(session, [(100, change), (200, session.stop)]))
    assert refused
    recording = Recording(Path(outcome.summary["recording"]))
    assert set(recording.rows["settings_version"]) == {0}
    assert len(recording.settings) == 1


def test_scenes_come_change_and_go_in_mid_run_and_all_of_it_replays(tmp_path: Path) -> None:
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

    def change() -> None:  # once the one before has arrived
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


def test_law_model_and_gate_change_at_random_and_all_of_it_replays(tmp_path: Path) -> None:
    session = make_session(tmp_path, law={"name": "coulomb", "force": 6.0})
    random = np.random.default_rng(3)
    trace, changed, latest = session.servo.trace, 0, 0

    def change() -> None:  # one every 60 ticks; a busy machine may need longer to compile what it brings
        nonlocal changed, latest
        if changed < 50 and trace.count - latest >= 60:
            session.configure(CHANGES[random.integers(len(CHANGES))])
            session.gate(bool(random.integers(2)))
            session.mark(changed)
            changed, latest = changed + 1, trace.count
        elif (
            changed == 50 and trace.since(trace.count - 1)["settings_version"][-1] == 50 and trace.count - latest >= 600
        ):
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
    assert found.mismatches == 0
    assert found.verdict == "ok"


@pytest.mark.parametrize(
    ("tables", "words"),
    [
        ({"session": {"rate": 500.0}}, r"session\.rate: a run goes on with its own"),
        ({"device": {"mass": 1.0}}, "device: a run goes on with its own"),
        ({"session": {"model": "A"}}, "model"),
        ({"law": {"name": "coulomb", "force": -1.0}}, r"law\.force = -1"),
    ],
)
def test_what_cannot_change_in_mid_run_is_refused(tables: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        complete({}).with_tables({"element": {"stiffness": 3000.0}, **tables})


def test_a_run_that_cannot_be_recorded_any_more_is_stopped(tmp_path: Path) -> None:
    session = make_session(tmp_path)

    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    def fill_the_disk() -> None:
        session.recorder.drain = full  # type: ignore[method-assign]
        session.recorder.close = full  # type: ignore[method-assign]

    outcome = session.run(Script(session, [(300, fill_the_disk)]))
    assert isinstance(outcome.fault, DeviceFault)
    assert "No space left" in str(outcome.fault)
    recording = Recording(Path(outcome.summary["recording"]))
    assert recording.metadata["state"] == "interrupted"
    assert len(recording.rows) >= 250
    assert outcome.summary["lost_ticks"] == outcome.summary["ticks"] - len(recording.rows)
    assert outcome.summary["lost_ticks"] >= 8, "it has faded out since the last row that could be written"
    session.recorder._ticks.close()


def test_a_session_that_was_frozen_ends_with_a_fault(tmp_path: Path) -> None:
    session = make_session(tmp_path)
    outcome = session.run(Script(session, [(300, lambda: time.sleep(2 * SILENCE))]))
    assert isinstance(outcome.fault, DeviceFault)
    assert "no sign of life" in str(outcome.fault)
    assert outcome.summary["lost_ticks"] == 0


def test_a_device_that_cannot_be_opened_is_no_fault_of_the_run(tmp_path: Path) -> None:
    session = make_session(tmp_path, device={"log": str(tmp_path / "missing" / "log.npy")})
    with pytest.raises(DeviceOpenError, match=r"log\.npy"):
        session.run()


def test_the_description_of_a_run_is_complete(tmp_path: Path) -> None:
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


def test_sessions_begun_in_the_same_second_get_folders_of_their_own(tmp_path: Path) -> None:
    config = complete({"session": {"model": "C", "record": str(tmp_path)}})
    sessions = [Session(config, lambda line: None) for _ in range(3)]
    assert len({session.folder for session in sessions}) == 3
    for session in sessions:
        session.recorder._ticks.close()
        session.servo.job.paths.close()


def test_presses_are_recorded_without_a_clock_and_replay(tmp_path: Path) -> None:
    hand = {"name": "scripted-force", "script": [[0.0, 1.0, 0.0]], "presses": ["2@0.05+0.1", "1@0.1+0.1"]}
    session = make_session(tmp_path, session={"clock": "off", "duration": 0.3, "picture": False}, hand=hand)
    recording = Recording(Path(session.run().summary["recording"]))
    ticks = recording.rows["tick"]
    two, one = (ticks >= 50) & (ticks < 150), (ticks >= 100) & (ticks < 200)
    assert recording.rows["buttons"].tolist() == (two * 0b100 + one * 0b10).tolist()
    assert len(ticks) == 300
    assert verify(recording).mismatches == 0
