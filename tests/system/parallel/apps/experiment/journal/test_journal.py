"""Long computations for the topic of tests/apps/experiment/journal/test_journal.py."""

from __future__ import annotations

from pathlib import Path

from tests.apps.experiment.journal.test_journal import _kill_often


def test_kill_9_at_thirty_random_moments_loses_nothing_answered(tmp_path: Path) -> None:
    _kill_often(tmp_path, 30)
