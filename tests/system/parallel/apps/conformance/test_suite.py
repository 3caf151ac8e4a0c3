"""Long computations for the topic of tests/apps/conformance/test_suite.py."""

from __future__ import annotations

from apps.conformance.cells import CELLS, REFERENCE
from apps.conformance.limits import passes
from apps.conformance.report import by_element
from apps.conformance.subjects import RendererSubject, choose
from apps.conformance.suite import judge, judge_all
from tests.apps.conformance.test_suite import viscous


def test_rows_come_in_the_order_of_renderers_and_cells() -> None:
    subjects = [RendererSubject("one", viscous), RendererSubject("two", viscous)]
    some = (CELLS[9], CELLS[0])
    seen: list[tuple[int, int]] = []
    rows = judge_all(subjects, some, lambda done, total, _: seen.append((done, total)))
    assert [(row["element"], row["grip"]) for row in rows] == [
        ("one", "firm"),
        ("one", "light"),
        ("two", "firm"),
        ("two", "light"),
    ]
    assert seen == [(k, 4) for k in range(4)]
    assert list(by_element(rows)) == ["one", "two"]


def test_the_rigid_admittance_does_not_move_at_all() -> None:
    (subject,) = choose(["A"])
    for cell in (REFERENCE, CELLS[0], CELLS[-1]):
        row = judge(subject, cell)
        assert row["hold_drift_um_s"] == 0.0
        assert row["fluctuation_drift_um"] == 0.0
    assert passes(judge(subject, REFERENCE))
