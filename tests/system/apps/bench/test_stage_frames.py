"""The benchmark of the stage: frames are drawn and counted, on a virtual screen; without one it is said in words."""

from __future__ import annotations

import multiprocessing
import time

import pytest

from apps.bench.live import frames, stage
from apps.bench.live.beside import Together, View, show_stage
from apps.bench.outcome import CannotMeasure
from apps.bench.stop import Stop
from tests.apps.screen import WHY_NOT, Screen
from tests.apps.stage.driving import started

pytestmark = pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT)


@pytest.fixture
def shown(screen: Screen, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DISPLAY", screen.environment["DISPLAY"])


@pytest.mark.usefixtures("shown")
def test_a_frame_is_measured_beside_a_window_that_is_cleared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stage, "ROUNDS", 2)
    outcome = stage.run(lambda share, words: None)
    found = outcome.result
    assert found["shapes"] + found["standing_shapes"] <= 100
    assert found["shapes"] > 20
    assert 0 < found["frame_ms"]["p50"] <= found["frame_ms"]["p95"]
    assert found["ratio_p50"] > 1.0
    assert found["within_budget"] == (found["frame_ms"]["p95"] < stage.BUDGET)
    assert "ratio" in outcome.text


def test_without_a_display_it_cannot_be_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DISPLAY", ":4242")
    with pytest.raises(CannotMeasure, match="the stage cannot be shown"):
        stage.run(lambda share, words: None)


@pytest.mark.usefixtures("shown")
def test_a_stage_draws_beside_what_is_measured() -> None:
    about = {
        name: value
        for name, value in vars(started("none")).items()  # type: ignore[arg-type]
        if name not in ("trace", "parameters", "choices", "hands")
    }
    with Stop() as stop, Together(View(frames.motion(2000), about, stop, show_stage)) as windows:
        before = windows.frames
        time.sleep(0.5)
        assert windows.frames > before
        assert len(multiprocessing.active_children()) == 1
    assert multiprocessing.active_children() == []
