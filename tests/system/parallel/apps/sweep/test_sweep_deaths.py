"""A sweep whose program or workers die: what was written counts, what was not runs again."""

from __future__ import annotations

from concurrent.futures import BrokenExecutor
from pathlib import Path
from typing import Any

import pytest

from apps.sweep import running
from apps.sweep.results import LINES
from haptics.errors import ConfigurationError
from tests.system.parallel.apps.sweep.test_sweep import lines_in, ran, require_equal, written


def test_a_last_line_that_was_cut_short_is_taken_off_and_its_job_runs_again(tmp_path: Path) -> None:
    path, out = written(tmp_path), tmp_path / "out"
    whole = ran(path, out)
    file = out / LINES
    file.write_bytes(file.read_bytes()[:-40])
    require_equal(whole, ran(path, out))
    assert lines_in(out) == 9


@pytest.mark.parametrize("deaths", [1, running.MOST_LOSSES])
def test_workers_that_die_are_replaced_but_not_for_ever(
    deaths: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if they had died: an executor of threads cannot be broken."""
    run_jobs, left = running.run_jobs, iter(range(deaths))

    def dying(*arguments: Any) -> int:
        if next(left, None) is not None:
            raise BrokenExecutor
        return run_jobs(*arguments)

    monkeypatch.setattr(running, "run_jobs", dying)
    path = written(tmp_path)
    if deaths < running.MOST_LOSSES:
        assert len(ran(path, tmp_path / "out", "threads", 2)["seed"]) == 9
    else:
        with pytest.raises(ConfigurationError, match="died 5 times"):
            ran(path, tmp_path / "out", "threads", 2)
