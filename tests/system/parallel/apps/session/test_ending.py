"""The end of a run: a disk that takes no more, a session that is killed on the last metres, an arm that never moved."""

from __future__ import annotations

import io
import json
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from apps.cli import main
from apps.commands import _answer
from apps.session.outcome import Outcome
from apps.session.run import Session
from haptics.errors import ConfigurationError, DeviceFault, ServoLost
from haptics.recording.ending import Ending
from haptics.recording.recorder import Recorder
from haptics.recording.recording import EVENTS, METADATA, PART, SETTINGS, TICKS, Recording
from haptics.recording.replay import verify
from haptics.records import ROW, Permission
from haptics.trace import Reader, Trace
from tests.processes import ROOT, device_log, program, recordings
from tests.system.parallel.apps.session.test_run import Script, make_session

FULL = "No space left on device"


def fill(path: Path) -> Callable[[], None]:
    """Make every write to `path` fail as on a full disk; return what makes room again."""
    kept = path.with_name(f"{path.name}.kept")
    if path.exists():
        path.rename(kept)
    path.symlink_to("/dev/full")

    def make_room() -> None:
        path.unlink()
        if kept.exists():
            kept.rename(path)

    return make_room


def description(session: Session) -> Path:
    """Return what the description of a recording is written to before it takes the place of the old one."""
    return (session.folder / METADATA).with_suffix(".tmp")


def judge_kept(outcome: Outcome, told: str) -> Recording:
    """The run failed with status 4, by a disk that was full, without any loss; return its recording."""
    assert isinstance(outcome.fault, DeviceFault)
    assert FULL in str(outcome.fault)
    assert told in str(outcome.fault)
    assert "\n" not in str(outcome.fault)
    answer = _answer(outcome)
    assert (answer.status, answer.result["reason"]) == (4, "fault")
    assert answer.result["recording"] in answer.error
    assert answer.result["lost_ticks"] == 0
    recording = Recording(Path(answer.result["recording"]))
    assert len(recording.rows) == answer.result["ticks"] > 0
    assert verify(recording).mismatches == 0
    return recording


def judge_stopped(outcome: Outcome) -> Recording:
    """The run was stopped in order, and its recording says why; return it."""
    recording = judge_kept(outcome, "the run was stopped")
    assert recording.metadata["state"] == "complete"
    assert recording.metadata["reason"] == "fault"
    assert recording.metadata["error"] == str(outcome.fault)
    assert recording.metadata["certificate"]["ticks"] == len(recording.rows)
    assert recording.rows["permission"][-1] & Permission.ENDING, "it did not fade out"
    return recording


def test_a_change_that_cannot_be_written_down_does_not_come_into_force_and_ends_the_run(tmp_path: Path) -> None:
    session = make_session(tmp_path)

    def change() -> None:
        make_room = fill(session.folder / SETTINGS)
        session.change("law.force", 2.5)
        make_room()

    recording = judge_stopped(session.run(Script(session, [(300, change)])))
    assert set(recording.rows["settings_version"]) == {0}
    assert [entry["version"] for entry in recording.settings] == [0]
    assert session.config.law["force"] == 4.0


def test_advice_that_cannot_be_written_down_ends_the_run(tmp_path: Path) -> None:
    session = make_session(tmp_path)

    def change() -> None:
        make_room = fill(description(session))
        session.change("element.stiffness", 20_000.0)
        make_room()

    recording = judge_stopped(session.run(Script(session, [(300, change)])))
    assert [entry["version"] for entry in recording.settings] == [0, 1]
    assert recording.metadata["advice"][-1]["settings_version"] == 1


def test_a_device_whose_opening_cannot_be_written_down_is_stopped(tmp_path: Path) -> None:
    session = make_session(tmp_path)
    room = [fill(description(session))]

    def clear() -> None:
        if session.ending.fault is not None and room:
            room.pop()()

    recording = judge_stopped(session.run(clear))
    assert recording.metadata["real_time"]["scheduling"] in {"fifo", "other"}


def test_an_end_that_cannot_be_written_down_is_a_fault_with_every_tick_kept(tmp_path: Path) -> None:
    session = make_session(tmp_path)
    steps = [(200, lambda: fill(description(session))), (300, session.stop)]
    recording = judge_kept(session.run(Script(session, steps)), "its end is missing, its ticks are kept")
    assert "certificate" not in recording.metadata


def test_a_certificate_that_cannot_be_written_down_is_a_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    session = make_session(tmp_path, session={"duration": 0.3})

    certificate = session.recorder.summary.certificate

    def filling(*arguments: Any) -> dict[str, Any]:
        fill(description(session))
        return certificate(*arguments)

    monkeypatch.setattr(session.recorder.summary, "certificate", filling)
    recording = judge_kept(session.run(), "its certificate is missing")
    assert recording.metadata["state"] == "complete"
    assert recording.metadata["reason"] == "completed"


