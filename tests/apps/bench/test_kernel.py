from __future__ import annotations

import pytest

from apps.bench import kernel, simulators
from apps.bench.reference import Reference
from apps.bench.workload import classic_elements, elements, plainest
from haptics.device import Causality
from haptics.elements.tables import MODELS


def _nothing(done: float, words: str) -> None:
    pass


def test_all_models_are_measured() -> None:
    measured = {(element.model, element.causality) for element in (*elements(), *classic_elements())}
    assert measured == {(model, causality) for model, forms in MODELS.items() for causality in forms}


def test_without_a_compiler_the_times_remain(few_rounds: None, no_compiler: None) -> None:
    outcome = kernel.run(_nothing)
    assert "no C compiler" in outcome.text and outcome.error == ""
    assert all(row["ns_per_step"] > 0.0 and row["ratio"] is None for row in outcome.result["rows"])


def test_a_classic_model_is_measured_beside_the_plainest_of_its_kind(few_rounds: None, reference: Reference) -> None:
    row = kernel.measured(classic_elements()[0], reference)
    assert row["ratio"] > 0.0
    assert row["difference"] is None  # not the same model: nothing to agree on
    assert [plainest(causality).model for causality in Causality] in (["A", "C"], ["C", "A"])


def test_loops_that_disagree_are_an_error() -> None:
    rows = [{"element": "B", "law": "stribeck", "difference": value} for value in (None, 1e-13, 2e-12)]
    assert kernel.disagreement(rows[:2]) == ""
    assert "model B with law stribeck" in kernel.disagreement(rows)
    assert kernel.disagreement([{**rows[0], "difference": float("nan")}]) != ""


# --- other simulators ---------------------------------------------------------------------------------------------


def test_a_simulator_that_is_not_there_is_named_with_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    absent = simulators.Simulator("no_such_simulator", "nothing", simulators.SIMULATORS[0].make)
    monkeypatch.setattr(simulators, "SIMULATORS", (absent,))
    rows = simulators.measured()
    assert rows[0]["times_faster"] is None
    assert "not installed: pip install no_such_simulator" in simulators.text(rows)


def test_a_simulator_gets_the_forces_of_model_a(few_rounds: None, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    present = simulators.Simulator("numpy", "a sum", lambda forces: lambda: seen.append(forces.sum(axis=1)))
    monkeypatch.setattr(simulators, "SIMULATORS", (present,))
    (row,) = simulators.measured()
    assert abs(seen[0]).max() > 4.0  # the friction force
    assert row["times_faster"] > 0.0 and row["version"]


@pytest.mark.parametrize("simulator", simulators.SIMULATORS, ids=lambda simulator: simulator.package)
def test_an_installed_simulator_can_be_measured(simulator: simulators.Simulator) -> None:
    pytest.importorskip(simulator.package)
    from apps.bench.workload import inputs

    simulator.make(inputs(Causality.ADMITTANCE)[:50])()
