"""Numbers about a run, from rows whose answer is known."""

import numpy as np
import pytest

from haptics.device import Causality
from haptics.recording.certificate import BIN_EDGES_US, quantiles
from haptics.recording.fitness import Fitness
from haptics.records import ROW, Status
from tests.certificates import certificate, felt, flags_seen


def rows_of(count: int, skipped_from: int | None = None) -> np.ndarray:
    rows = np.zeros(count, ROW)
    rows["tick"] = np.arange(count)
    if skipped_from is not None:
        rows["tick"][skipped_from:] += 5
    rows["period_error"] = np.arange(count) * 1e-6
    rows["tick_time"] = 20e-6
    rows["command"] = (3.0, 4.0)
    rows["force"] = (0.0, 2.0)
    rows["sticking"][: count // 4] = 1
    return rows


def test_ticks_and_skips_add_up_to_what_was_planned() -> None:
    rows = rows_of(95, skipped_from=50)
    found = certificate(rows, executed=95, planned=100, period=1e-3)
    assert (found["ticks"], found["skipped"], found["lost_ticks"]) == (95, 5, 0)
    assert found["longest_gap_us"] == pytest.approx(6001.0)
    # Ended before its time: the plan is what there was up to the last tick.
    assert certificate(rows, executed=95, planned=None, period=1e-3)["skipped"] == 5


def test_lost_ticks_are_those_executed_but_not_recorded() -> None:
    assert certificate(rows_of(90), executed=95, planned=95, period=1e-3)["lost_ticks"] == 5


def test_late_ticks_are_counted_and_named() -> None:
    rows = rows_of(100)
    rows["status"][[3, 7]] = Status.STARTED_LATE
    rows["status"][8] = Status.ENDED_LATE | Status.STARTED_LATE
    found = certificate(rows, 100, 100, period=1e-3)
    assert found["overruns"] == 3
    assert found["late_ticks"] == [3, 7, 8]
    assert flags_seen(rows) == {"STARTED_LATE": 3, "ENDED_LATE": 1}


def test_quantiles_are_in_microseconds() -> None:
    found = quantiles(np.arange(1001) * 1e-6, scale=1e6, p999=True)
    assert found == {"p50": 500.0, "p99": 990.0, "p999": 999.0, "max": 1000.0}
    assert quantiles(np.array([]), scale=1.0) == {}


def test_what_was_felt_is_the_command_or_the_measured_force() -> None:
    rows = rows_of(100)
    assert felt(rows, Causality.IMPEDANCE) == {"force_n": {"mean": 5.0, "max": 5.0}, "stick_fraction": 0.25}
    assert felt(rows, Causality.ADMITTANCE)["force_n"] == {"mean": 2.0, "max": 2.0}


def test_a_force_that_was_not_a_number_does_not_spoil_the_rest() -> None:
    rows = rows_of(100)
    rows["force"][5] = np.nan
    assert felt(rows, Causality.ADMITTANCE)["force_n"]["max"] == pytest.approx(2.0)


def test_an_empty_run_has_a_summary_too() -> None:
    rows = rows_of(0)
    assert certificate(rows, 0, None, period=1e-3)["ticks"] == 0
    assert felt(rows, Causality.IMPEDANCE) == {"force_n": {}, "stick_fraction": None}


def test_a_run_that_ended_with_a_fault_is_never_fit() -> None:
    timing = {"ticks": 1000, "skipped": 0, "overruns": 0, "unusable_ticks": 0, "longest_gap_us": 1e3, "lost_ticks": 0}
    assert Fitness().judge(timing) == []
    assert Fitness(lost_ticks=10.0).judge(timing, "the disk is full") == [
        "the run ended with a fault: the disk is full"
    ]


def test_histograms_are_those_of_numpy() -> None:
    """Edges belong to the bin above them, the last one to the last bin; what is no number is in none."""
    chance = np.random.default_rng(4)
    values = np.concatenate((10.0 ** chance.uniform(-9.0, 1.0, 4000), 1e-6 * BIN_EDGES_US, [-1.0, np.nan, np.inf]))
    rows = rows_of(len(values))
    rows["tick_time"] = chance.permutation(values)
    found = certificate(rows, len(rows), None, 1e-3)["histograms"]["tick_us"]
    inside = np.clip(values[np.isfinite(values)] * 1e6, 0.0, BIN_EDGES_US[-1])
    assert found == np.histogram(inside, BIN_EDGES_US)[0].tolist()
