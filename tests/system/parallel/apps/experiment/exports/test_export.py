"""Long computations for the topic of tests/apps/experiment/exports/test_export.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from apps.experiment.journal import COLUMNS, trial_rows
from tests.apps.experiment.exports.test_export import (
    data,  # noqa: F401
    export,
)


def test_the_wide_table_is_read_by_pandas(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pandas = pytest.importorskip("pandas")
    export(capsys, data, tmp_path / "out", "csv")
    table = pandas.read_csv(tmp_path / "out" / "trials.csv")
    rows = [row for one in sorted(data.glob("sub-*/ses-01")) for row in trial_rows(one)]
    assert list(table.columns) == [column.name for column in COLUMNS]
    assert table["level"].tolist() == [row["level"] for row in rows]
    assert table["reasons"].dropna().tolist() == [row["reasons"] for row in rows if row["reasons"]]
    assert table["counts"].dtype == bool
    assert table["reaction_time_s"].isna().sum() == 2
