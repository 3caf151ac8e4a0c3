"""What a wish from the window makes of the present session."""

import os
import signal
from argparse import Namespace
from multiprocessing import Pipe
from pathlib import Path
from typing import Any

import pytest

from apps.commands import _windows
from apps.front_ends.messages import Captioned, Close, Preparing, SessionEnded, Start, Stop
from apps.session import application
from apps.session.application import Application, _retabled, _signals
from apps.session.outcome import Outcome
from apps.settings.about import hands_to_choose
from apps.settings.config import SessionConfig, complete, gather
from apps.stage import launch as stage_launch
from apps.view import launch
from haptics.errors import ConfigurationError
from tests.apps.session.persons import Person


def config_of(*assignments: str) -> SessionConfig:
    return complete(gather(None, assignments))


def after(config: SessionConfig, device: str, model: str, hand: str) -> SessionConfig:
    return complete(_retabled(config, Start(device, model, hand)))


def test_starting_again_repeats_the_session() -> None:
    config = config_of("session.model=C", "law.force=2.5", "device.mass=0.3", "envelope.max_force=8", "session.seed=4")
    assert after(config, "virtual-joystick", "C", "minimum-jerk") == config


def test_another_model_of_the_same_device_keeps_the_law() -> None:
    config = after(config_of("session.model=C", "law.force=2.5"), "virtual-joystick", "B", "minimum-jerk")
    assert config.law["force"] == 2.5
    assert config.element == {"mass": 0.1, "stiffness": 6000.0, "damping": 10.0}


def test_another_device_begins_with_its_own_values() -> None:
    present = config_of("session.model=C", "law.force=2.5", "device.mass=0.3", "envelope.max_force=8")
    config = after(present, "virtual-arm", "A", "minimum-jerk")
    assert config.law == {"name": "coulomb", "force": 6.0}
    assert config.envelope == {}
    assert "mass" not in config.device_settings


def test_the_present_hand_keeps_its_settings_and_can_be_chosen(tmp_path: Path) -> None:
    path = tmp_path / "path.csv"
    path.write_text("t,x,y\n0,0,0\n1,0.01,0\n2,0,0\n")
    present = config_of("hand.name=recorded", f"hand.file={path}")
    assert after(present, "virtual-joystick", "B", "recorded").device_settings["hand"]["file"] == str(path)
    assert after(present, "virtual-joystick", "B", "minimum-jerk").hand == "minimum-jerk"
    assert "recorded" in hands_to_choose("recorded")
    assert "recorded" not in hands_to_choose("mouse")


def test_a_pair_that_does_not_fit_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="Possible"):
        after(config_of("session.model=C"), "virtual-arm", "C", "minimum-jerk")


def test_the_mouse_needs_a_window() -> None:
    tables: dict[str, dict[str, Any]] = {"hand": {"name": "mouse"}}
    with pytest.raises(ConfigurationError, match="live view"):
        Application(tables).run()


KEY: dict[str, dict[str, Any]] = {"envelope": {"dead_man": "key"}}


def test_a_key_to_be_held_needs_a_window_before_anything_is_made(tmp_path: Path) -> None:
    tables = {**KEY, "session": {"record": str(tmp_path / "recordings")}}
    with pytest.raises(ConfigurationError, match=r"space bar of the live view .* leave --headless out, or choose"):
        Application(tables).run()
    assert list(tmp_path.iterdir()) == []


def test_a_key_to_be_held_needs_a_display(tmp_path: Path) -> None:
    tables = {**KEY, "session": {"record": str(tmp_path / "recordings")}}
    with pytest.raises(ConfigurationError, match="there is none: no display; start it where a window can be shown"):
        Application(tables, obstacle="no display").run()
    assert list(tmp_path.iterdir()) == []


def wanted(views: int = 1, stage: bool = False, headless: bool = False) -> Namespace:
    return Namespace(headless=headless, views=views, stage=stage, theme="dark")


def test_several_windows_need_a_display(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigurationError, match=r"--views 2: no window can be shown \(--headless was given\); leave"):
        _windows(wanted(2, headless=True))
    monkeypatch.setattr(launch, "why_no_window", lambda: "no display")
    with pytest.raises(ConfigurationError, match=r"--views 3: no window can be shown \(no display\)"):
        _windows(wanted(3))
    assert _windows(wanted()) == ([], "no display")
    monkeypatch.setattr(launch, "why_no_window", lambda: None)
    assert len(_windows(wanted(3))[0]) == 3


