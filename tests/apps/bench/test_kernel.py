"""Benchmarks against the reference in C, other simulators and whole runs."""

from __future__ import annotations

import importlib.util
import json
import math
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from apps.bench import kernel, network, simulation, simulators
from apps.bench.outcome import CannotMeasure, table_of
from apps.bench.workload import (
    NoReference,
    Reference,
    classic_elements,
    elements,
    empty_results,
    inputs,
    own_loop,
    plainest,
)
from apps.experiment.procedures.quest import QuestPlus
from haptics.device import Causality
from haptics.elements.network import Network
from haptics.elements.tables import MODELS


def ignore_progress(share, words):
    pass


# --- the reference in C ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", ["", "_by_address"])
@pytest.mark.parametrize("element", elements(), ids=lambda element: f"{element.model}-{element.law.name}")
def test_reference_computes_the_same_on_every_run(element, way, reference):
    ours, theirs = empty_results(), empty_results()
    name = f"{element.model.lower()}_{element.law.name}{way}"
    for run, results in (
        (own_loop(element, ours), ours),
        (reference.loop(name, reference.record(element), inputs(element.causality), theirs), theirs),
    ):
        run()
        first = results.copy()
        run()
        assert results.tobytes() == first.tobytes()
    assert np.abs(theirs["friction_force"]).max() > 1.0
    assert "-O3" in reference.compiler
    assert kernel.difference(ours, theirs) <= kernel.TOLERANCE
    assert 0.05 < ours["sticking"].mean() < 0.95


def test_difference_detects_a_change_in_any_field():
    results = empty_results()
    own_loop(elements()[0], results)()
    for name in ("output", "friction_force", "velocity", "sticking"):
        other = results.copy()
        other[name][1234] += 1
        assert kernel.difference(other, results) > kernel.TOLERANCE


def test_reference_needs_a_compiler(no_compiler):
    with pytest.raises(NoReference, match="no C compiler"):
        Reference()


@pytest.mark.parametrize(("command", "words"), [("/nowhere/cc", "cannot be run"), ("false", "failed")])
def test_reference_reports_a_broken_compiler(command, words, monkeypatch):
    monkeypatch.setenv("CC", command)
    with pytest.raises(NoReference, match=words):
        Reference()


# --- kernel and network ----------------------------------------------------------------------------------------------


def test_workload_covers_every_model():
    measured = {(element.model, element.causality) for element in (*elements(), *classic_elements())}
    assert measured == {(model, causality) for model, forms in MODELS.items() for causality in forms}


def test_rows_without_a_compiler_have_times_but_no_ratios(few_rounds, no_compiler):
    for benchmark, figure in ((kernel, "ns_per_step"), (network, "contacts_per_tick")):
        outcome = benchmark.run(ignore_progress)
        assert "no C compiler" in outcome.text and outcome.error == ""
        assert all(row[figure] > 0.0 and row["ratio"] is None for row in outcome.result["rows"])


def test_classic_model_is_measured_against_the_simplest_one(few_rounds, reference):
    row = kernel.measured(classic_elements()[0], reference)
    assert row["ratio"] > 0.0
    assert row["difference"] is None  # the models differ
    assert [plainest(causality).model for causality in Causality] in (["A", "C"], ["C", "A"])


def test_kernel_reports_loops_that_disagree():
    rows = [{"element": "B", "law": "stribeck", "difference": value} for value in (None, 1e-13, 2e-12)]
    assert kernel.disagreement(rows[:2]) == ""
    assert "model B with law stribeck" in kernel.disagreement(rows)
    assert kernel.disagreement([{**rows[0], "difference": float("nan")}]) != ""


def test_network_workload_has_about_half_of_the_contacts_sliding(monkeypatch):
    made: list[Network] = []

    def make(*arguments, **settings):
        made.append(Network(*arguments, **settings))
        return made[-1]

    monkeypatch.setattr(network, "Network", make)
    tick = network.network_tick(network.friction_forces(100))
    shares = []
    for _ in range(200):
        tick()
        shares.append(made[0].sticking.mean())
    assert made[0].stability_number < 1.0
    assert 0.3 < np.mean(shares) < 0.7
    assert np.std(shares) < 0.1  # every tick is the same amount of work


def test_network_counts_contacts_per_millisecond(few_rounds, reference):
    outcome = network.run(ignore_progress)
    (row,) = outcome.result["rows"]
    assert row["contacts"] <= 30
    assert row["contacts_per_tick"] == pytest.approx(1e6 / row["ns_per_step"], rel=1e-2)
    assert row["ratio"] > 0.0
    json.dumps(outcome.result, allow_nan=False)


