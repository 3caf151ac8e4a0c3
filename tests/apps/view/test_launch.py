"""Whether a window can be shown is found out without risk: Qt aborts the process that cannot reach its display."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("PySide6.QtWidgets", exc_type=ImportError)

from apps.cli import main
from apps.view import launch as view_link
from haptics.device import Causality
from tests.apps.session.test_picture import circle, record


@pytest.fixture(autouse=True)
def dead_display(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DISPLAY", ":4242")
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    monkeypatch.setenv("QT_QPA_PLATFORM", "xcb")


def test_a_display_that_cannot_be_reached_is_an_obstacle() -> None:
    obstacle = view_link.why_no_window()
    assert obstacle is not None
    assert "the display :4242 cannot be used" in obstacle
    assert "haptics doctor" in obstacle


def test_a_display_that_can_be_reached_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QT_QPA_PLATFORM", "offscreen")
    assert view_link.why_no_window() is None


@pytest.mark.parametrize("arguments", [[], ["--json"]])
def test_a_replay_without_a_window_draws_the_picture_and_says_why(
    arguments: list[str], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    recording = record(tmp_path, circle(200), Causality.IMPEDANCE)
    assert main(["replay", str(recording.folder), *arguments]) == 0
    out, err = capfd.readouterr()
    assert "This application failed to start" not in err + out
    if arguments:
        assert Path(json.loads(out)["picture"]).is_file()
    else:
        assert "the display :4242 cannot be used" in " ".join(out.split())