def test_the_stage_comes_beside_the_view_alone_or_not_and_then_the_person_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(launch, "why_no_window", lambda: None)
    monkeypatch.setattr(stage_launch, "why_no_stage", lambda: None)
    kinds = [window.func for window in _windows(wanted(stage=True))[0]]  # type: ignore[attr-defined]
    assert kinds == [launch.ViewLink, stage_launch.StageLink]
    alone, obstacle = _windows(wanted(0, stage=True))
    assert [window.func for window in alone] == [stage_launch.StageLink]  # type: ignore[attr-defined]
    assert not obstacle
    monkeypatch.setattr(launch, "why_no_window", lambda: "Qt cannot be loaded")
    alone, obstacle = _windows(wanted(stage=True))
    assert [window.func for window in alone] == [stage_launch.StageLink]  # type: ignore[attr-defined]
    assert obstacle == "Qt cannot be loaded"
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(stage_launch, "why_no_stage", lambda: "no OpenGL")
    assert _windows(wanted(stage=True)) == ([], "Qt cannot be loaded")
    assert capsys.readouterr().err == "no stage: no OpenGL.\n"
    assert _windows(wanted(0, stage=True)) == ([], "--views 0 was given, and there is no stage (no OpenGL)")
    assert _windows(wanted(stage=True, headless=True)) == ([], "--headless was given")
    assert "no stage: --headless was given" in capsys.readouterr().err
    with pytest.raises(ConfigurationError, match="--views 0: leaves no window; add --stage"):
        _windows(wanted(0))


def test_who_does_not_wait_for_the_window_is_interrupted() -> None:
    app = Application({})
    with pytest.raises(ConfigurationError, match="no window could be opened"):
        app._require_window(config_of("envelope.dead_man=key"))
    app._interrupt()
    with pytest.raises(KeyboardInterrupt):
        app._require_window(config_of("envelope.dead_man=key"))


def test_another_law_begins_with_its_own_numbers_and_the_present_one_keeps_its() -> None:
    present = config_of("session.model=C", "law.force=2.5")
    for wish, law in (("", present.law), ("coulomb", present.law), ("coulomb-viscous", None)):
        start = Start("virtual-joystick", "C", "minimum-jerk", wish)
        config = complete(_retabled(present, start))
        assert config.law == (law or {"name": "coulomb-viscous", "force": 4.0, "viscosity": 5.0})


class Visitor(Person):
    """Looks on at so many runs, says something after the last tick, or in the middle of one, and leaves."""

    def __init__(self, runs: int, *in_mid_run: Any) -> None:
        super().__init__()
        self.runs, self.in_mid_run, self.pipe = runs, list(in_mid_run), Pipe()

    @property
    def connection(self) -> Any:
        return self.pipe[0]

    def send(self, message: Any) -> None:
        super().send(message)
        self.says += self.in_mid_run if message == Preparing("") else []
        if isinstance(message, SessionEnded):
            self.runs -= 1
            self.says += [] if self.runs else [Close()]


def shown_to(visitor: Visitor, folder: Path, duration: float) -> Outcome:
    tables: dict[str, dict[str, Any]] = {
        "session": {"model": "C", "duration": duration, "record": str(folder / "kept"), "picture": False},
        "device": {"name": "virtual-joystick"},
    }
    again, windows = str(folder / "again"), [lambda: visitor]
    return Application(tables, windows=windows, obstacle="", tell=lambda line: None, caption="look", again=again).run()


def test_a_run_that_is_repeated_goes_on_until_the_person_leaves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(application, "PAUSE", 0.05)
    visitor = Visitor(2)
    outcome = shown_to(visitor, tmp_path, 0.2)
    assert outcome.reason == "completed"
    assert visitor.told.count(Captioned("look")) == 2
    assert [str(folder) for folder in (tmp_path / "kept").iterdir()] == [outcome.summary["recording"]]
    assert len(list((tmp_path / "again").iterdir())) == 1


def test_one_that_was_stopped_is_not_repeated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(application, "LINGER", 0.05)
    visitor = Visitor(9, Stop())
    assert shown_to(visitor, tmp_path, 30.0).reason == "stopped"
    assert visitor.runs == 8
    assert not (tmp_path / "again").exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_request_to_end_and_a_closed_terminal_interrupt_a_run_and_nothing_else(number: signal.Signals) -> None:
    heard: list[int] = []
    asked: list[int] = []
    before = signal.signal(number, lambda which, _: heard.append(which))
    try:
        with _signals(lambda: asked.append(number)):
            os.kill(os.getpid(), number)
        os.kill(os.getpid(), number)
    finally:
        signal.signal(number, before)
    assert (asked, heard) == ([number], [number])
