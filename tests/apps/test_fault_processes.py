"""Real processes that fail: a device that goes bad, and an application or a servo that is killed or stopped.

How long it takes until the device is safe is read from the log of the device, which is written in the servo's process
but by the device, and from the journal of the session; all clocks are the machine's monotonic one. What the machine
itself stalled is not counted: a thread that does nothing but wake up every half millisecond knows how much that was. It
cannot know all of it, so that each question may be asked three times.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from haptics.envelope import FADE_OUT
from haptics.recording import Recording
from haptics.replay import verify
from haptics.trace import Permission, Rows

ROOT = Path(__file__).parents[2]
PROMPT = 0.02
"""How long it may take until the output is safe, or a stopped servo is ended [s]."""

ATTEMPTS = 3
SLOW_HAND = ("--set", "hand.speed=0.03", "--set", "hand.pause=0", "--set", "hand.rest=0", "--seed", "3")
"""A hand that slides for seconds: there is a force to lose."""


def command(folder: Path, *arguments: str) -> list[str]:
    return [sys.executable, "-m", "apps", "run", "--headless", "--json", "--record", str(folder), *arguments]


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT)}


def until(what: Callable[[], Any], seconds: float = 60.0) -> Any:
    """Return what `what` returns once that is something."""
    end = time.monotonic() + seconds
    while not (found := what()):
        assert time.monotonic() < end, "it never came"
        time.sleep(0.001)
    return found


# --- a device that goes bad ----------------------------------------------------------------------------------------

FATAL = {
    "read-error": ("virtual-joystick", "Input/output error (read, fault on demand)"),
    "stale": ("virtual-joystick", "was too old"),
    "jump": ("virtual-joystick", "was where no hand could have moved the handle"),
    "infinite": ("virtual-arm", "was not a finite number"),
    "hang": ("virtual-joystick", "has not run for 1 s"),
}


def run_with(fault: str, folder: Path) -> subprocess.CompletedProcess[str]:
    device, _ = FATAL[fault]
    arguments = ("--device", device, "--fault", f"{fault}@0.3", "--duration", "30")
    return subprocess.run(
        command(folder, *arguments), env=environment(), capture_output=True, text=True, timeout=100, check=False
    )


@pytest.fixture(scope="module")
def failed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, subprocess.CompletedProcess[str]]:
    """Every run of `FATAL`, two at a time."""
    folder = tmp_path_factory.mktemp("failed")
    with ThreadPoolExecutor(2) as pool:
        runs = {fault: pool.submit(run_with, fault, folder / fault) for fault in FATAL}
        return {fault: run.result() for fault, run in runs.items()}


@pytest.mark.parametrize("fault", FATAL)
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


class Stalls(threading.Thread):
    """Wakes up every half millisecond and keeps how much later than that it came to it."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self._over = threading.Event()
        self._late: list[tuple[float, float]] = []

    def run(self) -> None:
        last = time.monotonic()
        while not self._over.is_set():
            time.sleep(0.0005)
            now = time.monotonic()
            if now - last > 0.002:
                self._late.append((now, now - last))
            last = now

    def between(self, start: float, end: float) -> float:
        """Return how long the machine stood still between two instants [s]."""
        return sum(max(min(now, end) - max(now - late, start), 0.0) for now, late in self._late)

    def __enter__(self) -> Stalls:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self.join()


