"""Run a session in processes that are killed at random moments and resumed until the session ends.

``python -m tests.apps.experiment.session.killed FILE OUT KILLS SEED`` prints the number of kills. Every child is forked
from a process with compiled kernels and loaded modules, so that a kill interrupts a trial instead of the start.
"""

import contextlib
import os
import random
import signal
import sys
import time
from pathlib import Path

from apps.experiment.design import read_design
from apps.experiment.session.running import Request, resume_session, run_session
from haptics.errors import HapticError


def go_on(file, out):
    """Run the session, or resume it."""
    places = list(out.glob("sub-*/ses-*/*_journal.jsonl"))
    if places:
        resume_session(places[0])
    else:
        run_session(read_design(file), Request("P01", 1, 7, out, {}, simulated=True))


def child(file, out):
    """Fork a process that runs or resumes the session; return its number."""
    process = os.fork()
    if process == 0:
        status = 1
        with contextlib.suppress(HapticError):
            go_on(file, out)
            status = 0
        os._exit(status)
    return process


def records(out):
    """Return the number of records of the journal."""
    places = list(out.glob("sub-*/ses-*/*_journal.jsonl"))
    return places[0].read_bytes().count(b"\n") if places else 0


def status_of(process, out, until, moment):
    """Return the exit status of a process; None if killed, a `moment` [s] after it wrote the record `until`."""
    while True:
        ended, status = os.waitpid(process, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        if records(out) >= until:
            time.sleep(moment)
            os.kill(process, signal.SIGKILL)
            os.waitpid(process, 0)
            return None
        time.sleep(1e-3)


def main(file, out, kills, seed):
    """Kill `kills` times at random moments; return the number of kills before the session ended."""
    chance = random.Random(seed)
    go_on(file, out / "whole")
    whole, cut, met = records(out / "whole"), out / "cut", 0
    while met < kills:
        # some kills precede any new record, most of them interrupt a trial
        until = records(cut) + chance.choice((0, chance.randrange(1, max(2 * whole // kills, 2))))
        if status_of(child(file, cut), cut, until, chance.uniform(0.0, 0.02)) is not None:
            return met
        met += 1
    os.waitpid(child(file, cut), 0)
    return met


if __name__ == "__main__":
    sys.stdout.write(f"{main(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))}\n")
