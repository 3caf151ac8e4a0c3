"""Sessions that a simulated observer answers, for tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from apps.experiment.design import read_design
from apps.experiment.engine.opening import Request
from apps.experiment.engine.running import run_session
from apps.experiment.journal import SessionFolder


def simulate(file: Path, out: Path, code: str = "P01", seed: int = 7) -> tuple[dict[str, Any], SessionFolder]:
    """Run a session; return what the command prints, and where it is."""
    result = run_session(read_design(file), Request(code, 1, seed, out, {}, simulated=True))
    return result, SessionFolder.of(Path(result["folder"]))
