"""The table of data sheets: its figures on rows whose truth is known, and that the page says what the sheets say."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest

from haptics.device import Causality
from tests.devices.boundaries import (
    HEAVIEST,
    HUM,
    LIGHTEST,
    LOUD,
    ROUND,
    advised_mass,
    advised_stiffness,
    hum,
    least_mass,
    top_speed,
)
from tests.devices.data_sheets import LEAST_MASS, STIFFEST, SUBJECTS, Subject, stated
from tests.devices.figures import PERIOD, ages, fastest, hand_over, residual, step, strongest
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
def rows() -> np.ndarray:
    """A second of 5 mm/s along x, on an encoder of `COUNT`, with 1.25 N of the hand."""
    found = np.zeros(1000, ROWS)
    time = np.arange(1000) * PERIOD
    found["position"][:, 0] = np.floor(0.005 * time / COUNT) * COUNT
    found["velocity"][:, 0] = 0.005
    found["hand_force"][:, 0] = 1.25
    found["command"][:, 1] = -0.2 * time
    found["sample_age"], found["write_time"] = np.linspace(0.0, 1e-3, 1000), 2e-4
    return found


def test_figures_are_those_of_the_rows(rows: np.ndarray) -> None:
    assert step(rows) == pytest.approx(COUNT)
    assert residual(rows, 1.0) == pytest.approx(0.25)
    assert fastest(rows) == pytest.approx(0.2)
    assert strongest(rows) == pytest.approx(0.2, rel=2e-3)
    assert ages(rows) == pytest.approx((0.5e-3, 0.99e-3), rel=1e-2)
    assert hand_over(rows) == pytest.approx(0.7e-3, rel=1e-2)


def test_silence_of_a_handle_that_stands_still_is_no_old_sample(rows: np.ndarray) -> None:
    rows["sample_age"][500:], rows["velocity"][500:] = 9e-3, 0.001
    assert ages(rows)[1] < 1e-3
    rows["velocity"] = 0.0
    assert np.isnan(ages(rows)).all()


def test_what_nobody_knows_is_no_number(rows: np.ndarray) -> None:
    rows["hand_force"] = np.nan
    rows["position"] = 0.0
    assert np.isnan(residual(rows, 1.0))
    assert np.isnan(step(rows))


# --- where a device swings, shakes, or is driven no faster -----------------------------------------------------------


def test_speed_is_that_of_the_clock_where_ticks_were_missed() -> None:
    found = np.zeros(100, [("tick", "i8"), ("position", "f8", (2,))])
    found["tick"] = np.arange(100) + 7 * (np.arange(100) > 50)
    found["position"][:, 0] = -1.5 * PERIOD * found["tick"]
    assert top_speed(found) == pytest.approx(1.5)


@pytest.mark.parametrize(("frequency", "heard"), [(2.0 * HUM, True), (0.5 * HUM, False)])
def test_an_arm_shakes_by_what_is_fast(frequency: float, heard: bool) -> None:
    rows = np.zeros(round(ROUND / PERIOD), [("force", "f8", (2,))])
    rows["force"][:, 1] = 6.0 + 2.0 * LOUD * np.sin(2.0 * math.pi * frequency * PERIOD * np.arange(len(rows)))
    expected = math.sqrt(2.0) * LOUD if heard else 0.0
    assert hum(rows) == pytest.approx(expected, abs=0.02 * LOUD)
    assert hum(rows[:2000]) == math.inf, "a limit has ended it"


@pytest.mark.parametrize("true", [0.1, 0.72, 2.5])
def test_the_least_mass_is_found_between_those_that_shake_and_those_that_do_not(true: float) -> None:
    number, unit = least_mass(lambda mass: mass < true).split()
    assert unit == "kg"
    assert float(number) == pytest.approx(true, rel=0.12)


def test_a_least_mass_out_of_range_is_told_as_that() -> None:
    assert least_mass(lambda mass: False).startswith("less than 0.0")
    assert least_mass(lambda mass: True).startswith("more than ")
    assert LIGHTEST < HEAVIEST


# --- the page --------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def page() -> dict[tuple[str, str], tuple[str, str]]:
    """What the page says of each device and figure: the data sheet, and what was measured."""
    text = (ROOT / "docs" / "data_sheets.md").read_text(encoding="utf-8")
    assert re.search(r"^\d+ processors; load average [\d.]+ when it began, [\d.]+ when it ended\.$", text, re.MULTILINE)
    rows = re.findall(r"^\| (.*?) \| (.*?) \| (.*?) \| (.*?) \|$", text, re.MULTILINE)
    return {(row[0], row[1]): (row[2], row[3]) for row in rows}


@pytest.mark.parametrize("subject", SUBJECTS, ids=str)
def test_the_page_has_every_figure_with_what_the_data_sheet_says(
    page: dict[tuple[str, str], tuple[str, str]], subject: Subject
) -> None:
    for name, sheet in stated(subject.spec, subject.clock).items():
        assert page[subject.title, name][0] == (sheet or "not stated"), name


@pytest.mark.parametrize("subject", SUBJECTS, ids=str)
def test_the_page_has_what_advice_says_today_beside_the_boundary(
    page: dict[tuple[str, str], tuple[str, str]], subject: Subject
) -> None:
    spec = subject.spec
    if spec.causality is Causality.IMPEDANCE:
        sheet, measured = page[subject.title, STIFFEST]
        limit, damping = map(float, re.findall(r"[\d.]+", sheet))
        assert advised_stiffness(spec, damping) == pytest.approx(limit, rel=0.02), "damping has three digits"
    else:
        sheet, measured = page[subject.title, LEAST_MASS]
        limit = float(sheet.split()[0])
        known = spec.least_mass is not None  # else it is made of the servo that was measured on that day
        assert not known or advised_mass(spec) == pytest.approx(limit, rel=0.01)
    assert limit > 0.0
    assert measured.endswith(("N/m", "kg"))
