"""A comparison does not depend on the pieces in which recordings are read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from apps.compare.comparison import COMPARED, Comparison, figures
from apps.compare.picture import _thinned
from haptics.recording.recorder import Recorder
from haptics.recording.recording import Recording
from haptics.recording.tick_file import TableInMemory
from haptics.records import ROW, Rows


def made(seed: int, count: int = 1000) -> Rows:
    rng = np.random.default_rng(seed)
    rows = np.zeros(count, ROW)
    rows["tick"] = np.cumsum(rng.choice([1, 1, 3], count))
    for name in COMPARED:
        rows[name] = rng.normal(size=(count, 2))
    rows["sticking"] = rng.random(count) < 0.4
    for name in ("period_error", "tick_time", "sample_age", "injected_energy"):
        rows[name] = rng.random(count)
    rows["force"][::7], rows["friction_force"][5] = np.nan, np.inf
    return rows


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Recording, Recording]:
    found = []
    for seed in (1, 2):
        recorder = Recorder(tmp_path / str(seed), {"rate_hz": 1000.0, "device": {"causality": "impedance"}})
        recorder.close({}, complete=True)
        recording = Recording(recorder.folder)
        recording.rows = made(seed)
        found.append(recording)
    return found[0], found[1]


def read_in_pieces(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    whole = TableInMemory.chunks

    def chunks(self: TableInMemory, columns: Any = None, rows: int = size, **where: Any) -> Iterator[Rows]:
        return whole(self, columns, min(rows, size), **where)

    monkeypatch.setattr(TableInMemory, "chunks", chunks)


@pytest.mark.parametrize("size", [1, 7, 400])
def test_result_does_not_depend_on_the_pieces(
    pair: tuple[Recording, Recording], monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    whole = Comparison.of(*pair)
    read_in_pieces(monkeypatch, size)
    pieces = Comparison.of(*pair)
    assert pieces.ticks == whole.ticks > 100
    assert [one[:2] for one in pieces.figures] == [one[:2] for one in whole.figures]
    for one, other in zip(pieces.figures, whole.figures, strict=True):
        assert one[2:] == pytest.approx(other[2:], rel=1e-13)
    for one, other in zip(pieces.differences, whole.differences, strict=True):
        assert (one.column, one.first_tick, one.largest) == (other.column, other.first_tick, other.largest)
        assert one.rms == pytest.approx(other.rms, rel=1e-13)


def test_figures_are_those_of_all_rows(pair: tuple[Recording, Recording], monkeypatch: pytest.MonkeyPatch) -> None:
    read_in_pieces(monkeypatch, 90)
    found = {name: a for name, _, a, _ in figures(*pair)}
    rows = made(1)
    force = np.hypot(*rows["friction_force"].T)
    sliding = force[(rows["sticking"] == 0) & np.isfinite(force)]
    assert found["ticks"] == 1000
    assert found["path of the end effector"] == pytest.approx(np.hypot(*np.diff(rows["position"], axis=0).T).sum())
    assert found["friction while sliding, mean"] == pytest.approx(sliding.mean())
    assert found["friction while sliding, std"] == pytest.approx(sliding.std())
    assert found["friction, largest"] == force[np.isfinite(force)].max()
    assert found["share of sticking"] == np.mean(rows["sticking"])
    assert found["start delay, p99"] == pytest.approx(1e6 * np.percentile(rows["period_error"], 99.0), rel=1e-12)


def test_differences_are_those_of_the_ticks_that_both_have(
    pair: tuple[Recording, Recording], monkeypatch: pytest.MonkeyPatch
) -> None:
    read_in_pieces(monkeypatch, 33)
    _, one, other = np.intersect1d(made(1)["tick"], made(2)["tick"], return_indices=True)
    a, b = made(1)[one]["position"], made(2)[other]["position"]
    found = {row.column: row for row in Comparison.of(*pair).differences}["position"]
    assert found.largest == np.linalg.norm(a - b, axis=1).max()
    assert found.rms == pytest.approx(np.sqrt(np.mean(np.sum((a - b) ** 2, axis=1))))
    assert found.first_tick == made(1)["tick"][one[0]]


def test_rows_whose_tick_goes_back_are_left_out(
    pair: tuple[Recording, Recording], monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = made(1)
    rows["tick"][500] = 3
    pair[0].rows, pair[1].rows = rows, made(1)
    read_in_pieces(monkeypatch, 100)
    assert Comparison.of(*pair).ticks == 999


@pytest.mark.parametrize("size", [13, 1000])
def test_picture_shows_every_so_many_th_row(
    pair: tuple[Recording, Recording], monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    monkeypatch.setattr("apps.compare.picture._MOST_POINTS", 300)
    read_in_pieces(monkeypatch, size)
    np.testing.assert_array_equal(_thinned(pair[0])["position"], made(1)["position"][::4])
