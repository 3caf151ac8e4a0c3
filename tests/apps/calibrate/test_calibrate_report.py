"""The report: one file that needs no other, a page for each joint, every number that counts, nothing that breaks it."""

import base64
import re
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from apps.calibrate.reports.report import Page, friction_pages, write_report
from apps.calibrate.reports.results import provenance
from calibration.friction import FitSettings
from calibration.identification import Identified, PredictionError, Wishes, identify
from calibration.parameters.parameters import ParameterFile
from haptics.errors import ConfigurationError
from tests.calibration.measured import idle


@pytest.fixture(scope="module")
def knee() -> Identified:
    return identify([idle(0.1, duration=30.0)], Wishes("stribeck", settings=FitSettings()))


@pytest.fixture(scope="module")
def page(knee: Identified) -> Page:
    (only,) = friction_pages(
        [knee], [knee.parameters()], {"knee": {"other day.csv": PredictionError(0.123, 0.1, -0.02)}}
    )
    return only


def written(path: Path, file: ParameterFile, pages: list[Page]) -> str:
    write_report(path, file, pages)
    return path.read_text(encoding="utf-8")


def file_of(knee: Identified, device: str = "right knee") -> ParameterFile:
    return ParameterFile(provenance("least squares", [idle().source], device), (knee.parameters(),))


def figures(text: str) -> list[ET.Element]:
    """Return the pictures in a report, parsed."""
    images = re.findall(r'src="data:image/svg\+xml;base64,([^"]+)"', text)
    return [ET.fromstring(base64.b64decode(image)) for image in images]


def test_every_joint_has_a_page_with_its_numbers(knee: Identified, page: Page, tmp_path: Path) -> None:
    text = written(tmp_path / "R.html", file_of(knee), [page, page])
    assert text.count("<section>") == text.count("<h1>knee: friction, stribeck</h1>") == 2
    found = page.found
    for name, value in found.values.items():
        low, high = found.intervals[name]
        assert f"{value:.4g} " in text and f"{low:.4g} to {high:.4g}" in text
    assert f"{found.facts['condition_number']:.4g}" in text
    assert "error on other day.csv" in text and "12.3%" in text
    assert "right knee" in text and "0" * 64 in text
    assert len(figures(text)) == 2


def test_nothing_is_fetched_from_elsewhere(knee: Identified, page: Page, tmp_path: Path) -> None:
    text = written(tmp_path / "R.html", file_of(knee), [page])
    assert re.findall(r'(?:src|href)="(?!data:)', text) == []
    assert "@import" not in text and "url(" not in text


def test_words_of_people_cannot_break_the_page(knee: Identified, page: Page, tmp_path: Path) -> None:
    found = replace(page.found, warnings=("1 < 2 & <b>",))
    odd = replace(
        page,
        joint=replace(page.joint, name="<script>", friction=found),
        checks={"a<b.csv": PredictionError(0.1, 0.1, 0.0)},
    )
    text = written(tmp_path / "R.html", file_of(knee, 'the "knee" <i>'), [odd])
    assert "<script>" not in text and "<b>" not in text and "<i>" not in text
    assert "1 &lt; 2 &amp; &lt;b&gt;" in text
    assert '<ul class="warnings">' in text


def test_a_page_without_doubts_has_no_warnings(knee: Identified, page: Page, tmp_path: Path) -> None:
    assert not page.found.warnings
    assert '<ul class="warnings">' not in written(tmp_path / "R.html", file_of(knee), [page])


def test_thousands_of_samples_do_not_make_it_long(page: Page) -> None:
    assert len(page.figure) < 1_500_000


def test_a_report_that_cannot_be_written_is_an_error(knee: Identified, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="cannot be written"):
        write_report(tmp_path / "nowhere" / "R.html", file_of(knee), [])
