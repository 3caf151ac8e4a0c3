"""Rehearse a session with both screens while its processes are killed in turn, until the session ends.

``python -m tests.apps.experiment.engine.live.killed FILE OUT KILLS SEED`` runs the session of FILE on a virtual screen
once, and again with KILLS kills (-9) of the application, the servo and the screen of the participant, each followed by
a resume. It prints the number of kills of each process and the differences between the journals.
"""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

from apps.experiment.journal import read_journal, replay, sessions_below
from tests.apps.screen import virtual_screen
from tests.processes import ROOT

VICTIMS = ("application", "servo", "screen")
OWN = ("utc", "monotonic_ns", "number", "tick", "attempt", "markers")
"""Fields that may differ: stamps, numbers of attempts, and ticks, which start with their block."""

LONGEST = 180.0
"""Time limit between two kills [s]."""


def begin(screen, *arguments):
    """Start the command ``haptics experiment``."""
    command = [sys.executable, "-m", "apps", "experiment", *arguments, "--screens", "--json"]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, env=screen.environment, stdout=pipe, stderr=pipe, text=True, cwd=ROOT)


def run(screen, file, out):
    """Start or resume the session."""
    if list(out.glob("sub-*/ses-*/*_journal.jsonl")):
        return begin(screen, "resume", str(sessions_below(out)[0].folder))
    return begin(screen, "run", str(file), "--observer", "simulated", "--seed", "7", "--out", str(out))


def spawned(process):
    """Return the child processes of the application, oldest first: screens, then the servo of a block."""
    try:
        tasks = Path(f"/proc/{process}/task/{process}/children").read_text().split()
        named = [(int(one), Path(f"/proc/{one}/cmdline").read_bytes()) for one in tasks]
    except OSError:
        return []
    return [one for one, command in named if b"spawn_main" in command]


def records(out):
    """Return the records of the journal."""
    places = list(out.glob("sub-*/ses-*/*_journal.jsonl"))
    return [dict(one) for one in read_journal(places[0]).records] if places else []


def victim_of(running, name):
    """Return the process with a name, None if absent: the first two children are screens, the third a servo."""
    if name == "application":
        return running.pid
    found = spawned(running.pid)
    if name == "screen":
        return found[0] if found else None
    return found[2] if len(found) > 2 else None


def kill(running, name, out, moment):
    """Kill a process a `moment` [s] after the next trial has started; return False if the session ended before."""
    known, until = len(records(out)), time.monotonic() + LONGEST
    while running.poll() is None:
        told = records(out)
        if len(told) > known and told[-1]["record"] == "trial_start":
            time.sleep(moment)
            found = victim_of(running, name)
            if found is not None and running.poll() is None:
                os.kill(found, signal.SIGKILL)
                return True
        assert time.monotonic() < until, f"no trial began for {LONGEST:g} s"
        time.sleep(0.02)
    return False


def finish(running):
    """Wait for the end; return standard error."""
    return running.communicate(timeout=LONGEST)[1]


def course(out):
    """Return starts and answers of the trials, without stamps and numbers of attempts."""
    answered = replay(records(out)).answered
    return [
        {name: value for part in (one.start, one.response or {}) for name, value in part.items() if name not in OWN}
        for one in answered.values()
    ]


def different(whole, cut):
    """Describe the differences between two journals, and contradictions in the second one."""
    expected, found, state = course(whole), course(cut), replay(records(cut))
    words = [f"trial {a['trial']}: {a} and {b}" for a, b in zip(expected, found, strict=False) if a != b]
    words += [f"{len(expected)} and {len(found)} trials"] if len(expected) != len(found) else []
    words += ["it has not ended"] if state.end is None else []
    for attempt in state.attempts:
        last = state.attempts_at(attempt.trial)
        if attempt.response is not None and attempt.end is not None and not attempt.counts and attempt.number == last:
            words.append(f"trial {attempt.trial}: its answer was lost")
        if attempt.end is None and attempt.number == last:
            words.append(f"trial {attempt.trial}: was interrupted and not run again")
    return words


def main(file, out, kills, seed):
    """Run the session without and with kills; return the number of kills by process and the differences."""
    chance, met, said = random.Random(seed), Counter[str](), []
    cut = out / "cut"
    with virtual_screen() as screen:
        whole = run(screen, file, out / "whole")
        words = finish(whole)
        assert whole.returncode == 0, words
        running = run(screen, file, cut)
        while met.total() < kills:
            name = VICTIMS[met.total() % len(VICTIMS)]
            if not kill(running, name, cut, chance.uniform(0.0, 1.6)):
                break
            met[name] += 1
            said.append(finish(running))
            sys.stderr.write(f"{met.total()}: killed the {name}, status {running.returncode}\n")
            running = run(screen, file, cut)
        words = finish(running)
        assert running.returncode == 0, words
    resumed = sum(one.get("name") == "resumed" for one in records(cut))
    return {"kills": dict(met), "resumed": resumed, "different": different(out / "whole", cut)}


if __name__ == "__main__":
    told = main(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))
    sys.stdout.write(json.dumps(told) + "\n")
