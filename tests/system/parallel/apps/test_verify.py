"""Verification raises no alarm on many honest recordings."""

import itertools
import tracemalloc

import numpy as np
import pytest

from apps.verify import recorded
from apps.verify.check import verify
from apps.verify.findings import INCOMPLETE, OK, VIOLATED
from apps.verify.recorded import Recorded
from tests.apps.verify.forging import WRONGS, assert_honest, copy_of, wrongs
from tests.apps.verify.runs import CLASSICS, classic_plan, make, plan_of
from tests.apps.verify.test_elements import iwan
from tests.apps.verify.test_verify import falsify, honest  # noqa: F401


@pytest.mark.timeout(900)
@pytest.mark.parametrize(("plan", "count"), [(classic_plan, 4 * len(CLASSICS)), (plan_of, 80)], ids=["classic", "any"])
def test_honest_recordings_raise_no_alarm(plan, count, tmp_path):
    for number in range(count):
        run, found = verify(make(tmp_path / str(number), plan(number)))
        assert (found.violations, found.missing, found.verdict) == ([], [], OK)
        assert run.count == len(run.source.rows)


def everything(folder):
    run, found = verify(folder)
    fields = ("verdict", "violations", "missing", "violated_ticks", "violated_markers")
    return {name: getattr(found, name) for name in fields} | {
        "ticks": run.count,
        "residuals": list(found.residuals.items()),
    }


def test_residuals_do_not_depend_on_the_window(honest, tmp_path, monkeypatch):
    classic = [make(tmp_path / str(number), classic_plan(number)) for number in range(len(CLASSICS))]
    folders = [*honest, *classic]
    whole = [everything(folder) for folder in folders]
    for size in (13, 120):
        monkeypatch.setattr(recorded, "WINDOW", size)
        assert [everything(folder) for folder in folders] == whole
    assert max(one["ticks"] for one in whole) > 3 * 120


def test_findings_do_not_depend_on_the_window(honest, tmp_path, monkeypatch):
    verdicts = set()
    for number, name, first in itertools.islice(wrongs(len(WRONGS), len(honest)), 0, None, 2):
        monkeypatch.setattr(recorded, "WINDOW", 50_000)
        falsify(honest, number, name, first, tmp_path / "forged")
        whole = everything(tmp_path / "forged")
        monkeypatch.setattr(recorded, "WINDOW", 47)
        assert everything(tmp_path / "forged") == whole, name
        verdicts.add(whole["verdict"])
    assert verdicts >= {VIOLATED, INCOMPLETE}


def test_memory_does_not_grow_with_the_length(honest, tmp_path, monkeypatch):
    monkeypatch.setattr(recorded, "WINDOW", 2000)

    def small_chunks(self, columns=None, rows=2000, **where):
        return self.table.chunks(columns, rows, **where)

    monkeypatch.setattr(recorded.Recording, "chunks", small_chunks)

    def peak(copies):
        folder = tmp_path / str(copies)
        many = np.tile(copy_of(honest[0], folder).rows, copies)
        many["tick"] = np.arange(len(many))
        many["time"] = many["tick"] / Recorded(folder).metadata["rate_hz"]
        np.save(folder / "ticks.npy", many)
        tracemalloc.start()
        run, _ = verify(folder)
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert run.count == len(many)
        return found

    peak(4)
    assert peak(80) < 1.1 * peak(20)


ISOTROPIC = ("coulomb", "viscous", "stribeck", "gaussian", "dead-zone", "rubber", "closed-form")


@pytest.mark.parametrize("law", [*ISOTROPIC, "elliptic", "asymmetric", "slender", "approximate"])
def test_honest_iwan_recordings_raise_no_alarm(law, tmp_path):
    found = assert_honest(make(tmp_path / "run", iwan(law)))
    assert law not in ISOTROPIC or {"friction force", "displacement", "sliding velocity"} <= set(found.residuals)
