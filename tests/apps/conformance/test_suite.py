"""The whole suite on renderers of which the answer is known, and on the elements."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from apps.conformance import cells, evaluate, metrics, motions
from apps.conformance.cells import CELLS, FIRM, RAW, REFERENCE, Cell
from apps.conformance.kernels import ROW
from apps.conformance.limits import METRICS, passes, worst
from apps.conformance.motions import Motion
from apps.conformance.peers import PEERS
from apps.conformance.plant import run_python
from apps.conformance.report import describe, ranked, reference_row, result
from apps.conformance.subjects import ElementSubject, choose, load_renderer
from apps.conformance.suite import judge, judge_all
from haptics import Coulomb, MasslessImpedance
from haptics.device import Causality
from haptics.elements.tables import MODELS
from haptics.errors import ConfigurationError
from haptics.records import Rows

Array = NDArray[np.float64]

VISCOSITY = 20.0


def viscous(_: float) -> Any:
    return lambda _, velocity: -VISCOSITY * velocity


@dataclass(frozen=True)
class Oracle:
    """Knows the true velocity and answers with exactly 4 N; holds still below."""

    name: str = "oracle"
    causality: Causality = Causality.IMPEDANCE

    def run(self, cell: Cell, motion: Motion) -> Rows:
        rows = np.zeros(motion.ticks(cell.rate), ROW)
        t = np.arange(len(rows)) / cell.rate
        shape = motion.shape(t)
        if isinstance(shape, tuple):
            rows["position"], rows["velocity"] = shape
            speed = np.hypot(*rows["velocity"].T)[:, None]
            rows["force"] = -4.0 * rows["velocity"] / np.where(speed > 0.0, speed, 1.0)
        else:
            size = np.hypot(*shape.T)
            rows["force"] = -shape * np.minimum(1.0, 4.0 / np.maximum(size, 1e-9))[:, None]
            rows["position"] = np.outer(np.cumsum(np.where(size > 4.0, 1e-4, 0.0)), motions.PUSH_DIRECTION)
        rows["felt"] = rows["force"]
        return rows


@pytest.mark.parametrize("cell", [REFERENCE, CELLS[-1]], ids=lambda cell: cell.name)
def test_exactly_four_newtons_score_exactly_nothing(cell: Cell) -> None:
    row = judge(Oracle(), cell)
    for metric in METRICS:
        tolerance = 1e-3 if metric.key == "breakaway_error" else 1e-6  # the ramp goes on while the mean is taken
        assert row[metric.key] == pytest.approx(0.0, abs=tolerance), metric.key
    assert passes(row)


@pytest.mark.parametrize("grip", [cells.LIGHT, FIRM], ids=lambda grip: grip.name)
def test_a_viscous_renderer_scores_as_viscous_damping_must(grip: cells.Grip) -> None:
    (row,) = evaluate(viscous, "viscous", [Cell(grip, 5e-6, 1000.0)])
    total = VISCOSITY + cells.HANDLE_DAMPING + grip.damping
    assert row["hold_drift_um_s"] == pytest.approx(1e6 * motions.HOLD_FORCE / total, rel=1e-3)
    assert row["fluctuation_drift_um"] == pytest.approx(9e6 * motions.HOLD_FORCE / total, rel=1e-2)
    assert row["sliding_error"] == pytest.approx(VISCOSITY * 0.02 / 4.0 - 1.0, rel=1e-2)
    assert row["isotropy"] < 0.01
    assert row["direction_error_deg_p95"] < 3.0
    until_slip = math.sqrt(2.0 * total * 2e-3 / motions.RAMP_RATE)
    assert row["breakaway_error"] == pytest.approx(
        motions.RAMP_RATE * until_slip * VISCOSITY / total / 4.0 - 1.0, abs=0.02
    )


def test_no_renderer_at_all_fails_everything_but_does_not_buzz() -> None:
    (row,) = evaluate(lambda _: lambda _, __: (0.0, 0.0), "nothing", [REFERENCE])
    assert row["sliding_error"] == pytest.approx(-1.0)
    assert row["isotropy"] is None
    assert row["direction_error_deg_p95"] == pytest.approx(90.0)
    assert row["buzz_n_rms"] == 0.0
    assert not passes(row)


def test_a_renderer_that_breaks_down_has_a_row_without_values() -> None:
    rows = evaluate(lambda _: lambda _, __: (math.nan, 0.0), "broken", [REFERENCE])
    assert all(rows[0][metric.key] is None for metric in METRICS)
    assert json.loads(json.dumps(result(rows), allow_nan=False))["verdicts"]["broken"]["passed"] is False
    assert "none" in describe(rows)


def test_numbers_without_end_are_no_values() -> None:
    @dataclass(frozen=True)
    class Runaway(Oracle):
        def run(self, cell: Cell, motion: Motion) -> Rows:
            rows = super().run(cell, motion)
            rows["position"] = np.outer(np.linspace(0.0, 1e308, len(rows)), (1.0, -1.0))
            rows["felt"] = np.outer(np.arange(len(rows)) % 2, (1e200, 1e200))
            rows["force"][-1] = np.nan
            return rows

    row = judge(Runaway(), REFERENCE)
    assert row["buzz_n_rms"] is None
    assert row["sliding_error"] is None
    json.dumps(row, allow_nan=False)


def test_a_renderer_that_fails_is_named_with_the_place() -> None:
    def make(_: float) -> Any:
        return lambda _, __: 1.0 / 0.0

    with pytest.raises(ConfigurationError, match=r"renderer mine failed: ZeroDivisionError.*test_suite\.py"):
        evaluate(make, "mine", [REFERENCE])


@pytest.mark.parametrize("model", ["A", "B", "C", "D"])
def test_the_suite_is_deterministic(model: str) -> None:
    (subject,) = choose([model])
    assert judge(subject, REFERENCE) == judge(subject, REFERENCE)


FAILURES = {
    "lugre": ("fluctuation_drift_um", 10_000.0),  # carried away by a load below the break-away force
    "dahl": ("fluctuation_drift_um", 10_000.0),
    "viscous-ramp-impedance": ("hold_drift_um_s", 1000.0),  # at rest only without a load
    "viscous-ramp-admittance": ("hold_drift_um_s", 1000.0),
    "explicit-coulomb-impedance": ("buzz_n_rms", 1.0),  # changes its sign with every sample
    "karnopp-impedance": ("sliding_std", 0.05),  # sticks and slips where it should slide
}


@pytest.mark.parametrize("name", FAILURES)
def test_the_classic_models_fail_as_they_are_known_to(name: str) -> None:
    (subject,) = choose([name])
    key, at_least = FAILURES[name]
    assert judge(subject, REFERENCE)[key] > at_least


def test_every_model_of_the_project_is_judged() -> None:
    chosen = choose([])
    assert {(subject.model, subject.causality) for subject in chosen if isinstance(subject, ElementSubject)} == {
        (model, causality) for model, forms in MODELS.items() for causality in forms
    }
    assert len({subject.name for subject in chosen}) == len(chosen)
    assert [subject.name for subject in choose(["karnopp"])] == ["karnopp-admittance", "karnopp-impedance"]


def test_the_sign_is_the_explicit_coulomb_model() -> None:
    """Two independent ways to the same formula."""
    (peer, own) = (judge(subject, REFERENCE) for subject in choose(["peer-sign", "explicit-coulomb-impedance"]))
    assert all(peer[metric.key] == pytest.approx(own[metric.key], rel=1e-6) for metric in METRICS)


def test_model_c_keeps_every_limit_with_a_usual_encoder() -> None:
    (subject,) = choose(["C"])
    row = judge(subject, REFERENCE)
    assert {metric.key: row[metric.key] for metric in METRICS if metric.excess(row) > 1.0} == {}


@pytest.mark.parametrize("cell", CELLS, ids=lambda cell: cell.name)
def test_model_c_does_not_creep_in_any_cell(cell: Cell) -> None:
    (subject,) = choose(["C"])
    rows = subject.run(cell, motions.HOLD)
    assert rows is not None
    assert metrics.hold_drift(rows[round(motions.SETTLING * cell.rate) :], cell.rate) < 1e-6


@pytest.mark.parametrize(
    "motion", [motions.BREAKAWAY, motions.SLIDES[0.2, motions.DIRECTIONS[1]]], ids=lambda m: m.name
)
def test_the_proxy_of_others_is_model_c_without_damping(motion: Motion) -> None:
    """On the increments of the position; an estimated velocity has other ones."""
    element, last = MasslessImpedance(Coulomb(4.0), 6000.0, 0.0), np.zeros(2)

    def ours(position: Array, _: Array) -> Array:
        velocity = (position - last) / 1e-3
        last[:] = position
        return -element.step(velocity)

    cell = Cell(FIRM, 5e-6, 1000.0)
    first, second = run_python(ours, cell, motion), run_python(PEERS["peer-proxy"](1e-3), cell, motion)
    assert first is not None
    assert second is not None
    np.testing.assert_allclose(second["force"], first["force"], atol=1e-6)


def test_buzz_is_looked_for_while_sliding_too() -> None:
    """A renderer that is quiet at rest and shakes across the motion while it slides."""

    @dataclass(frozen=True)
    class Shaking(Oracle):
        def run(self, cell: Cell, motion: Motion) -> Rows:
            rows = super().run(cell, motion)
            v = rows["velocity"]
            sign = np.where(np.arange(len(rows)) % 2, 1.0, -1.0)[:, None]
            rows["felt"] = rows["felt"] + 0.3 * sign * (np.hypot(*v.T) > 0.0)[:, None] * np.array((0.6, -0.8))
            return rows

    row = judge(Shaking(), REFERENCE)
    assert row["buzz_n_rms"] == pytest.approx(0.0, abs=1e-6)
    assert row["buzz_sliding_n_rms"] == pytest.approx(0.3, rel=1e-3)
    assert passes(row)  # shown, not judged
    assert worst(METRICS[-1], [row, judge(Oracle(), REFERENCE)]) == row["buzz_sliding_n_rms"]


def test_the_velocity_of_a_cell_is_the_one_that_is_used() -> None:
    (subject,) = choose(["C"])
    usual, raw = (subject.run(cell, motions.BREAKAWAY) for cell in (REFERENCE, RAW))
    assert usual is not None
    assert raw is not None
    assert not np.array_equal(usual["force"], raw["force"])
    again = subject.run(replace(RAW, velocity="tracker"), motions.BREAKAWAY)
    np.testing.assert_array_equal(usual, again)
    assert RAW not in CELLS


def test_the_sign_creeps_and_the_stick_slip_spring_renders_half() -> None:
    sign, spring = choose(["peer-sign", "peer-chai3d-stick-slip"])
    assert judge(sign, REFERENCE)["hold_drift_um_s"] > 1000.0
    assert judge(spring, REFERENCE)["sliding_error"] < -0.4


def test_the_ranking_puts_the_better_first() -> None:
    rows = [*evaluate(viscous, "viscous", [REFERENCE]), *judge_all(choose(["A"]), [REFERENCE])]
    assert [name for name, _ in ranked(rows)] == ["A", "viscous"]
    assert reference_row(rows) is rows[0]


def test_an_unknown_element_is_refused_with_the_nearest() -> None:
    with pytest.raises(ConfigurationError, match="karnop"):
        choose(["karnop"])


@pytest.mark.parametrize("place", ["nowhere.py:make", "nowhere.py", "", ":make"])
def test_a_renderer_that_is_not_there_is_refused(place: str) -> None:
    with pytest.raises(ConfigurationError, match=r"FILE\.py:FUNCTION"):
        load_renderer(place)


@pytest.mark.parametrize("text", ["make = 3\n", "def other(period): ...\n", "1 / 0\n", "def make(:\n"])
def test_a_file_without_the_renderer_is_refused(tmp_path: Any, text: str) -> None:
    file = tmp_path / "mine.py"
    file.write_text(text)
    with pytest.raises(ConfigurationError, match=r"--renderer"):
        load_renderer(f"{file}:make")
