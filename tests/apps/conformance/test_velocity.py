"""The comparison of the velocity estimators: what the page says is what comes out."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from apps.conformance import metrics, motions, velocity
from apps.conformance.cells import CELLS, DAMPING, Cell
from apps.conformance.velocity import CANDIDATES, Figures, delay, draw, measure, run, table
from devices.common.velocity import ESTIMATORS, VelocitySettings

PAGE = Path(__file__).parents[3] / "docs" / "velocity.md"


def stated(name: str) -> list[float]:
    """Return the numbers of a row of the page."""
    line = re.search(rf"^\| {name} \|(.*)\|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert line is not None
    return [float(cell.replace("none", "inf")) for cell in line[1].split("|")]


@pytest.mark.parametrize("cell", CELLS, ids=[cell.name for cell in CELLS])
def test_the_default_holds_in_every_cell(cell: Cell) -> None:
    """With 100 um, where in its count it settles is a matter of the last digits: at worst it creeps over it once."""
    limit = 1e-6 if cell.quantisation <= 20e-6 else 3e-6
    assert metrics.hold_drift(run(VelocitySettings(), cell, motions.HOLD), cell.rate) < limit


def test_the_default_keeps_the_limits_and_the_page_says_so() -> None:
    figures = measure(VelocitySettings())
    assert figures.buzz < 0.05
    assert figures.direction < 1.0
    drift, buzz, direction, late, damping = stated("tracker")
    assert drift < 1.0
    assert (figures.buzz, figures.direction) == pytest.approx((buzz, direction), rel=0.2)
    assert (figures.delay, figures.damping) == (pytest.approx(late, abs=0.1), pytest.approx(damping, abs=1.0))


def test_the_difference_is_what_the_page_says() -> None:
    figures = measure(CANDIDATES["difference"])
    _, buzz, direction, late, damping = stated("difference")
    assert (figures.buzz, figures.direction) == pytest.approx((buzz, direction), rel=0.2)
    assert (figures.delay, figures.damping) == (pytest.approx(late, abs=0.1), pytest.approx(damping, abs=1.0))


COARSE = [cell for cell in CELLS if cell.quantisation > 20e-6]
RESONANT = next(cell for cell in COARSE if cell.grip.name == "light" and cell.rate == 2000.0)
"""Here the damper's force of one count is the force that is held."""


def drift_of_the_difference(cell: Cell, damping: float = DAMPING) -> float:
    """Return the hold drift of the difference [um/s]."""
    return 1e6 * metrics.hold_drift(run(CANDIDATES["difference"], cell, motions.HOLD, damping), cell.rate)


def test_the_drift_of_the_difference_is_that_of_a_single_damping_in_a_single_cell() -> None:
    """Rounding decides there how fast it goes: what can be said is its size, and where it ends."""
    assert RESONANT.quantisation * RESONANT.rate * DAMPING == pytest.approx(motions.HOLD_FORCE)
    assert max(drift_of_the_difference(cell) for cell in COARSE if cell is not RESONANT) < 0.2
    at_it = [drift_of_the_difference(RESONANT, DAMPING * (1.0 + 1e-9 * k)) for k in range(1, 9)]
    assert 100.0 < max(at_it) < 1000.0
    assert max(drift_of_the_difference(RESONANT, DAMPING * (1.0 + part)) for part in (-1e-3, 1e-3)) < 0.2
    assert 0.0 < stated("difference")[0] < 1000.0


@pytest.mark.parametrize("window", [1, 4, 9])
def test_the_delay_of_a_difference_is_half_its_window(window: int) -> None:
    assert delay(VelocitySettings("difference", window)) == pytest.approx(0.5e-3 * window, abs=0.02e-3)


def test_every_estimator_is_compared_and_on_the_page() -> None:
    assert {settings.velocity_estimator for settings in CANDIDATES.values()} == set(ESTIMATORS)
    for name in CANDIDATES:
        assert len(stated(name)) == 5


def test_picture_and_table_are_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    few = {name: CANDIDATES[name] for name in ("difference", "tracker")}
    monkeypatch.setattr(velocity, "CANDIDATES", few)
    figures = {name: Figures(0.01, 0.1, 1.0, 0.5, float("inf")) for name in few}
    assert table(figures).splitlines()[2] == "| difference | 0.0 | 0.10 | 1.0 | 0.5 | none |"
    draw(figures, str(tmp_path / "picture.png"))
    assert (tmp_path / "picture.png").stat().st_size > 20_000
