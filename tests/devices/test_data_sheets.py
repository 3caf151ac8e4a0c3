"""The table of data sheets: its figures on rows whose truth is known, and that the page says what the sheets say."""

from __future__ import annotations

import re

import numpy as np
import pytest

from tests.devices.data_sheets import (
    PERIOD,
    SUBJECTS,
    ages,
    fastest,
    hand_over,
    main,
    residual,
    stated,
    step,
    strongest,
)
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


def test_what_nobody_knows_is_no_number(rows: np.ndarray) -> None:
    rows["hand_force"] = np.nan
    rows["position"] = 0.0
    assert np.isnan(residual(rows, 1.0))
    assert np.isnan(step(rows))


def test_the_page_has_every_figure_with_what_the_data_sheet_says() -> None:
    page = (ROOT / "docs" / "data_sheets.md").read_text(encoding="utf-8")
    found = {
        tuple(row[:2]): row[2] for row in re.findall(r"^\| (.*?) \| (.*?) \| (.*?) \| .*? \|$", page, re.MULTILINE)
    }
    for subject in SUBJECTS:
        for name, sheet in stated(subject.spec, subject.clock).items():
            assert found[subject.title, name] == (sheet or "not stated"), (subject.title, name)


@pytest.mark.slow
def test_the_table_is_made() -> None:
    lines: list[str] = []
    main(["virtual-joystick"], lines.append)
    assert lines[0].startswith("| device |")
    told = {line.split(" | ")[1]: line.rstrip(" |\n").split(" | ")[-1] for line in lines[1:]}
    assert told.keys() == {"position resolution", "delay", "least friction", "largest force"}
    assert told.pop("delay") == "not seen from here"  # a run without a clock takes no time
    assert all(value[0].isdigit() or value.startswith("-") for value in told.values())
