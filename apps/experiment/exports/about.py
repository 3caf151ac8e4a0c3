"""Description of an export: name, summary, and a statement about simulated observers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from apps.experiment.exports.sessions import Session

SIMULATED = (
    "The answers are those of a simulated observer: they verify method and analysis, and never stand for people."
)


@dataclass(frozen=True)
class About:
    """Description of an export.

    Attributes
    ----------
    name : str
        Names of the experiments.
    words : str
        Summary in one paragraph.
    """

    name: str
    words: str


def about(sessions: Sequence[Session]) -> About:
    """Return the name and the summary of the exported sessions."""
    name = ", ".join(sorted({session.state.header["experiment"] for session in sessions}))
    people = len({session.place.participant for session in sessions})
    simulated = sum(session.state.header["observer"] is not None for session in sessions)
    words = f"Psychophysical experiment {name}: {len(sessions)} sessions of {people} participants."
    if simulated == len(sessions):
        words += f" {SIMULATED}"
    elif simulated:
        words += (
            f" {simulated} of the sessions have a simulated observer (column observer), which never stands for people."
        )
    return About(name, words)


def readme(told: About, sessions: Sequence[Session]) -> str:
    """Return the README page of an export."""
    versions = sorted({str(session.state.header["versions"].get("haptics", "?")) for session in sessions})
    designs = sorted({session.state.header["design_sha256"] for session in sessions})
    lines = [
        f"# {told.name}",
        "",
        told.words,
        "",
        f"Made from the journals of the sessions by haptics (sessions run with version {', '.join(versions)}).",
        f"SHA-256 of the experiment file: {', '.join(designs)}.",
        "",
        "Columns `asked_*` are what the procedure chose, `delivered_*` what the commands rendered, `felt_*` what",
        "reached the hand. A trial that was repeated has several rows; `counts` marks the one to analyse.",
        "",
    ]
    return "\n".join(lines)
