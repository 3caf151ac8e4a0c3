"""An arm that does not follow its reference: its samples are refused, and the verification knows in which ticks."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from apps.verify.check import verify
from apps.verify.facts import FOLLOWING_ERROR
from apps.verify.findings import OK, VIOLATED, Findings
from tests.apps.verify.forging import Forgery
from tests.apps.verify.runs import Plan, make

PUSHES = [[0.0, 0.0, 0.0], [0.05, 6.0, 3.0], [0.2, 6.0, 3.0], [0.25, -8.0, 0.0], [0.45, -8.0, 0.0], [0.5, 0.0, 0.0]]


def lagging(folder: Path, limit: float | None = None) -> Path:
    """Record a virtual arm that is pushed; it may be so far from its reference [m]."""
    return make(
        folder,
        Plan(
            {
                "session": {"model": "A"},
                "device": {"name": "virtual-arm"},
                "hand": {"name": "scripted-force", "script": PUSHES},
                "law": {"name": "coulomb", "force": 1.0},
                "element": {"mass": 2.0},
                "envelope": {} if limit is None else {"max_following_error": limit},
            }
        ),
    )


@pytest.fixture(scope="module")
def refused(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a recording in which some samples were refused, because the arm was too far from its reference."""
    folder = tmp_path_factory.mktemp("following")
    rows = np.load(lagging(folder / "free") / "ticks.npy")
    off = np.hypot(*(rows["position"][1:] - rows["command"][:-1]).T)
    return lagging(folder / "refused", 0.6 * float(off.max()))


def forged(folder: Path, place: Path) -> Forgery:
    place.mkdir()
    for file in folder.iterdir():
        (place / file.name).write_bytes(file.read_bytes())
    return Forgery(place, np.random.default_rng(3))


def wrong_samples(found: Findings) -> list[str]:
    return [one.words for one in found.violations if one.rule == "sample"]


def test_an_honest_recording_of_an_arm_that_lags_raises_no_alarm(refused: Path) -> None:
    told = json.loads((refused / "recording.json").read_text())
    assert told["flags"].get("FOLLOWING_ERROR", 0) > 0
    run, found = verify(refused)
    assert (found.violations, found.missing, found.verdict) == ([], [], OK)
    assert run.count == len(np.load(refused / "ticks.npy"))


def test_a_refusal_that_is_hidden_is_found(refused: Path, tmp_path: Path) -> None:
    forgery = forged(refused, tmp_path / "hidden")
    k = int(np.flatnonzero(forgery.rows["status"] & FOLLOWING_ERROR)[0])
    forgery.rows["status"][k] &= ~np.uint32(FOLLOWING_ERROR)
    forgery.save()
    found = verify(tmp_path / "hidden")[1]
    assert found.verdict == VIOLATED
    assert any("by the rules it is refused because the arm does not follow" in words for words in wrong_samples(found))


def test_a_refusal_that_was_none_is_found(refused: Path, tmp_path: Path) -> None:
    forgery = forged(refused, tmp_path / "invented")
    forgery.rows["status"][forgery.pick(forgery.steady)] |= np.uint32(FOLLOWING_ERROR)
    forgery.save()
    found = verify(tmp_path / "invented")[1]
    assert any("was refused because the arm does not follow, by the rules" in words for words in wrong_samples(found))


@pytest.mark.parametrize("factor", [0.5, 2.0])
def test_another_limit_than_that_of_the_run_is_found(refused: Path, tmp_path: Path, factor: float) -> None:
    forgery = forged(refused, tmp_path / "limit")
    forgery.metadata["limits"]["max_following_error"] *= factor
    forgery.metadata["configuration"]["envelope"]["max_following_error"] *= factor
    forgery.save()
    found = verify(tmp_path / "limit")[1]
    assert found.verdict == VIOLATED and wrong_samples(found)
