"""Programs in processes of their own, none of which outlives its test."""

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
"""A picture takes a second, which most tests can do without."""

RUN = ("-m", "apps", "run", "--json", *NO_PICTURE)
"""What Python is told so that it runs a session."""

Array = np.ndarray[Any, np.dtype[Any]]


@contextmanager
def program(*arguments, env=os.environ, **options):
    """Start Python with `arguments` as the leader of a process group, and kill what is left of the group at the end."""
    command, variables = [sys.executable, *arguments], {**env, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(command, env=variables, text=True, start_new_session=True, **options) as process:
        try:
            yield process
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


@contextmanager
def written(folder, *arguments, **options):
    """Start a `program` whose words go to files of `folder`."""
    with (
        open(folder / "out", "w") as out,
        open(folder / "err", "w") as err,
        program(*arguments, stdout=out, stderr=err, **options) as process,
    ):
        yield process


class Application:
    """A session's application that was started with `written`."""

    def __init__(self, process, folder):
        self.application = process
        self._out, self._err = folder / "out", folder / "err"

    @property
    def said(self):
        return self._err.read_text()

    @property
    def answer(self):
        return dict(json.loads(self._out.read_text()))


def finish(process):
    """Wait until a program that was given pipes has ended well, and return its answer."""
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    return dict(json.loads(out))


def state_of(pid):
    """Return the state of a process as the system has it: T is stopped, Z has ended, X is gone."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return "X"
    return stat[stat.rfind(")") + 2]


def ended(pid):
    """Tell whether a process has ended, whether somebody has taken note of it or not."""
    return state_of(pid) in "ZX"


class NeverCame(AssertionError):
    """What was waited for did not come within `timeout` [s]."""

    def __init__(self, what, timeout):
        super().__init__(what)
        self.timeout = timeout


def until(what, otherwise, seconds=60.0, every=0.02):
    """Ask every so many seconds, and return what `what` returns once that is something.

    Raises
    ------
    NeverCame
        It stayed nothing for so many `seconds`; says `otherwise`.
    """
    end = time.monotonic() + seconds
    while not (found := what()):
        if time.monotonic() > end:
            raise NeverCame(otherwise, seconds)
        time.sleep(every)
    return found


def until_running(process, folder, ticks=200):
    """Return the recording in `folder` once it has more than `ticks`; the program was given pipes."""

    def running():
        assert process.poll() is None, process.communicate()[1]
        parts = list(folder.glob("*/ticks.npy.part"))
        return parts[0].parent if parts and len(np.load(parts[0], mmap_mode="r")) > ticks else None

    found: Path = until(running, "the session never started", 90.0)
    return found


def recordings(folder):
    """Return the recordings in `folder`; one that is being made still has a hidden name."""
    return [path for path in folder.glob("*") if not path.name.startswith(".")]


def device_log(recording):
    """Return what a virtual device was told, in order: nothing while its log is just being made."""
    try:
        log = np.load(recording / "device_log.npy", mmap_mode="r")
    except (OSError, ValueError, EOFError):
        return np.zeros(0, LOG_ROW)
    return np.asarray(np.sort(log[log["monotonic_ns"] > 0], order="monotonic_ns"))
