"""The course of a session: which trial comes next, by the seed and the answers, and by nothing else."""

from __future__ import annotations

from pathlib import Path

from apps.experiment.design import Design, read_design
from apps.experiment.engine.course import Course, Participant, Plan
from tests.apps.experiment.design.designs import WEBER, changed

WHO = Participant("P01", 1, 0, 7)


def walk(design: Design, right: float, who: Participant = WHO) -> list[Plan]:
    """Return the trials of somebody who is right in the first `right` part of each ten trials."""
    course, plans = Course(design, who), []
    while (plan := course.next()) is not None:
        assert course.next() == plan
        plans.append(plan)
        correct = plan.trial % 10 < 10 * right
        course.take(plan, str(plan.comparison if correct else 3 - (plan.comparison or 1)), correct)
    return plans


def test_every_trial_has_the_reference_in_one_interval_and_the_comparison_in_the_other(tmp_path: Path) -> None:
    plans = walk(read_design(changed(tmp_path, "most_trials = 4", "most_trials = 40")), 0.8)
    for plan in plans:
        assert plan.comparison in (1, 2)
        assert plan.values[plan.comparison - 1] == plan.condition.reference + plan.level
        assert plan.values[2 - plan.comparison] == plan.condition.reference
    for four in range(0, len(plans) - 3, 4):
        assert sorted(plan.comparison or 0 for plan in plans[four : four + 4]) == [1, 1, 2, 2]


def test_what_a_trial_draws_does_not_depend_on_the_answers_before_it(tmp_path: Path) -> None:
    design = read_design(
        changed(tmp_path, "most_trials = 4", "most_trials = 12", WEBER.replace("{ most_trials = 3 }", "{}"))
    )
    good, bad = walk(design, 1.0), walk(design, 0.3)
    assert [plan.level for plan in good] != [plan.level for plan in bad]
    for one, other in zip(good, bad, strict=True):
        assert (one.comparison, one.condition, one.kind, one.label) == (
            other.comparison,
            other.condition,
            other.kind,
            other.label,
        )


def test_participants_and_sessions_have_orders_of_their_own(tmp_path: Path) -> None:
    design = read_design(changed(tmp_path, "most_trials = 4", "most_trials = 12"))
    orders = [
        [(plan.comparison, plan.condition.name) for plan in walk(design, 0.8, who)]
        for who in (WHO, Participant("P02", 1, 0, 7), Participant("P01", 2, 0, 7), Participant("P01", 1, 0, 8))
    ]
    assert len({tuple(order) for order in orders}) == len(orders)
    assert orders[0] == [(plan.comparison, plan.condition.name) for plan in walk(design, 0.8)]


def test_a_catch_trial_is_none_of_the_procedure(tmp_path: Path) -> None:
    plans = walk(read_design(changed(tmp_path, "easy = 0.2", "easy = 0.2\nnull = 0.2")), 0.8)
    kinds = [plan.kind for plan in plans]
    assert kinds.count("test") == 7, "4 and 3 trials of the procedures, whatever is between"
    for plan in plans:
        if plan.kind == "catch-null":
            assert plan.values[0] == plan.values[1] and plan.track is None
        elif plan.kind == "catch-easy":
            assert plan.level == plan.condition.reference and plan.track is None


def test_catch_trials_are_drawn_places_kinds_and_conditions(tmp_path: Path) -> None:
    """Of some forty catch trials a draw that always gives the same is seen: 2^-40 is no chance."""
    text = WEBER.replace("{ most_trials = 3 }", "{}").replace("reversals = 20\nmost_trials = 4", "reversals = 99\n")
    text = text.replace("reversals = 99\n", "reversals = 90\nmost_trials = 100")
    design = read_design(changed(tmp_path, "easy = 0.2", "easy = 0.1\nnull = 0.1", text))
    caught = [
        [plan for plan in walk(design, 0.8, who) if plan.kind.startswith("catch")]
        for who in (WHO, Participant("P02", 1, 0, 7))
    ]
    for plans in caught:
        assert len(plans) > 30
        names = [plan.condition.name for plan in plans]
        assert 0.2 < names.count("1 N") / len(names) < 0.8
        pairs = [(one.kind, two.kind) for one, two in zip(plans[::2], plans[1::2], strict=False)]
        assert len(set(pairs)) == 2, "which kind comes first of two is drawn, and each pair has both"
        assert len({(plan.trial - 4) % 5 for plan in plans}) == 5, "so is the place among five"
    for what in ("trial", "kind", "condition"):
        assert [getattr(one, what) for one in caught[0]] != [getattr(one, what) for one in caught[1]], what


def test_conditions_that_are_not_mixed_come_in_the_orders_of_a_williams_square(tmp_path: Path) -> None:
    design = read_design(changed(tmp_path, "block = 5", "block = 5\ninterleave = false"))
    orders = []
    for slot in range(2):
        plans = walk(design, 0.8, Participant("P01", 1, slot, 7))
        orders.append(list(dict.fromkeys(plan.condition.name for plan in plans)))
        for block in {plan.block for plan in plans}:
            assert len({plan.condition.name for plan in plans if plan.block == block}) == 1
    assert orders == [["1 N", "2 N"], ["2 N", "1 N"]]


PRACTICE = "[practice]\nwindow = 4\ncorrect = 4\nmost = 9\n\n[catch]"


def test_practice_ends_as_soon_as_it_is_passed(tmp_path: Path) -> None:
    plans = walk(read_design(changed(tmp_path, "[catch]", PRACTICE)), 1.0)
    practice = [plan for plan in plans if plan.kind == "practice"]
    assert [plan.trial for plan in practice] == [1, 2, 3, 4]
    assert {plan.block for plan in practice} == {1} and plans[4].block == 2
    assert all(plan.level == plan.condition.reference for plan in practice)


def test_who_does_not_pass_the_practice_goes_home_or_on(tmp_path: Path) -> None:
    design = read_design(changed(tmp_path, "[catch]", PRACTICE))
    assert [plan.kind for plan in walk(design, 0.2)] == ["practice"] * 9
    design = read_design(changed(tmp_path, "[catch]", PRACTICE.replace("most = 9", 'most = 9\nfailing = "go on"')))
    assert len(walk(design, 0.2)) > 9
