"""Real sessions, one of whose processes is killed -9 at some moment: nothing is lost and nothing is left behind.

The moments are random with a seed, and counted from three events in turn: the victim's start, the appearance of the
recording, the first tick. HAPTICS_KILLS says how many kills there are per process: 3, or as many as you have time for.
What was commanded is known from a witness that the servo does not write: the log of the virtual device.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from haptics.recording.recording import Recording
from haptics.recording.replay import verify
from haptics.records import Status
from tests.conftest import MISSING_QT
from tests.processes import RUN, Application, device_log, recordings, written

KILLS = int(os.environ.get("HAPTICS_KILLS", "3"))
AT_A_TIME = 2
TICKS = 1000
EVENTS = ("start", "recording", "first tick")
LATEST = {"application": (3.0, 2.0, 1.6), "servo": (2.0, 2.0, 1.05), "view": (3.0, 2.0, 1.6)}
"""How long after each event a process is killed at most [s]: some of them after the run, which takes 1 s."""


@dataclass(frozen=True)
class Kill:
    """Who is killed, and when: `delay` [s] after an event."""

    victim: str
    number: int

    @property
    def event(self) -> str:
        return EVENTS[self.number % len(EVENTS)]

    @property
    def delay(self) -> float:
        place = np.random.default_rng([self.number, len(self.victim)]).random()
        return float(place * LATEST[self.victim][self.number % len(EVENTS)])

    @property
    def window(self) -> bool:
        return self.victim == "view" or (self.victim == "application" and self.number % 2 == 1 and not MISSING_QT)


class Run(Application):
    """One session in a folder of its own, marked in the environment of all its processes."""

    def __init__(self, application: subprocess.Popen[str], folder: Path, kill: Kill) -> None:
        super().__init__(application, folder)
        self.kill = kill
        self.recordings, self.temporary = folder / "recordings", folder / "temporary"
        self._mark = f"HAPTICS_KILL={folder}"

    def processes(self) -> dict[int, str]:
        """Return the command lines of the processes of this session that are alive."""
        found = {}
        for entry in Path("/proc").iterdir():
            try:
                if entry.name.isdigit() and f"{self._mark}\0".encode() in (entry / "environ").read_bytes():
                    found[int(entry.name)] = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            except OSError:  # it has ended meanwhile
                continue
        return found

    def pid(self) -> int | None:
        """Return the victim's process id once there is one; the servo is started before the view."""
        if self.kill.victim == "application":
            return self.application.pid
        children = sorted(pid for pid, command in self.processes().items() if "spawn_main" in command)
        place = 1 if self.kill.victim == "view" else 0
        return children[place] if len(children) > place else None

    def folder(self) -> Path | None:
        """Return the recording, once there is one."""
        found = recordings(self.recordings)
        assert len(found) < 2, found
        return found[0] if found else None

    def commands(self) -> np.ndarray | None:
        """Return what the device was sent, in order, once it has been sent something."""
        folder = self.folder()
        sent = device_log(folder) if folder else None
        return sent if sent is not None and len(sent) else None

    def until(self, what: Callable[[], Any]) -> Any:
        """Return what `what` returns once that is something, or None if the session ends before."""
        while (found := what()) is None and self.application.poll() is None:
            time.sleep(0.002)
        return found


@contextmanager
def started(kill: Kill, folder: Path) -> Iterator[Run]:
    """Start the session in which somebody is to be killed."""
    for name in ("temporary", "runtime"):
        (folder / name).mkdir(parents=True, mode=0o700)
    environment = {
        **os.environ,
        "HAPTICS_KILL": str(folder),
        "TMPDIR": str(folder / "temporary"),
        "XDG_RUNTIME_DIR": str(folder / "runtime"),
        "QT_QPA_PLATFORM": "offscreen",
        "DISPLAY": ":0",  # there need not be one: the window is drawn off the screen
    }
    arguments = ["--device", "virtual-joystick", "--duration", f"{TICKS / 1000:g}", "--seed", str(kill.number)]
    arguments += ["--record", str(folder / "recordings"), *([] if kill.window else ["--headless"])]
    with written(folder, *RUN, *arguments, env=environment, cwd=folder) as application:
        yield Run(application, folder, kill)


@dataclass
class Finding:
    """What was there after a kill."""

    kill: Kill
    hit: bool
    status: int
    gone_after: float = 0.0
    state: str = "no recording"
    rows: int = 0
    unrecorded: int = 0


