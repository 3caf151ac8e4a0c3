"""Long computations for the topic of tests/apps/experiment/test_examples.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from apps.experiment.design import read_design
from apps.experiment.journal import SessionFolder, trial_rows
from apps.experiment.report.analysis import analyse
from apps.experiment.report.sessions import read_experiment
from apps.experiment.report.settings import AnalysisSettings
from apps.experiment.stimulus import measure
from tests.apps.experiment.engine.running import simulate
from tests.apps.experiment.test_examples import FILES
from tests.sampling import sample


@pytest.mark.parametrize("file", sample(FILES, 2), ids=lambda file: file.stem)
def test_it_runs_and_what_is_felt_is_what_was_asked(file: Path, tmp_path: Path) -> None:
    result, place = simulate(file, tmp_path, seed=read_design(file).experiment.seed)
    assert result["reason"] == "completed" and result["repeated"] == 0
    rows = trial_rows(place, measure)
    assert all(row["delivered_exact"] for row in rows)
    if file.stem == "provancher2009":
        the_published_differences_come_out(place)
    if any(word in file.read_text(encoding="utf-8") for word in ("compensation", "damping = 0.0")):
        for row in rows:
            for k in (1, 2):
                assert abs(row[f"felt_{k}"] - row[f"asked_{k}"]) < 0.02 * row[f"asked_{k}"]


def the_published_differences_come_out(place: SessionFolder) -> None:
    """The intervals hold what Provancher and Sylvester found on 0.2 and 0.8, and are well away from none."""
    experiment = read_experiment([place.folder], measure)
    person = analyse(experiment, experiment.people[0], AnalysisSettings.of({}, [75.0]))
    found = {one.reference: one.differences[0].jnd for one in person.conditions}
    for reference, published in ((0.2, 0.056), (0.8, 0.150)):
        assert 0.0 < found[reference].low < published < found[reference].high
