"""Real processes that fail: a device that goes bad, and an application or a servo that is killed or stopped.

How long it takes until the device is safe is read from the log of the device, which is written in the servo's process
but by the device, and from the journal of the session; all clocks are the machine's monotonic one. What the machine
itself stalled is not counted: a thread that does nothing but wake up every half millisecond knows how much that was. It
cannot know all of it, so that these tests are marked `wall_clock`.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from haptics.recording.recording import Recording
from haptics.recording.replay import verify
from haptics.records import Permission, Rows
from haptics.rendering.envelope import FADE_OUT
from tests.processes import RUN, Application, device_log, ended, program, recordings, state_of, until, written

PROMPT = 0.02
"""How long it may take until the output is safe, or a stopped servo is killed [s]."""

SLOW_HAND = ("--set", "hand.speed=0.03", "--set", "hand.pause=0", "--set", "hand.rest=0", "--seed", "3")
"""A hand that slides for seconds: there is a force to lose."""


# --- a device that goes bad ----------------------------------------------------------------------------------------

FATAL = {
    "read-error": ("virtual-joystick", "Input/output error (read, fault on demand)"),
    "infinite": ("virtual-arm", "was not a finite number"),
    "hang": ("virtual-joystick", "has not run for 1 s"),
}


def run_with(fault: str, folder: Path) -> subprocess.CompletedProcess[str]:
    device, _ = FATAL[fault]
    where = ("--headless", "--record", str(folder))
    arguments = ("--device", device, "--fault", f"{fault}@0.3", "--duration", "30")
    with program(*RUN, *where, *arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        out, err = process.communicate(timeout=100)
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


@pytest.fixture(scope="module")
def failed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, subprocess.CompletedProcess[str]]:
    """Every run of `FATAL`, two at a time."""
    folder = tmp_path_factory.mktemp("failed")
    with ThreadPoolExecutor(2) as pool:
        runs = {fault: pool.submit(run_with, fault, folder / fault) for fault in FATAL}
        return {fault: run.result() for fault, run in runs.items()}


@pytest.mark.parametrize("fault", sorted(FATAL))
def test_a_bad_device_is_status_4_named_with_its_tick(
    failed: dict[str, subprocess.CompletedProcess[str]], fault: str
) -> None:
    done, (device, complaint) = failed[fault], FATAL[fault]
    assert done.returncode == 4, done.stderr
    assert "Traceback" not in done.stderr
    answer = json.loads(done.stdout)
    assert complaint in answer["error"]
    assert answer["reason"] == "fault"
    recording = Recording(Path(answer["recording"]))
    assert len(recording.rows) == answer["ticks"]
    assert answer["lost_ticks"] == 0
    assert np.isfinite(recording.rows["command"]).all()
    assert verify(recording).mismatches == 0
    last = int(recording.rows["tick"][-1])
    if fault == "hang":
        assert f"after tick {last}" in answer["error"]
        assert last == pytest.approx(299, abs=30)
        return
    tick = int(answer["error"].removeprefix(f"{device} failed at tick ").partition(":")[0])
    assert tick in (last, last + 1)
    assert tick >= 300


# --- processes that fail -------------------------------------------------------------------------------------------

by_signal = pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP], ids=lambda number: number.name)


class Stalls(threading.Thread):
    """Wakes up every half millisecond and keeps how much later than that it came to it."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self._over = threading.Event()
        self._late: list[tuple[float, float]] = []
        self._began = 0.0

    def run(self) -> None:
        last = time.monotonic()
        while not self._over.is_set():
            time.sleep(0.0005)
            now = time.monotonic()
            if now - last > 0.002:
                self._late.append((now, now - last))
            last = now

    def passed(self, instant: float) -> float:
        """Return how long it was from the beginning to `instant` without what the machine stood still [s]."""
        stalls = (min(now, instant) - max(now - late, self._began) for now, late in self._late)
        return instant - self._began - sum(max(stall, 0.0) for stall in stalls)

    def __enter__(self) -> Stalls:
        self.start()
        self._began = time.monotonic()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self.join()


class Session(Application):
    """A session in processes of its own, with a handle that slides."""

    def __init__(self, application: subprocess.Popen[str], folder: Path) -> None:
        super().__init__(application, folder)
        self._recordings = folder / "recordings"
        until(self._slides, "the handle never slid")
        (self.recording,) = recordings(self._recordings)
        self.servo = self._servo()

    @property
    def told(self) -> np.ndarray[Any, np.dtype[Any]]:
        """What the device was told, in order."""
        return device_log(self.recording)

    def event(self) -> dict[str, Any]:
        """Return the last line of the journal."""
        return dict(json.loads((self.recording / "events.jsonl").read_text().splitlines()[-1]))

    def await_event(self) -> None:
        """Wait until there is a journal."""
        until((self.recording / "events.jsonl").exists, "nothing was written into the journal")

    def await_end_of_servo(self) -> None:
        """Wait until the servo has ended."""
        until(lambda: ended(self.servo), "the servo never ended", every=0.001)

    def await_kill_of_servo(self) -> None:
        """Wait until the servo, which was stopped, was sent the signal that ends it: it never goes on any more."""
        until(lambda: state_of(self.servo) in "TZX", "the servo was not stopped", every=0.0002)
        until(lambda: state_of(self.servo) != "T", "the servo was not killed", every=0.0002)

    def _slides(self) -> bool:
        assert self.application.poll() is None, self.said
        commands = [device_log(folder)["command"] for folder in recordings(self._recordings)]
        return any(len(one) > 500 and bool((np.hypot(*one[-100:].T) > 3.0).all()) for one in commands)

    def _servo(self) -> int:
        tasks = Path(f"/proc/{self.application.pid}/task")
        children = {int(pid) for task in tasks.iterdir() for pid in (task / "children").read_text().split()}
        (servo,) = (pid for pid in children if b"spawn_main" in Path(f"/proc/{pid}/cmdline").read_bytes())
        return servo


