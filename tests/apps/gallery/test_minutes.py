"""Every demonstration, headless: what it promises holds, and does not where the physics is another one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from apps.gallery.registry import DEMONSTRATIONS, load
from apps.gallery.report import Result, finish
from apps.gallery.showing import Showing
from tests.apps.gallery.tampering import Tampered
from tests.sampling import sample


def shown(name: str, folder: Path, *, brief: bool = True) -> Result:
    module, showing = load(name), Showing(name, folder / "recordings", brief=brief)
    outcome = module.demonstrate(showing)
    return finish(name, module.TITLE, module.GUIDE, outcome, showing.recordings, folder)


def require(result: Result) -> None:
    assert [row for row in result.outcome.rows if not row.holds] == []
    assert result.outcome.number <= result.outcome.bound
    assert (result.mismatches, result.holds) == (0, True)
    assert result.ticks > 1000 * len(result.recordings)


@pytest.mark.parametrize("name", sample(DEMONSTRATIONS, 1))
def test_what_it_promises_holds(name: str, tmp_path: Path) -> None:
    result = shown(name, tmp_path)
    require(result)
    assert any(row.source == "derived" for row in result.outcome.rows), "nothing here was predicted"
    picture = result.picture.read_bytes()
    assert picture.startswith(b"\x89PNG")
    assert all(film.stat().st_size > 5000 for film in result.films)
    told = result.as_json()
    assert {"number", "unit", "bound", "holds", "recording", "picture"} <= told.keys()
    assert Path(told["recording"]).is_dir()


TAMPERED: dict[str, tuple[str, Any]] = {
    "holds": ("law.force", 3.4),
    "materials": ("device.damping", 3.0),
    "stick-slip": ("law.static_force", 2.8),
    "four-models": ("law.force", 4.1),
    "encoder": ("element.damping", 30.0),
    "delay": ("device.delay", 0.5e-3),
    "arm": ("law.force", 6.5),
}
"""Demonstration to what of its physics is changed without its knowledge."""


@pytest.mark.parametrize("name", sample(TAMPERED, 1))
def test_with_another_physics_it_does_not_hold(name: str, tmp_path: Path) -> None:
    showing = Tampered(name, tmp_path, *TAMPERED[name])
    assert not load(name).demonstrate(showing).holds


def test_every_demonstration_of_a_run_is_tampered_with() -> None:
    assert set(DEMONSTRATIONS) - set(TAMPERED) == {"threshold"}, "its runs are those of an experiment; see below"


def test_an_observer_who_guesses_has_a_threshold_out_of_the_interval(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from apps.experiment.observers.level1 import SimulatedObserver

    monkeypatch.setattr(SimulatedObserver, "probability", lambda self, trial: 0.5)
    outcome = load("threshold").demonstrate(Showing("threshold", tmp_path))
    assert not outcome.holds