class Session:
    """A session in processes of its own, with a handle that slides."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir()
        self._out, self._err = folder / "out", folder / "err"
        arguments = ("--device", "virtual-joystick", "--model", "C", "--duration", "60", *SLOW_HAND)
        with open(self._out, "w") as out, open(self._err, "w") as err:
            self.application = subprocess.Popen(
                command(folder / "recordings", *arguments), env=environment(), stdout=out, stderr=err
            )
        until(self._slides)
        self.servo = self._servo()

    @property
    def recording(self) -> Path:
        (folder,) = (path for path in (self._folder / "recordings").glob("*") if not path.name.startswith("."))
        return folder

    @property
    def said(self) -> str:
        return self._err.read_text()

    @property
    def answer(self) -> dict[str, Any]:
        return dict(json.loads(self._out.read_text()))

    @property
    def told(self) -> np.ndarray[Any, np.dtype[Any]]:
        """What the device was told, in order."""
        log = np.load(self.recording / "device_log.npy")
        return np.asarray(np.sort(log[log["monotonic_ns"] > 0], order="monotonic_ns"))

    def event(self) -> dict[str, Any]:
        """Return the last line of the journal."""
        return dict(json.loads((self.recording / "events.jsonl").read_text().splitlines()[-1]))

    def _slides(self) -> bool:
        assert self.application.poll() is None, self.said
        try:
            told = self.told
        except (OSError, ValueError, EOFError):  # it is about to be made
            return False
        return len(told) > 500 and bool((np.hypot(*told["command"][-100:].T) > 3.0).all())

    def _servo(self) -> int:
        tasks = Path(f"/proc/{self.application.pid}/task")
        children = {int(pid) for task in tasks.iterdir() for pid in (task / "children").read_text().split()}
        (servo,) = (pid for pid in children if b"spawn_main" in Path(f"/proc/{pid}/cmdline").read_bytes())
        return servo

    def close(self) -> None:
        """End what is left."""
        for pid in (self.application.pid, self.servo):
            if not ended(pid):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        self.application.wait(30.0)


def ended(pid: int) -> bool:
    """Tell whether a process has ended, whether somebody has taken note of it or not."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return True
    return stat[stat.rfind(")") + 2] in "ZX"


@pytest.fixture
def sessions(tmp_path: Path) -> Iterator[Callable[[], Session]]:
    """Begins sessions, and ends them."""
    begun: list[Session] = []

    def begin() -> Session:
        begun.append(Session(tmp_path / str(len(begun))))
        return begun[-1]

    yield begin
    for session in begun:
        session.close()


def promptly(attempt: Callable[[], float], what: str) -> None:
    """Ask until `attempt`, which returns a time without stalls [s], says that it was prompt; three times at most."""
    times = []
    for _ in range(ATTEMPTS):
        times.append(attempt())
        if times[-1] <= PROMPT:
            break
    print(f"{what}: {', '.join(f'{1e3 * t:.1f} ms' for t in times)}")  # noqa: T201 - with -rP
    assert min(times) <= PROMPT, times


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


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP], ids=lambda number: number.name)
def test_without_the_application_the_device_is_safe_within_20_ms(
    sessions: Callable[[], Session], number: signal.Signals
) -> None:
    def attempt() -> float:
        session = sessions()
        with Stalls() as stalls:
            signalled = time.monotonic()
            session.application.send_signal(number)
            until((session.recording / "events.jsonl").exists)
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
        until(lambda: ended(session.servo))
        recording = Recording(session.recording)
        assert len(recording.rows) == event["ticks"]
        assert verify(recording).mismatches == 0
        judge_fade(recording.rows)
        if number == signal.SIGKILL:
            assert recording.metadata["state"] == "interrupted"
        return safe - signalled - stalls.between(signalled, safe)

    promptly(attempt, f"safe after {number.name} of the application")


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP], ids=lambda number: number.name)
def test_a_servo_that_is_lost_is_ended_within_20_ms_and_its_device_told_no_more(
    sessions: Callable[[], Session], number: signal.Signals
) -> None:
    def attempt() -> float:
        session = sessions()
        with Stalls() as stalls:
            signalled = time.monotonic()
            os.kill(session.servo, number)
            until(lambda: ended(session.servo))
            gone = time.monotonic()
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
        fed = silent - signalled - stalls.between(signalled, silent)
        return max(gone - signalled - stalls.between(signalled, gone), fed)

    promptly(attempt, f"servo gone after its {number.name}")
