"""Long computations for the topic of tests/apps/calibrate/test_calibrate_report.py."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from apps.calibrate.reports.friction_figure import friction_figure
from apps.calibrate.reports.report import Page, motor_pages
from calibration.identification import Identified
from calibration.motor.gain import identify_motor
from tests.apps.calibrate.test_calibrate_report import (
    figures,
    file_of,
    knee,  # noqa: F401
    page,  # noqa: F401
    written,
)
from tests.calibration.measured import driven, friction


@pytest.mark.parametrize("known", [True, False])
def test_a_motor_has_a_page(knee: Identified, tmp_path: Path, known: bool) -> None:
    fit = identify_motor(driven(noise=0.1), friction if known else None)
    joint = replace(knee.parameters(), motor=fit.found())
    text = written(tmp_path / "R.html", file_of(knee), motor_pages([fit], [joint]))
    assert "<h1>knee: motor</h1>" in text
    assert ("its friction is known" in text) == known
    assert ('<td class="name">hysteresis</td>' in text) != known
    assert "N m/%" in text
    assert len(figures(text)) == 1


def test_the_same_data_give_the_same_picture(knee: Identified, page: Page) -> None:
    assert friction_figure(knee) == page.figure
