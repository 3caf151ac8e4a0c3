"""The watch over an interval: strokes and their speed, rest in the box, flags, lateness."""

from __future__ import annotations

import numpy as np
import pytest

from apps.experiment.design.settings import ExplorationSettings
from apps.experiment.engine.watch import Watch
from haptics.records import NEUTRAL, Rows, Status

PERIOD = 1e-3


def rows_along(path: np.ndarray, marker: int = 1) -> Rows:
    """Return rows of a handle on a path (n, 2) [m]."""
    rows = np.repeat(NEUTRAL, len(path))
    rows["tick"] = np.arange(len(path))
    rows["time"] = rows["tick"] * PERIOD
    rows["position"] = path
    rows["velocity"] = np.gradient(path, PERIOD, axis=0)
    rows["marker"] = marker
    return rows


def to_and_fro(length: float, duration: float, strokes: int, rest: float = 0.2) -> np.ndarray:
    """Return a path of minimum-jerk strokes with rests before, between and after them."""
    u = np.linspace(0.0, 1.0, round(duration / PERIOD))
    stroke = length * u**3 * (10.0 - 15.0 * u + 6.0 * u**2)
    parts = [np.zeros(round(rest / PERIOD))]
    for number in range(strokes):
        parts += [length - stroke if number % 2 else stroke]
        parts += [np.full(round(rest / PERIOD), parts[-1][-1])]
    x = np.concatenate(parts)
    return np.column_stack((x, np.zeros_like(x)))


def watched(rows: Rows, chunk: int = 7, **settings: object) -> Watch:
    watch = Watch(ExplorationSettings(**{"stroke": 0.03, **settings}), PERIOD, 0)  # type: ignore[arg-type]
    slots = np.concatenate((rows, rows[:1]))  # more than is looked at at once
    for count in [*range(chunk, len(rows), chunk), len(rows)]:
        watch.look(slots, count)
    return watch


@pytest.mark.parametrize("strokes", [0, 1, 2, 5])
@pytest.mark.parametrize("rest", [0.01, 0.2])
def test_strokes_are_counted_with_and_without_rests(strokes: int, rest: float) -> None:
    found = watched(rows_along(to_and_fro(0.06, 0.6, strokes, rest)))
    # after so short a rest the last one has not ended: nobody knows yet whether it goes on
    assert found.strokes == strokes or (rest < 0.02 and found.strokes == strokes - 1)


def test_a_short_way_is_no_stroke() -> None:
    assert watched(rows_along(to_and_fro(0.025, 0.4, 4))).strokes == 0


def test_the_speed_of_a_stroke_is_its_length_by_the_time_of_motion() -> None:
    rows = np.concatenate((to_and_fro(0.06, 0.5, 2), to_and_fro(0.06, 1.2, 2)))
    found = watched(rows_along(rows), rest_speed=1e-3)
    assert found.greatest_speed == pytest.approx(0.06 / 0.5, rel=0.06)
    assert found.least_speed == pytest.approx(0.06 / 1.2, rel=0.06)


def test_it_does_not_matter_how_often_it_looks() -> None:
    rows = rows_along(to_and_fro(0.06, 0.6, 3))
    one, many = watched(rows, len(rows)), watched(rows, 1)
    for name in ("strokes", "least_speed", "greatest_speed", "rested", "rows", "gap"):
        assert getattr(one, name) == getattr(many, name)


def test_a_hand_rests_in_the_box_and_nowhere_else() -> None:
    rows = rows_along(to_and_fro(0.06, 0.6, 1, rest=0.3))
    for centre, at_rest in (((0.06, 0.0), True), ((0.0, 0.0), False), ((0.06, 0.02), False)):
        found = watched(rows, start=centre, reach=0.01).rested * PERIOD
        assert (found > 0.25) is at_rest


def test_flags_lateness_and_gaps_of_its_own_rows_only() -> None:
    rows = rows_along(to_and_fro(0.06, 0.6, 1))
    rows["status"][50] = int(Status.LIMITED | Status.STARTED_LATE)
    rows["period_error"][60] = 0.004
    rows["marker"][100:] = 2
    rows["status"][150] = int(Status.ENERGY)
    watch = Watch(ExplorationSettings(), PERIOD, 0, marker=1)
    watch.look(np.concatenate((rows, rows[:1])), len(rows))
    assert (watch.rows, watch.late, watch.last_tick) == (100, 1, 99)
    assert watch.flags == int(Status.LIMITED | Status.STARTED_LATE)
    assert watch.gap == pytest.approx(0.005)
