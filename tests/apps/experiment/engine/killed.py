"""Runs a session of an experiment in processes that are killed, and goes on with it until it has ended.

``python -m tests.apps.experiment.engine.killed FILE OUT KILLS SEED`` prints how often a process was killed. Every child
is a fork of a process that has compiled and imported all, so that a kill comes within trials, and not before.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import sys
import time
from pathlib import Path

from apps.experiment.design import read_design
from apps.experiment.engine.opening import Request
from apps.experiment.engine.running import resume_session, run_session
from haptics.errors import HapticError


def go_on(file: Path, out: Path) -> None:
    """Run the session, or what is left of it."""
    places = list(out.glob("sub-*/ses-*/*_journal.jsonl"))
    if places:
        resume_session(places[0])
    else:
        run_session(read_design(file), Request("P01", 1, 7, out, {}, simulated=True))


def child(file: Path, out: Path) -> int:
    """Fork a process that goes on; return its number."""
    process = os.fork()
    if process == 0:
        status = 1
        with contextlib.suppress(HapticError):
            go_on(file, out)
            status = 0
        os._exit(status)
    return process


def finished(process: int, within: float) -> int | None:
    """Return the exit status of a process, or None if it has not ended in time."""
    until = time.monotonic() + within
    while time.monotonic() < until:
        ended, status = os.waitpid(process, os.WNOHANG)
        if ended:
            return status
        time.sleep(1e-3)
    return None


def main(file: Path, out: Path, kills: int, seed: int) -> int:
    """Kill so often, at random moments; return how often a kill met a session that was running."""
    chance = random.Random(seed)
    begun = time.monotonic()
    go_on(file, out / "whole")
    length = time.monotonic() - begun
    met = 0
    for _ in range(kills):
        process = child(file, out / "cut")
        status = finished(process, chance.uniform(0.0, 2.0 * length / max(kills, 1)) + 0.02)
        if status is not None:
            break
        os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)
        met += 1
    if os.waitstatus_to_exitcode(finished(child(file, out / "cut"), 120.0) or 0):
        pass  # it had ended already: nothing to resume
    return met


if __name__ == "__main__":
    sys.stdout.write(f"{main(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))}\n")
