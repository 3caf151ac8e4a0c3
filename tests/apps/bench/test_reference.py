from __future__ import annotations

import numpy as np
import pytest

from apps.bench.kernel import TOLERANCE, difference
from apps.bench.loop import empty_results, own_loop
from apps.bench.reference import NoReference, Reference
from apps.bench.workload import elements, inputs, laws
from haptics.elements.models import Element


def _title(element: Element) -> str:
    return f"{element.model}-{element.law.name}"


@pytest.mark.parametrize("way", ["", "_by_address"])
@pytest.mark.parametrize("element", elements(), ids=_title)
def test_the_loop_in_c_computes_the_same(element: Element, way: str, reference: Reference) -> None:
    ours, theirs = empty_results(), empty_results()
    own_loop(element, ours)()
    name = f"{element.model.lower()}_{element.law.name}{way}"
    reference.loop(name, reference.record(element), inputs(element.causality), theirs)()
    assert np.abs(theirs["friction_force"]).max() > 1.0
    assert difference(ours, theirs) <= TOLERANCE


@pytest.mark.parametrize("element", elements(), ids=_title)
def test_every_element_sticks_and_slides_in_the_workload(element: Element) -> None:
    results = empty_results()
    own_loop(element, results)()
    assert 0.05 < results["sticking"].mean() < 0.95


def test_both_loops_begin_anew_every_time(reference: Reference) -> None:
    element = elements()[1]
    ours, theirs = empty_results(), empty_results()
    run_ours = own_loop(element, ours)
    run_theirs = reference.loop("b_coulomb", reference.record(element), inputs(element.causality), theirs)
    for run, results in ((run_ours, ours), (run_theirs, theirs)):
        run()
        first = results.copy()
        run()
        assert results.tobytes() == first.tobytes()


def test_a_difference_anywhere_is_seen() -> None:
    results = empty_results()
    own_loop(elements()[0], results)()
    for name in ("output", "friction_force", "velocity", "sticking"):
        other = results.copy()
        other[name][1234] += 1
        assert difference(other, results) > TOLERANCE


def test_every_law_of_the_workload_is_another() -> None:
    assert len({law.name for law in laws()}) == len(laws())


def test_the_compiler_is_named(reference: Reference) -> None:
    assert "-O3" in reference.compiler


def test_without_a_compiler_there_is_no_reference(no_compiler: None) -> None:
    with pytest.raises(NoReference, match="no C compiler"):
        Reference()


@pytest.mark.parametrize(("command", "words"), [("/nowhere/cc", "cannot be run"), ("false", "failed")])
def test_a_compiler_that_does_not_work_is_no_reference(
    command: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CC", command)
    with pytest.raises(NoReference, match=words):
        Reference()