Begin = Callable[[], Session]


@pytest.fixture
def sessions(tmp_path: Path) -> Iterator[Begin]:
    """Begins sessions, and ends them."""
    with ExitStack() as begun:

        def begin() -> Session:
            folder = tmp_path / str(len(list(tmp_path.iterdir())))
            folder.mkdir()
            arguments = ("--device", "virtual-joystick", "--model", "C", "--duration", "60", *SLOW_HAND)
            where = ("--headless", "--record", str(folder / "recordings"))
            return Session(begun.enter_context(written(folder, *RUN, *where, *arguments)), folder)

        yield begin


def promptly(taken: float, what: str) -> None:
    """Make sure that it took, without stalls, no longer than it may [s]."""
    print(f"{what}: {1e3 * taken:.1f} ms")  # noqa: T201 - with -rP
    assert taken <= PROMPT


def safe_at(session: Session) -> float:
    """Return when the device was told for good to give no force [s, monotonic]."""
    told = session.told
    pushed = np.flatnonzero(told["command"].any(axis=1))
    return float(told["monotonic_ns"][pushed[-1] + 1]) * 1e-9


def judge_fade(rows: Rows) -> None:
    """The force went down step by step, in the ticks that were told so."""
    told = (rows["permission"] & int(Permission.ENDING)) != 0
    assert 1 <= told.sum() <= round(FADE_OUT * 1e3) + 1
    assert told[-1]
    forces = np.hypot(*rows["command"][told].T)
    assert (np.diff(forces) <= 0.0).all()
    assert forces[0] < 0.95 * np.hypot(*rows["command"][~told][-1])


@pytest.mark.wall_clock
@by_signal
def test_without_the_application_the_device_is_safe_within_20_ms(sessions: Begin, number: signal.Signals) -> None:
    session = sessions()
    with Stalls() as stalls:
        session.application.send_signal(number)
        session.await_event()
        time.sleep(0.05)
    event, safe = session.event(), safe_at(session)
    assert event["event"] == "application lost"
    assert event["safe_output_monotonic_ns"] * 1e-9 == pytest.approx(safe, abs=0.02)
    if number == signal.SIGSTOP:
        session.application.send_signal(signal.SIGCONT)
        assert session.application.wait(60.0) == 4, session.said
        assert "was brought to its safe output after tick" in session.answer["error"]
        assert "virtual-joystick" in session.answer["error"]
        assert Recording(session.recording).metadata["state"] == "complete"
        assert session.answer["lost_ticks"] == 0
    session.await_end_of_servo()
    recording = Recording(session.recording)
    assert len(recording.rows) == event["ticks"]
    assert verify(recording).mismatches == 0
    judge_fade(recording.rows)
    if number == signal.SIGKILL:
        assert recording.metadata["state"] == "interrupted"
    promptly(stalls.passed(safe), f"safe after {number.name} of the application")


@pytest.mark.wall_clock
@by_signal
def test_a_servo_that_is_lost_is_ended_within_20_ms_and_its_device_told_no_more(
    sessions: Begin, number: signal.Signals
) -> None:
    session = sessions()
    with Stalls() as stalls:
        os.kill(session.servo, number)
        session.await_kill_of_servo()
        killed = time.monotonic()
        session.await_end_of_servo()
        status = session.application.wait(60.0)
    assert status == 4, session.said
    assert "Traceback" not in session.said
    word = "was stopped from outside" if number == signal.SIGSTOP else "killed by SIGKILL"
    assert word in session.answer["error"]
    recording = Recording(session.recording)
    last = int(recording.rows["tick"][-1])
    assert f"after tick {last}" in session.answer["error"]
    assert recording.metadata["state"] == "interrupted"
    assert verify(recording).mismatches == 0
    # From here on it is the device's own watchdog that counts: nothing must feed it.
    silent = float(session.told["monotonic_ns"][-1]) * 1e-9
    assert recording.metadata["device"]["watchdog"] == pytest.approx(0.02)
    assert session.event()["event"] == "servo lost"
    # A killed one is taken apart by the system, memory and all, in its own time: up to 50 ms on busy processors.
    instants = (silent, killed) if number == signal.SIGSTOP else (silent,)
    promptly(max(map(stalls.passed, instants)), f"servo killed after its {number.name}")
