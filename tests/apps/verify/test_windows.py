"""A verification finds the same whatever the windows are in which it looks at the ticks, in constant memory."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from apps.verify import recorded
from apps.verify.certificate import _SHARES, _Values
from apps.verify.check import verify
from apps.verify.findings import INCOMPLETE, VIOLATED, Findings
from apps.verify.recorded import Order, Recorded
from haptics.recording.recording import METADATA, Recording
from haptics.records import ROW, Status
from tests.apps.verify import wrongs_of_contacts, wrongs_of_envelopes, wrongs_of_records  # noqa: F401
from tests.apps.verify.forging import wrongs
from tests.apps.verify.runs import CLASSICS, classic_plan, make, plan_of
from tests.apps.verify.test_verify import A_FEW, forged


def everything(folder: Path) -> dict[str, Any]:
    run, found = verify(folder)
    return {
        "ticks": run.count,
        "verdict": found.verdict,
        "violations": found.violations,
        "missing": found.missing,
        "residuals": list(found.residuals.items()),
        "violated": (found.violated_ticks, found.violated_markers),
    }


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("honest")
    return [make(folder / str(number), plan_of(number)) for number in A_FEW]


@pytest.mark.parametrize("size", [13, 120])
def test_honest_recordings_give_the_same_residuals(
    honest: list[Path], monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    whole = [everything(folder) for folder in honest]
    monkeypatch.setattr(recorded, "WINDOW", size)
    assert [everything(folder) for folder in honest] == whole
    assert max(one["ticks"] for one in whole) > 3 * size


def test_classic_models_give_the_same_residuals(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folders = [make(tmp_path / str(number), classic_plan(number)) for number in range(len(CLASSICS))]
    whole = [everything(folder) for folder in folders]
    monkeypatch.setattr(recorded, "WINDOW", 29)
    assert [everything(folder) for folder in folders] == whole


def test_wrongs_give_the_same_findings(honest: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    verdicts = set()
    for number, name, first in wrongs(60, len(honest)):
        monkeypatch.setattr(recorded, "WINDOW", 50_000)
        forged(honest, number, name, first, tmp_path / "forged")
        whole = everything(tmp_path / "forged")
        monkeypatch.setattr(recorded, "WINDOW", 47)
        assert everything(tmp_path / "forged") == whole, name
        verdicts.add(whole["verdict"])
    assert verdicts >= {VIOLATED, INCOMPLETE}


def test_finding_counts_the_ticks_of_all_windows(
    honest: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recording = Recording(honest[0])
    rows = recording.read()
    rows["time"][::50] += 1e-6
    rows["marker"][100:] = 7
    folder = tmp_path / "forged"
    folder.mkdir()
    for path in recording.folder.iterdir():
        (folder / path.name).write_bytes(path.read_bytes())
    np.save(folder / "ticks.npy", rows)
    monkeypatch.setattr(recorded, "WINDOW", 60)
    _, found = verify(folder)
    count = len(rows[::50])
    (time,) = (one for one in found.violations if one.rule == "time")
    assert (time.tick, time.words) == (
        int(rows["tick"][0]),
        f"the time is not the number of the tick times the period ({count} ticks)",
    )
    assert (found.violated_ticks, found.violated_markers) == (count, {7})


def test_ticks_that_are_only_looked_back_to_are_not_counted_again() -> None:
    class Looking:
        tick, skip = np.arange(10, 20), 4

        def column(self, name: str) -> np.ndarray:
            return np.zeros(10, int)

    found, window = Findings(), Looking()
    found.look_at(window)  # type: ignore[arg-type]
    found.where("rule", window.tick, np.ones(10, bool), "all")
    found.where("rule", np.array([12]), np.array([True]), "another array")
    found.look_at(None)
    assert [(one.tick, one.words) for one in found.violations] == [(14, "all (6 ticks)"), (12, "another array")]
    assert found.violated_ticks == 7


@pytest.mark.parametrize("size", [1, 5, 40])
@pytest.mark.parametrize(("flag", "gap", "tick"), [(0, 20, 23), (int(Status.AFTER_SKIP), 30, 5)])
def test_order_of_ticks_does_not_depend_on_the_pieces(size: int, flag: int, gap: int, tick: int) -> None:
    rows = np.zeros(40, ROW)
    rows["tick"] = np.arange(40)
    rows["tick"][20:] += 3
    rows["tick"][30], rows["status"][20] = 5, flag

    class Source:
        def chunks(self, columns: Any) -> Any:
            return (rows[start : start + size] for start in range(0, 40, size))

    found = Order.of(Source())  # type: ignore[arg-type]
    assert (found.gap, found.gap_tick, found.back, found.last) == (gap, tick, (32, 5), 42)


# --- quantiles ----------------------------------------------------------------------------------------------------


class _Source:
    """Stands for a recording of one column."""

    def __init__(self, values: np.ndarray) -> None:
        self.rows = np.zeros(len(values), [("tick_time", "f8")])
        self.rows["tick_time"] = values

    @property
    def source(self) -> _Source:
        return self

    def chunks(self, columns: Any) -> Any:
        return iter(np.array_split(self.rows, 7))


rng = np.random.default_rng(5)
DISTRIBUTIONS = {
    "nanoseconds": rng.gamma(2.0, 1e4, 30_000).astype(int) * 1e-9,
    "continuous": rng.normal(2e-5, 1e-5, 30_000),
    "all equal": np.full(5000, 3e-6),
    "two": np.repeat([1e-6, 2e-6], [2500, 2501]),
    "with gaps": np.where(rng.random(9000) < 0.1, np.nan, rng.random(9000)),
    "one": np.array([4e-6]),
    "negative": -rng.random(5000),
}


@pytest.mark.parametrize("most", [10, 1 << 18])
@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_quantiles_are_exact(name: str, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """With few values that may be kept they are found by passes over the rows."""
    monkeypatch.setattr(_Values, "MOST", most)
    source, values = _Source(DISTRIBUTIONS[name]), _Values("tick_time")
    for rows in source.chunks(None):
        values.take(rows["tick_time"] * 1e6)
    values.finish(source)  # type: ignore[arg-type]
    kept = DISTRIBUTIONS[name][np.isfinite(DISTRIBUTIONS[name])] * 1e6
    expected = np.quantile(kept, list(_SHARES.values()))
    np.testing.assert_allclose(list(values.quantiles(more=True).values()), expected, rtol=1e-14)
    assert sum(values.histogram()) == len(kept)


def test_resolution_is_believed_only_where_there_are_many_values(
    honest: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "forged"
    folder.mkdir()
    for path in honest[0].iterdir():
        (folder / path.name).write_bytes(path.read_bytes())
    told = json.loads((folder / METADATA).read_text())
    told["certificate"]["period_error_us"]["p50"] += 1.0
    told["certificate"]["resolution_us"] = {"period_error_us": 5.0}
    (folder / METADATA).write_text(json.dumps(told))
    assert verify(folder)[1].verdict == VIOLATED
    monkeypatch.setattr(_Values, "TOGETHER", 2)
    assert verify(folder)[1].verdict == "ok"
    told["certificate"]["resolution_us"] = {"period_error_us": 1e9}
    (folder / METADATA).write_text(json.dumps(told))
    assert verify(folder)[1].verdict == VIOLATED
    told["certificate"]["resolution_us"] = ["period_error_us"]
    (folder / METADATA).write_text(json.dumps(told))
    assert verify(folder)[1].verdict == VIOLATED


# --- memory -------------------------------------------------------------------------------------------------------


def test_memory_does_not_grow_with_the_length(
    honest: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recorded, "WINDOW", 2000)
    monkeypatch.setattr(recorded.Recording, "chunks", _small_chunks)
    rows = Recording(honest[0]).read()

    def peak(copies: int) -> int:
        folder = tmp_path / str(copies)
        folder.mkdir()
        for path in honest[0].iterdir():
            (folder / path.name).write_bytes(path.read_bytes())
        many = np.tile(rows, copies)
        many["tick"] = np.arange(len(many))
        many["time"] = many["tick"] / Recorded.open(folder).metadata["rate_hz"]
        np.save(folder / "ticks.npy", many)
        tracemalloc.start()
        run, _ = verify(folder)
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert run.count == len(many)
        return found

    peak(4)
    assert peak(80) < 1.1 * peak(20)


def _small_chunks(self: Recording, columns: Any = None, rows: int = 2000, **where: Any) -> Any:
    return self.table.chunks(columns, rows, **where)
