"""Records for tests: a header, and sessions as an engine would write them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from apps.experiment.journal import Journal, SessionFolder

HEADER: dict[str, Any] = {
    "experiment": "friction",
    "design_sha256": "0" * 64,
    "design": {"experiment": {"name": "friction"}},
    "seed": 7,
    "fields": {"age_band": "20-29", "handedness": "right", "consent_id": "C17"},
    "observer": None,
    "device": {"name": "virtual-joystick"},
    "versions": {"haptics": "0.1.0"},
    "blind": None,
}


def place(out: Path, participant: str = "P01", session: int = 1) -> SessionFolder:
    return SessionFolder.new(out, participant, session, "friction")


def start(trial: int, attempt: int = 1, **fields: Any) -> dict[str, Any]:
    values = {
        "trial": trial,
        "block": 1,
        "attempt": attempt,
        "kind": "test",
        "condition": "low",
        "track": "up",
        "reference": 1.0,
        "level": 0.25,
        "comparison_interval": 2,
        "values": [1.0, 1.25],
        "axis": "law.force",
        "markers": [100 * trial + 10 * attempt + 1, 100 * trial + 10 * attempt + 2],
    }
    return values | fields


def response(trial: int, attempt: int = 1, **fields: Any) -> dict[str, Any]:
    values = {
        "trial": trial,
        "attempt": attempt,
        "response": 2,
        "correct": True,
        "reaction_time_s": 0.4375,
        "tick": 4000 * trial,
        "source": "observer",
        "key": None,
    }
    return values | fields


def end(trial: int, attempt: int = 1, outcome: str = "ok", *reasons: str) -> dict[str, Any]:
    return {"trial": trial, "attempt": attempt, "outcome": outcome, "reasons": list(reasons)}


def begin_block(journal: Journal, block: int = 1, attempt: int = 1) -> None:
    recording = journal.place.recording(block, attempt).relative_to(journal.place.folder).as_posix()
    journal.append("block_start", block=block, conditions=["low"], recording=recording, attempt=attempt)


def run_trial(journal: Journal, trial: int, **fields: Any) -> None:
    journal.append("trial_start", **start(trial, **fields))
    journal.append("response", **response(trial))
    journal.append("trial_end", **end(trial))