def test_a_recording_that_cannot_have_its_first_parameters_is_not_begun(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> None:
        raise OSError(28, FULL)

    monkeypatch.setattr(Recorder, "journal_settings", full)
    with pytest.raises(ConfigurationError, match=f"no recording can be made there .{FULL}"):
        make_session(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_mistake_beside_the_run_leaves_a_closed_recording(tmp_path: Path) -> None:
    session = make_session(tmp_path)
    with pytest.raises(ZeroDivisionError):
        session.run(Script(session, [(300, lambda: 1 / 0)]))
    recording = Recording(session.folder)
    assert recording.metadata["state"] == "interrupted"
    assert len(recording.rows) == session.servo.trace.count >= 300


@pytest.fixture
def ending(tmp_path: Path) -> Iterator[tuple[Ending, Recorder]]:
    """The end of a run of 40 ticks whose recording is still open, without the run."""
    trace = Trace.create(tmp_path / "trace")
    recorder = Recorder(tmp_path / "run", {})
    recorder.follow(Reader(trace))
    for tick in range(40):
        row = np.zeros(1, ROW)
        row["tick"] = tick
        trace.append(row[0])
    recorder.drain()
    yield Ending(recorder, trace, lambda line: None), recorder
    recorder._ticks.close()


@pytest.mark.parametrize("last", [None, DeviceFault("the view is gone.")])
def test_a_run_whose_servo_was_lost_is_not_complete_whatever_failed_after_that(
    ending: tuple[Ending, Recorder], last: DeviceFault | None
) -> None:
    end, recorder = ending
    end.fail(ServoLost("the servo process died.", recorder.rows()))
    if last is not None:
        end.fail(last)
    end.settle("stopped", complete=True)
    assert len(Recording(recorder.folder)) == 40
    recording = Recording(recorder.folder)
    assert recording.metadata["state"] == "interrupted"
    assert (recording.metadata["reason"], recording.metadata["error"]) == ("fault", "the servo process died.")
    assert (recorder.folder / PART).exists()
    event = json.loads((recorder.folder / EVENTS).read_text())
    assert (event["event"], event["ticks"]) == ("servo lost", 40)


def test_another_fault_leaves_a_recording_that_was_closed_in_order(ending: tuple[Ending, Recorder]) -> None:
    end, recorder = ending
    end.fail(DeviceFault("the view is gone."))
    end.settle("stopped", complete=True)
    assert Recording(recorder.folder).metadata["state"] == "complete"
    assert not (recorder.folder / EVENTS).exists()


def test_a_recording_whose_ticks_cannot_be_forced_to_the_disk_says_that_it_was_interrupted(
    ending: tuple[Ending, Recorder], monkeypatch: pytest.MonkeyPatch
) -> None:
    end, recorder = ending

    def broken(descriptor: int) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "fsync", broken)
    end.settle("stopped", complete=True)
    assert len(Recording(recorder.folder)) == 40
    assert "Input/output error" in str(end.fault)
    metadata = Recording(recorder.folder).metadata
    assert (metadata["state"], metadata["reason"], metadata["error"]) == ("interrupted", "stopped", None)


KILLED = """
import os, signal, sys
from apps.cli import main
from haptics.recording import ending
ending.Ending.certify = lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL)
main(["run", "--duration", "0.5", "--headless", "--record", sys.argv[1]])
"""


def test_a_session_that_is_killed_over_its_certificate_leaves_a_closed_recording(tmp_path: Path) -> None:
    with program("-c", KILLED, str(tmp_path)) as process:
        assert process.wait(90) == -signal.SIGKILL
    (folder,) = recordings(tmp_path)
    recording = Recording(folder)
    assert (recording.metadata["state"], recording.metadata["reason"]) == ("complete", "completed")
    assert recording.metadata["error"] is None
    assert "certificate" not in recording.metadata
    assert (folder / TICKS).exists()
    assert verify(recording).mismatches == 0
    assert verify(recording).ticks > 400
    said = io.StringIO()
    with redirect_stdout(said):
        assert main(["replay", str(folder), "--headless", "--json"]) == 0
    assert Path(json.loads(said.getvalue())["picture"]).exists()


def test_an_arm_that_was_never_sent_anything_records_no_command(tmp_path: Path) -> None:
    session = make_session(tmp_path, device={"name": "virtual-arm"}, session={"model": "A", "faults": ["nan@0"]})
    outcome = session.run()
    assert isinstance(outcome.fault, DeviceFault)
    recording = Recording(Path(outcome.summary["recording"]))
    assert recording.rows["tick"][-1] > 50
    assert np.isnan(recording.rows["command"]).all()
    told = device_log(recording.folder)
    assert len(told) <= 1, "to hold where it is, at the very end, is all that it can have been told"
    assert (told["time"] >= recording.rows["time"][-1]).all()
    formats = (ROOT / "docs" / "formats.md").read_text(encoding="utf-8").splitlines()
    (row,) = (line for line in formats if line.startswith("| `command` |"))
    assert "nan where nothing was sent" in row
