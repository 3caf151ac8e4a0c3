"""Records for tests: a header, and sessions as an engine would write them."""

from __future__ import annotations

from typing import Any

from apps.experiment.journal import SessionFolder

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


def place(out, participant="P01", session=1):
    return SessionFolder.new(out, participant, session, "friction")


def start(trial, attempt=1, **fields):
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


def response(trial, attempt=1, **fields):
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


def end(trial, attempt=1, outcome="ok", *reasons):
    return {"trial": trial, "attempt": attempt, "outcome": outcome, "reasons": list(reasons)}


def begin_block(journal, block=1, attempt=1):
    recording = journal.place.recording(block, attempt).relative_to(journal.place.folder).as_posix()
    journal.append("block_start", block=block, conditions=["low"], recording=recording, attempt=attempt)


def run_trial(journal, trial, attempt=1, outcome="ok", answer=None, **fields):
    """Append the records of an answered trial; `answer` and `fields` change its response and its start."""
    journal.append("trial_start", **start(trial, attempt, **fields))
    journal.append("response", **response(trial, attempt, **(answer or {})))
    journal.append("trial_end", **end(trial, attempt, outcome))
