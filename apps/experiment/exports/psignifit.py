"""Export for psignifit and other fitting programs: the columns level, number correct and total."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from apps.experiment.exports.folder import write_text
from apps.experiment.exports.sessions import Session
from apps.experiment.journal.columns import text_of
from apps.experiment.journal.tables import Row
from haptics.errors import ConfigurationError

Counts = dict[float, tuple[int, int]]


def export_psignifit(folder: Path, sessions: Sequence[Session]) -> None:
    """Write a table for every condition of every session: level, number correct, number of trials.

    Only test trials that count are included, without practice, catch and repeated trials.

    Raises
    ------
    ConfigurationError
        If no answer can be right or wrong, as in an adjustment.
    """
    written = 0
    for session in sessions:
        for label, counts in _labelled(counts_of(session.rows)).items():
            lines = ["level,n_correct,n_total", *(f"{text_of(level)},{n},{of}" for level, (n, of) in counts.items())]
            write_text(folder, f"{session.place.stem}_condition-{label}_psignifit.csv", "\r\n".join([*lines, ""]))
            written += 1
    if not written:
        raise ConfigurationError("--to psignifit: no trial of the test has an answer that is right or wrong.")


def counts_of(rows: Sequence[Row]) -> dict[str, Counts]:
    """Return the numbers of right answers and of trials by condition and level, in order of levels."""
    found: dict[str, dict[float, list[bool]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        if row["counts"] and row["kind"] == "test" and row["correct"] is not None and row["level"] is not None:
            found[row["condition"]][float(row["level"])].append(row["correct"])
    return {
        condition: {level: (sum(answers), len(answers)) for level, answers in sorted(levels.items())}
        for condition, levels in found.items()
    }


def _labelled(conditions: dict[str, Counts]) -> dict[str, Counts]:
    """Return the counts by unique labels that are valid in file names."""
    labelled: dict[str, Counts] = {}
    for condition, counts in conditions.items():
        plain = re.sub(r"[^A-Za-z0-9]", "", condition) or "unnamed"
        label, number = plain, 2
        while label.lower() in {one.lower() for one in labelled}:
            label, number = f"{plain}{number}", number + 1
        labelled[label] = counts
    return labelled
