"""Keys with their ticks: the arithmetic, the file, who listens; and a session with two front ends behind real pipes."""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from apps.front_ends.front_end import ProcessFrontEnd
from apps.front_ends.messages import Key, SetParameter
from apps.session.events import BEFORE, KeyEvent, KeyJournal, tick_at
from apps.session.run import Session
from apps.session.service import Service
from apps.settings.config import complete
from haptics.errors import DeviceFault
from haptics.recording.recorder import Recorder
from haptics.recording.recording import ORIGIN, Recording
from haptics.records import ROW, Status
from haptics.servo.job import KEY_LASTS
from haptics.trace import Trace
from tests.apps.session.persons import listen, repeat


@given(st.integers(0, 10**16), st.sampled_from([1000.0, 333.0, 8000.0, 10.0, 997.3]))
@example(0, 1000.0)
@example(3_003_003, 333.0)
def test_a_tick_lasts_from_its_deadline_to_the_next(elapsed: int, rate: float) -> None:
    """The deadline is the servo's: whole periods from tick 0, to the nanosecond."""

    def deadline(tick: int) -> int:
        return int(tick * (1.0 / rate) * 1e9 + 0.5)

    tick = tick_at(elapsed, rate)
    assert deadline(tick) <= elapsed < deadline(tick + 1)
    assert tick_at(deadline(tick), rate) == tick
    assert tick_at(-1 - elapsed, rate) == BEFORE


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[tuple[KeyJournal, Recorder, Trace]]:
    """A key journal of a recording whose trace has no tick 0 yet."""
    recorder, trace = Recorder(tmp_path / "run", {}), Trace.create(tmp_path / "trace")
    yield KeyJournal(recorder, trace, 1000.0), recorder, trace
    recorder.close({}, complete=True)


def test_keys_are_written_down_with_the_tick_that_was_due(journal: tuple[KeyJournal, Recorder, Trace]) -> None:
    keys, recorder, trace = journal
    now = time.monotonic()
    events = [keys.write("f", True, now)]
    trace.origin[0] = round(1e9 * (now - 2.0))
    events += [keys.write("f", False, now - 0.5005), keys.write("left", True, now + 100.0), keys.write("j", True, 0.0)]
    assert [event.tick for event in events[:2]] == [BEFORE, 1499]
    assert 2000 <= events[2].tick < 12000, "nobody can press a key in the future"
    assert events[3].tick == BEFORE
    assert events[1].monotonic_ns == pytest.approx(1e9 * (now - 0.5005), abs=1e3)
    written = Recording(recorder.folder).events
    assert [entry.pop("event") for entry in written] == ["key"] * 4
    assert [KeyEvent(**entry) for entry in written] == events


def test_without_a_clock_a_key_belongs_to_the_newest_tick(journal: tuple[KeyJournal, Recorder, Trace]) -> None:
    _, recorder, trace = journal
    keys = KeyJournal(recorder, trace, None)
    assert keys.write("f", True, time.monotonic()).tick == BEFORE
    row = np.zeros((), ROW)
    row["tick"] = 41
    trace.append(row)
    assert keys.write("f", False, time.monotonic()).tick == 41


# --- a session --------------------------------------------------------------------------------------------------------


class Story:
    """Does one thing after the other while a session runs, each once its time has come."""

    def __init__(self, service: Service, *steps: tuple[Any, Any]) -> None:
        self._service, self._steps = service, list(steps)

    def __call__(self) -> None:
        self._service.attend()
        if self._steps and self._steps[0][0]():
            self._steps.pop(0)[1]()


def test_two_front_ends_one_of_which_dies_with_the_key(tmp_path: Path) -> None:
    tables = {"session": {"model": "C", "record": str(tmp_path)}, "envelope": {"dead_man": "key"}}
    session, told = Session(complete(tables), told_nothing), []  # type: Session, list[str]
    service, heard = Service(told.append), []  # type: Service, list[KeyEvent]
    session.keys.listen(heard.append)
    said = (Key("f", True), Key("f", False), SetParameter("law.force", 2.5))
    holds = ProcessFrontEnd(repeat, said, name="holds the key")
    looks, also = (ProcessFrontEnd(listen, (str(tmp_path / name),), name=name) for name in ("looks", "also"))
    for front in (holds, looks, also):
        service.fronts.add(front)
    service.begin(session)
    trace, killed = session.servo.trace, []  # type: Any, list[float]

    def felt() -> bool:
        rows = trace.since(trace.count - 300)
        return len(rows) == 300 and not (rows["status"] & Status.RELEASED).any()

    def kill() -> None:
        killed.append(time.monotonic())
        os.kill(holds._process.pid or 0, signal.SIGKILL)

    def later() -> bool:
        return time.monotonic() > killed[0] + 0.5

    outcome = session.run(Story(service, (felt, kill), (later, session.stop)), service.connections)
    service.fronts.close()
    assert (outcome.reason, outcome.fault) == ("stopped", None)
    assert told == ["a window ended unexpectedly; the run goes on with the others."]
    recording = Recording(Path(outcome.summary["recording"]))
    rows, origin = recording.rows, recording.metadata[ORIGIN]
    death = np.searchsorted(rows["time"], killed[0] - 1e-9 * origin)
    free = (rows["status"] & Status.RELEASED) != 0
    last = np.flatnonzero(~free)[-1]  # before its death already, where the machine had kept it from repeating the key
    assert rows["time"][last] - rows["time"][death] < KEY_LASTS + 0.01
    assert rows["time"][-1] - rows["time"][last] > 0.2, "the run went on without it"
    first, second = ((tmp_path / name).read_text() for name in ("looks", "also"))
    assert first == second
    assert re.findall(r"ValuesInForce.*law.force': 2.5", first)
    keys = [{**event} for event in recording.events if event["event"] == "key"]
    assert [(key["name"], key["down"], key["tick"]) for key in keys] == [("f", True, BEFORE), ("f", False, BEFORE)]
    assert [event.monotonic_ns for event in heard] == [key["monotonic_ns"] for key in keys]
    assert recording.events[-1]["event"] == "stopped"


def told_nothing(line: str) -> None:
    """Say nothing."""


def test_keys_of_a_run_lie_on_its_ticks_and_a_full_disk_ends_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = Session(complete({"session": {"model": "C", "record": str(tmp_path)}}), told_nothing)
    pressed: list[tuple[int, float]] = []

    def press() -> None:
        pressed.append((session.servo.newest_tick, time.monotonic()))
        session.take_key("f", True, pressed[-1][1])

    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    def fill_the_disk() -> None:
        monkeypatch.setattr(Recorder, "journal_event", full)
        session.take_key("f", False, time.monotonic())

    def after(ticks: int) -> Any:
        return lambda: session.servo.trace.count >= ticks

    outcome = session.run(Story(Service(told_nothing), (after(200), press), (after(300), fill_the_disk)))
    assert isinstance(outcome.fault, DeviceFault)
    assert "No space left" in str(outcome.fault)
    recording = Recording(Path(outcome.summary["recording"]))
    (key,) = [event for event in recording.events if event["event"] == "key"]
    ((newest, instant),) = pressed
    assert key["monotonic_ns"] == round(instant * 1e9)
    assert key["tick"] >= newest, "a tick is never executed before it is due"
    elapsed = instant - 1e-9 * recording.metadata[ORIGIN]
    assert key["tick"] * 1e-3 - 1e-6 <= elapsed < (key["tick"] + 1) * 1e-3 + 1e-6
