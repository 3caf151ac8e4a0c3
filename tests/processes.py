"""Programs in separate processes, which are killed at the end of the test."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

from devices.common.log import LOG_ROW

ROOT = Path(__file__).parents[1]

NO_PICTURE = ("--set", "session.picture=false")
"""Setting that saves the time of a picture, about a second."""

RUN = ("-m", "apps", "run", "--json", *NO_PICTURE)
"""Arguments of Python that run a session."""

Array = np.ndarray[Any, np.dtype[Any]]


@contextmanager
def program(*arguments, env=os.environ, **options):
    """Start Python with `arguments` as the leader of a process group, and kill the group at the end."""
    command, variables = [sys.executable, *arguments], {**env, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(command, env=variables, text=True, start_new_session=True, **options) as process:
        try:
            yield process
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


@contextmanager
def written(folder, *arguments, **options):
    """Start a `program` whose output goes to files in `folder`."""
    with (
        open(folder / "out", "w") as out,
        open(folder / "err", "w") as err,
        program(*arguments, stdout=out, stderr=err, **options) as process,
    ):
        yield process


class Application:
    """Application of a session started with `written`."""

    def __init__(self, process, folder):
        self.application = process
        self._out, self._err = folder / "out", folder / "err"

    @property
    def said(self):
        return self._err.read_text()

    @property
    def answer(self):
        return dict(json.loads(self._out.read_text()))


def kill(process):
    """Kill the group of a `program` with pipes; return the output and the errors up to now.

    Otherwise a process of the group that still has the pipes would delay the end of the output.
    """
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    return process.communicate(timeout=60)


def finish(process):
    """Wait until a program with pipes has ended successfully, and return its JSON answer."""
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    return dict(json.loads(out))


def state_of(pid):
    """Return the state of a process: T stopped, Z zombie, X gone."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return "X"
    return stat[stat.rfind(")") + 2]


def spawned_by(pid):
    """Return the processes that multiprocessing has spawned in a process, in the order of their start."""
    tasks = Path(f"/proc/{pid}/task").iterdir()
    children = sorted(int(child) for task in tasks for child in (task / "children").read_text().split())
    return [child for child in children if b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes()]


def ended(pid):
    """Return True if a process has ended, including zombies."""
    return state_of(pid) in "ZX"


def until(condition, otherwise, seconds=60.0, every=0.02):
    """Poll `condition` until it returns a true value, and return that value.

    Raises
    ------
    AssertionError
        If it does not return one within `seconds`. The message is `otherwise`.
    """
    end = time.monotonic() + seconds
    while not (found := condition()):
        if time.monotonic() > end:
            raise AssertionError(otherwise)
        time.sleep(every)
    return found


def until_running(process, folder, ticks=200):
    """Return the recording in `folder` once it has more than `ticks`.

    The program must have pipes.
    """

    def running():
        assert process.poll() is None, kill(process)[1]
        parts = list(folder.glob("*/ticks.npy.part"))
        return parts[0].parent if parts and len(np.load(parts[0], mmap_mode="r")) > ticks else None

    found: Path = until(running, "the session never started", 90.0)
    return found


def recordings(folder):
    """Return the recordings in `folder`.

    Unfinished recordings have hidden names.
    """
    return [path for path in folder.glob("*") if not path.name.startswith(".")]


def device_log(recording):
    """Return the log of a virtual device in order; empty while the log is being created."""
    try:
        log = np.load(recording / "device_log.npy", mmap_mode="r")
    except (OSError, ValueError, EOFError):
        return np.zeros(0, LOG_ROW)
    return np.asarray(np.sort(log[log["monotonic_ns"] > 0], order="monotonic_ns"))
