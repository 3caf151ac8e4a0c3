"""Live sessions with both screens as processes, which a test may kill."""

import subprocess
import sys

from tests.processes import ROOT

LONGEST = 180.0
"""Time limit of a session [s]."""


def run(screen, file, out):
    """Start a session with a simulated observer and both screens."""
    command = [sys.executable, "-m", "apps", "experiment", "run", str(file), "--observer", "simulated", "--seed", "7"]
    command += ["--out", str(out), "--screens", "--json"]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, env=screen.environment, stdout=pipe, stderr=pipe, text=True, cwd=ROOT)


def finish(running):
    """Wait for the end; return standard error."""
    return running.communicate(timeout=LONGEST)[1]
