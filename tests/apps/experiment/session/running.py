"""Sessions that a simulated observer answers, for tests."""

from pathlib import Path

from apps.experiment.design import read_design
from apps.experiment.journal import SessionFolder
from apps.experiment.session.running import Request, run_session


def simulate(file, out, code="P01", seed=7):
    """Run a session with a simulated observer; return the result of the command, and the session folder."""
    result = run_session(read_design(file), Request(code, 1, seed, out, {}, simulated=True))
    return result, SessionFolder.of(Path(result["folder"]))
