"""Reproductions: every number, the effect of wrong parameters, servo laws."""

import pytest
from matplotlib.figure import Figure

from apps.reproduce import weigand, weigand_fig7
from apps.reproduce.arm_tour import LAWS
from apps.reproduce.registry import REPRODUCTIONS, load
from apps.reproduce.servo_sensitivity import NAMES, TRIALS, compared, law_line, of_law, trial_line
from devices.arm.flatness.control import FeedForwardServo
from tests.apps.test_reproduce import numbers, stated
from tests.sampling import sample

LONG = ("kikuuwe-servo", "kikuuwe-fig11", "machado-fig3", "machado-fig9", "weigand-fig7", "weigand-fig9")


@pytest.mark.parametrize("name", [name for name in REPRODUCTIONS if name not in LONG])
def test_reproduction_meets_every_number_and_draws_every_part(name):
    outcome = load(name).reproduce()
    rows = outcome.rows
    assert len({row.what for row in rows}) == len(rows) > 0
    assert [row for row in rows if not row.holds] == []
    assert any(row.met for row in rows), "no number of the paper is compared"
    figure = Figure(figsize=(12, 7))
    outcome.draw(figure)
    assert figure.axes
    assert all(axes.has_data() for axes in figure.axes)


QUICK = ("as above", "friction believed 30 % too high")


def require_page_numbers(line, name):
    """Compare with the page; the tolerance covers libraries of other processors."""
    assert numbers(line) == pytest.approx(stated("reproduction.md", name), rel=0.12, abs=0.06)


@pytest.mark.parametrize("law", LAWS)
def test_servo_law_results_are_those_of_the_page(law):
    require_page_numbers(law_line(law, of_law(law)), NAMES[law])


@pytest.mark.parametrize("name", sample(QUICK, 1))
def test_wrong_parameters_have_the_effect_stated_on_the_page(name):
    result, times = compared(TRIALS[name])
    require_page_numbers(trial_line(name, result, times), name)
    assert times.closer > 2.0
    assert (times.smoother > 2.0) == (name == "as above")


def test_feedback_is_compared_with_the_same_feed_forward_without_it():
    row = next(row for row in weigand_fig7.reproduce().rows if "rigid, conventional feedback" in row.what)
    with_it, without = (
        weigand.worst(weigand.run(FeedForwardServo("rigid", feedback), circumstances=weigand.HELD))
        for feedback in ("conventional", "none")
    )
    assert row.ours == pytest.approx(with_it / without)
    assert row.ours < 0.5  # it improves