# --- other simulators ------------------------------------------------------------------------------------------------


def test_missing_simulator_is_reported_with_its_package(monkeypatch):
    absent = simulators.Simulator("no_such_simulator", "nothing", simulators.SIMULATORS[0].make)
    rows = [simulators.measured(absent)]
    assert rows[0]["times_faster"] is None
    assert "not installed: pip install no_such_simulator" in table_of(simulators.COLUMNS, rows)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(CannotMeasure, match="pip install mujoco"):
        simulators.run_mujoco(ignore_progress)


def test_simulator_receives_the_forces_of_model_a(few_rounds):
    seen = []
    present = simulators.Simulator("numpy", "a sum", lambda forces: lambda: seen.append(forces.sum(axis=1)))
    row = simulators.measured(present)
    assert abs(seen[0]).max() > 4.0  # the friction force
    assert row["times_faster"] > 0.0 and row["version"]


@pytest.mark.parametrize("simulator", simulators.SIMULATORS, ids=lambda simulator: simulator.package)
def test_installed_simulator_can_be_measured(simulator):
    pytest.importorskip(simulator.package)
    simulator.make(inputs(Causality.ADMITTANCE)[:50])()


def test_exact_friction_in_mujoco_neither_creeps_nor_changes_its_sliding_force(monkeypatch):
    pytest.importorskip("mujoco")
    monkeypatch.setattr(simulators, "_SCENE_ROUNDS", 3)
    monkeypatch.setattr(simulators, "_STEPS", 50)
    outcome = simulators.run_mujoco(ignore_progress)
    rows = {row["friction"]: row for row in outcome.result["rows"]}
    exact = rows["exact, by a callback"]
    assert exact["creep_um_s"] == 0.0
    assert exact["sliding_n"] == pytest.approx(4.0, abs=1e-9)
    assert rows["elliptic cone"]["creep_um_s"] > 100.0
    assert abs(rows["elliptic cone, noslip 10"]["creep_um_s"]) < 1.0, "the page calls noslip nearly as good"
    assert all(row["ratio"] > 0.0 for row in rows.values())
    assert "noslip 10" in outcome.text


# --- QUEST+ ----------------------------------------------------------------------------------------------------------


def test_quest_reference_chooses_the_same_levels():
    own = QuestPlus(simulation.QUEST, 0.5)
    trial = simulation.array_trial(own.right)
    levels = np.geomspace(simulation.QUEST.minimum, simulation.QUEST.maximum, simulation.QUEST.count)
    middle = levels[len(levels) // 2]
    for _ in range(12):
        level = own.level()
        assert math.isclose(levels[trial()], level)
        own.add_outcome(level, level >= middle)


def test_quest_trial_is_faster_than_with_whole_arrays(few_rounds):
    (row,) = simulation.run_quest(ignore_progress).result["rows"]
    assert (row["levels"], row["cells"]) == (50, 2400)
    assert row["ratio"] == pytest.approx(row["us_per_trial"] / row["reference_us_per_trial"], rel=0.5)
    assert row["ratio"] < 0.5


# --- whole runs ------------------------------------------------------------------------------------------------------


def test_tick_costs_more_than_a_step(few_rounds, monkeypatch):
    monkeypatch.setattr(simulation, "_LOOP_ROUNDS", 5)
    (tick,) = simulation.run_loop(ignore_progress).result["rows"]
    assert 2.0 < tick["ratio"] < 200.0


def test_sweep_sessions_are_simulated(compiled_kernels):
    assert 0.0 < simulation.simulate_batch(2, 0) < 60.0


def sleep(number):
    time.sleep(0.02)
    return 0.02


def test_sleeping_tasks_speed_up_with_the_number_of_workers():
    with ThreadPoolExecutor(2) as executor:
        speed = simulation.measure_tasks(executor, 2, sleep, 5)
    assert speed.working == pytest.approx(0.02)
    assert speed.overhead < 0.02
    assert 1.3 < speed.speedup < 2.5


def test_many_workers_are_limited_by_the_task_overhead():
    speed = simulation.Speed(working=0.3, overhead=0.003, speedup=2.0)
    assert [speed.time(1000, workers) for workers in (1, 10, 10_000)] == pytest.approx([303.0, 30.3, 3.0])
    assert simulation.in_words(7200.0) == "2.0 h"
    assert simulation.in_words(0.5) == "0.50 s"