def kill(which: Kill, folder: Path) -> Finding:
    """Start a session, kill one of its processes, and judge what is left."""
    with started(which, folder) as run:
        victim = run.until(run.pid)
        run.until({"start": run.pid, "recording": run.folder, "first tick": run.commands}[which.event])
        time.sleep(which.delay)
        hit = run.application.poll() is None and victim in run.processes()
        killed_ns = time.monotonic_ns()
        if hit:
            os.kill(victim, signal.SIGKILL)
        finding = Finding(which, hit, run.application.wait(90.0))
        judge_what_is_left_behind(run, finding)
    if run.folder() is not None:
        judge_recording(run, finding, killed_ns)
    if hit and which.victim == "servo":
        judge_loss_of_servo(run, finding)
    elif which.victim != "application":
        judge_undisturbed(run, finding)
    return finding


def judge_what_is_left_behind(run: Run, finding: Finding) -> None:
    since = time.monotonic()
    while left := run.processes():
        assert time.monotonic() - since < 60.0, f"still there: {left}"
        time.sleep(0.02)
    finding.gone_after = time.monotonic() - since
    assert not list(run.temporary.iterdir())
    assert not list(Path("/dev/shm").glob(f"haptics-{run.application.pid}-*"))
    if finding.kill.victim != "application":  # which may die while a recording has no name yet; a later one sweeps it
        assert not list(run.recordings.glob(".*"))


def judge_recording(run: Run, finding: Finding, killed_ns: int) -> None:
    folder = run.folder()
    assert folder is not None
    recording = Recording(folder)
    rows, commands = np.array(recording.rows), run.commands()
    finding.state, finding.rows = recording.metadata["state"], len(rows)
    skips = (rows["status"][1:] & int(Status.AFTER_SKIP)) != 0
    assert (np.diff(rows["tick"])[~skips] == 1).all()
    if commands is not None:
        unrecorded = commands[~np.isin(commands["time"], rows["time"])]
        finding.unrecorded = len(np.unique(unrecorded["time"]))
        assert not (unrecorded["monotonic_ns"] < killed_ns - 50e6).any()
        assert finding.unrecorded <= 1  # what the servo had commanded when it was killed, and could not write down
    assert verify(recording).mismatches == 0
    events = folder / "events.jsonl"
    if finding.kill.victim == "application" and events.exists() and "application lost" in events.read_text():
        assert recording.metadata["state"] == "interrupted"
        assert recording.metadata["reason"] == "application lost"


def judge_loss_of_servo(run: Run, finding: Finding) -> None:
    """A servo that is lost is status 4, except where it had said before that the run is complete."""
    assert "Traceback" not in run.said
    if finding.status == 0:
        assert run.answer["reason"] == "completed"
    else:
        assert finding.status == 4, run.said
        assert "killed by SIGKILL" in run.said
        assert str(run.folder()) in run.said
        assert finding.state == "interrupted"


def judge_undisturbed(run: Run, finding: Finding) -> None:
    """Without the view, or where the kill came too late, the run goes on to its end."""
    assert finding.status == 0, run.said
    assert "Traceback" not in run.said
    assert run.answer["ticks"] + run.answer["skipped"] == TICKS
    assert run.answer["lost_ticks"] == 0
    assert finding.rows == run.answer["ticks"]
    assert finding.state == "complete"


@pytest.mark.timeout(120 + 60 * KILLS)
@pytest.mark.parametrize(
    "victim",
    ["application", "servo", pytest.param("view", marks=pytest.mark.skipif(bool(MISSING_QT), reason=MISSING_QT))],
)
def test_a_kill_loses_nothing_and_leaves_nothing_behind(victim: str, tmp_path: Path) -> None:
    with ThreadPoolExecutor(AT_A_TIME) as pool:
        pending = [pool.submit(kill, Kill(victim, number), tmp_path / str(number)) for number in range(KILLS)]
    errors = [error for one in pending if (error := one.exception()) is not None]
    found = [one.result() for one in pending if one.exception() is None]
    for finding in found:
        print(finding)  # noqa: T201 - with -rP: the figures of a long series
    if errors:
        raise ExceptionGroup(f"{len(errors)} of {KILLS} kills", errors)
    assert any(finding.hit for finding in found)
