"""The dead-man's key on its way from the view to the servo, and sessions whose window cannot be held."""

from __future__ import annotations

import json
import os
import pickle
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from apps.front_ends.messages import HoldKey
from apps.session.held_key import HeldKey
from haptics.servo.job import CONTROL, KEY_LASTS
from haptics.servo.lane import Lane
from haptics.servo.supervision import Supervision
from haptics.shared import SharedFile
from tests.conftest import MISSING_QT
from tests.processes import RUN, program, until_running

with_qt = pytest.mark.skipif(bool(MISSING_QT), reason=MISSING_QT)

KEY = ("--set", "envelope.dead_man=key")


@pytest.fixture
def ends() -> Iterator[tuple[HeldKey, Supervision]]:
    """The session's end and the servo's."""
    file = SharedFile("control")
    lane = Lane(file.path, CONTROL, create=True)
    yield HeldKey(file.path), Supervision(lane)
    file.close()


def test_a_key_is_held_from_the_word_that_it_is_to_the_word_that_it_is_not(ends: tuple[HeldKey, Supervision]) -> None:
    session, servo = ends
    assert not servo.key_is_held()
    session.held(time.monotonic())
    assert servo.key_is_held()
    session.let_go()
    assert not servo.key_is_held()


def test_a_word_that_comes_late_is_an_old_one(ends: tuple[HeldKey, Supervision]) -> None:
    session, servo = ends
    session.held(time.monotonic() - KEY_LASTS)
    assert not servo.key_is_held()
    session.held(time.monotonic() - 0.9 * KEY_LASTS)
    time.sleep(0.2 * KEY_LASTS)
    assert not servo.key_is_held()


@pytest.mark.parametrize(("old", "held"), [(0.0, True), (0.1, True), (0.151, False), (1.0, False)])
def test_a_key_is_released_150_ms_after_the_last_word(
    ends: tuple[HeldKey, Supervision], monkeypatch: pytest.MonkeyPatch, old: float, held: bool
) -> None:
    """So long has `docs/safety.md` promised; three words of the view may be late or lost."""
    session, servo = ends
    now = time.monotonic()
    monkeypatch.setattr("apps.session.held_key.time", SimpleNamespace(monotonic_ns=lambda: round((now - old) * 1e9)))
    session.held(now - old)
    assert servo.key_is_held() == held


def test_a_word_from_the_future_holds_no_longer_than_one_of_now(ends: tuple[HeldKey, Supervision]) -> None:
    session, servo = ends
    session.held(time.monotonic() + 60.0)
    assert servo.key_is_held()
    time.sleep(1.1 * KEY_LASTS)
    assert not servo.key_is_held()


def test_a_word_carries_the_time_at_which_it_was_said() -> None:
    before = time.monotonic()
    said = HoldKey(True)
    after = time.monotonic()
    received = pickle.loads(pickle.dumps(said))
    assert before <= received.at == said.at <= after
    assert received == HoldKey(True)


# --- windows


def environment(**variables: str) -> dict[str, str]:
    return {**os.environ, "WAYLAND_DISPLAY": "", **variables}


def children_of(pid: int) -> list[int]:
    """Return the processes of a session, in the order in which they were started."""
    tasks = Path(f"/proc/{pid}/task").iterdir()
    children = {int(child) for task in tasks for child in (task / "children").read_text().split()}
    return sorted(pid for pid in children if b"spawn_main" in Path(f"/proc/{pid}/cmdline").read_bytes())


@with_qt
def test_a_key_in_a_window_that_cannot_be_opened_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    dead = environment(DISPLAY=":4242", QT_QPA_PLATFORM="xcb")
    pipe = subprocess.PIPE
    with program(*RUN, *KEY, "--duration", "1", env=dead, cwd=tmp_path, stdout=pipe, stderr=pipe) as process:
        out, err = process.communicate(timeout=90)
    assert process.returncode == 2, err
    (line,) = (line for line in err.splitlines() if line.startswith("haptics: "))
    assert "the space bar of the live view must be held, but there is none" in line
    assert ":4242" in line
    assert json.loads(out)["error"] in line
    assert "Traceback" not in err
    assert list(tmp_path.iterdir()) == []


@with_qt
def test_a_run_whose_window_dies_with_its_key_is_status_4(tmp_path: Path) -> None:
    unseen = environment(DISPLAY=":0", QT_QPA_PLATFORM="offscreen")
    pipe = subprocess.PIPE
    with program(*RUN, *KEY, "--record", str(tmp_path), env=unseen, stdout=pipe, stderr=pipe) as process:
        recording = until_running(process, tmp_path)
        _servo, view = children_of(process.pid)
        os.kill(view, signal.SIGKILL)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 4, err
    assert "the live view ended unexpectedly, and with it the dead-man's key" in err
    assert "Traceback" not in err
    answer, metadata = json.loads(out), json.loads((recording / "recording.json").read_text())
    assert answer["reason"] == metadata["reason"] == "fault"
    assert answer["lost_ticks"] == 0
    assert metadata["state"] == "complete"
