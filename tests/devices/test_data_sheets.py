"""Data sheet figures on known rows, and agreement of the documentation page with the data sheets."""

import math
import re

import numpy as np
import pytest

from haptics.device import Causality
from tests.devices import data_sheets as sheets
from tests.devices.data_sheets import HUM, LEAST_MASS, LOUD, PERIOD, ROUND, STIFFEST, SUBJECTS, stated
from tests.processes import ROOT

COUNT = 7e-6

ROWS = np.dtype(
    [
        *((name, "f8", (2,)) for name in ("position", "velocity", "command", "hand_force")),
        *((name, "f8") for name in ("sample_age", "write_time")),
        ("sticking", "?"),
    ]
)


@pytest.fixture
def rows():
    """A second of 5 mm/s along x, on an encoder of `COUNT`, with 1.25 N of the hand."""
    found = np.zeros(1000, ROWS)
    time = np.arange(1000) * PERIOD
    found["position"][:, 0] = np.floor(0.005 * time / COUNT) * COUNT
    found["velocity"][:, 0] = 0.005
    found["hand_force"][:, 0] = 1.25
    found["command"][:, 1] = -0.2 * time
    found["sample_age"], found["write_time"] = np.linspace(0.0, 1e-3, 1000), 2e-4
    return found


def test_figures_of_known_rows(rows):
    assert sheets.step(rows) == pytest.approx(COUNT)
    assert sheets.residual(rows, 1.0) == pytest.approx(0.25)
    assert sheets.fastest(rows) == pytest.approx(0.2)
    assert sheets.strongest(rows) == pytest.approx(0.2, rel=2e-3)
    assert sheets.ages(rows) == pytest.approx((0.5e-3, 0.99e-3), rel=1e-2)
    assert sheets.hand_over(rows) == pytest.approx(0.7e-3, rel=1e-2)


# --- where a device swings, shakes, or is driven no faster -----------------------------------------------------------


@pytest.mark.parametrize(("frequency", "heard"), [(2.0 * HUM, True), (0.5 * HUM, False)])
def test_hum_counts_high_frequencies_only(frequency, heard):
    rows = np.zeros(round(ROUND / PERIOD), [("force", "f8", (2,))])
    rows["force"][:, 1] = 6.0 + 2.0 * LOUD * np.sin(2.0 * math.pi * frequency * PERIOD * np.arange(len(rows)))
    expected = math.sqrt(2.0) * LOUD if heard else 0.0
    assert sheets.hum(rows) == pytest.approx(expected, abs=0.02 * LOUD)
    assert sheets.hum(rows[:2000]) == math.inf, "a limit has ended it"


@pytest.mark.parametrize("true", [0.1, 0.72, 2.5])
def test_least_mass_is_found_by_bisection(true):
    number, unit = sheets.least_mass(lambda mass: mass < true).split()
    assert unit == "kg"
    assert float(number) == pytest.approx(true, rel=0.12)


# --- the page --------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def page():
    """Figures of the page by device and name: data sheet and measurement."""
    text = (ROOT / "docs" / "data_sheets.md").read_text(encoding="utf-8")
    assert re.search(r"^\d+ processors; load average [\d.]+ when it began, [\d.]+ when it ended\.$", text, re.MULTILINE)
    found = {}
    for table in re.findall(r"^\| figure \|(?:.*\n)+?\n", text, re.MULTILINE):
        (_, *titles), _, *rows = (
            [cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[:-1]
        )
        for name, *cells in rows:
            found |= {(title, name): tuple(cell.split("; ")) for title, cell in zip(titles, cells, strict=True)}
    return found


@pytest.mark.parametrize("subject", SUBJECTS, ids=str)
def test_page_has_every_figure_of_the_data_sheet(page, subject):
    for name, sheet in stated(subject.spec, subject.clock).items():
        assert page[subject.title, name][0] == (sheet or "-"), name


@pytest.mark.parametrize("subject", SUBJECTS, ids=str)
def test_page_has_the_current_advice(page, subject):
    spec = subject.spec
    if spec.causality is Causality.IMPEDANCE:
        sheet, measured = page[subject.title, STIFFEST]
        limit, damping = map(float, re.findall(r"[\d.]+", sheet))
        assert sheets.advised_stiffness(spec, damping) == pytest.approx(limit, rel=0.02), "damping has three digits"
    else:
        sheet, measured = page[subject.title, LEAST_MASS]
        limit = float(sheet.split()[0])
        known = spec.least_mass is not None  # else it is made of the servo that was measured on that day
        assert not known or sheets.advised_mass(spec) == pytest.approx(limit, rel=0.01)
    assert limit > 0.0
    assert measured.endswith(("N/m", "kg"))
