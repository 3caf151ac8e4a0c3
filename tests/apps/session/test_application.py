"""What a wish from the window makes of the present session."""

from pathlib import Path
from typing import Any

import pytest

from apps.session import application
from apps.session.application import Application, _hands, _retabled
from apps.session.config import SessionConfig, complete, gather
from apps.session.messages import Close, HoldKey, Start
from apps.session.view_link import ViewLink
from haptics.errors import ConfigurationError, DeviceFault


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
    assert "recorded" in _hands("recorded")
    assert "recorded" not in _hands("mouse")


def test_a_pair_that_does_not_fit_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="Possible"):
        after(config_of("session.model=C"), "virtual-arm", "C", "minimum-jerk")


def test_the_mouse_needs_a_window() -> None:
    tables: dict[str, dict[str, Any]] = {"hand": {"name": "mouse"}}
    with pytest.raises(ConfigurationError, match="live view"):
        Application(tables, window=False).run()


KEY: dict[str, dict[str, Any]] = {"envelope": {"dead_man": "key"}}


def test_a_key_to_be_held_needs_a_window_before_anything_is_made(tmp_path: Path) -> None:
    tables = {**KEY, "session": {"record": str(tmp_path / "recordings")}}
    with pytest.raises(ConfigurationError, match=r"space bar of the live view .* leave --headless out, or choose"):
        Application(tables, window=False).run()
    assert list(tmp_path.iterdir()) == []


def test_a_key_to_be_held_needs_a_display(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(application, "why_no_window", lambda: "no display")
    tables = {**KEY, "session": {"record": str(tmp_path / "recordings")}}
    with pytest.raises(ConfigurationError, match="there is none: no display; start it where a window can be shown"):
        Application(tables, window=True).run()
    assert list(tmp_path.iterdir()) == []


class Running:
    """What the application sees of a session."""

    def __init__(self, dead_man: str) -> None:
        self.started = {"dead_man": dead_man}
        self.told: list[float | str | None] = []

    def hold_key(self, at: float | None) -> None:
        self.told.append(at)

    def fail(self, fault: DeviceFault) -> None:
        self.told.append(str(fault))

    def stop(self) -> None:
        self.told.append("stop")


class View(ViewLink):
    """A view that has said something, and may have died after that."""

    def __init__(self, *said: object, dies: bool = False) -> None:
        self.open = True
        self._said = said
        self._dies = dies

    def messages(self) -> list[Any]:
        self.open = not self._dies
        return list(self._said)


def attended(session: Running | None, view: View) -> list[str]:
    """Return what the person was told while the application attended to `view`."""
    told: list[str] = []
    app = Application({}, window=False, tell=told.append)
    app._view, app._session = view, session  # type: ignore[assignment]
    app._attend()
    app._attend()
    return told


def test_the_held_key_is_passed_on_to_the_running_session_with_the_time_of_the_view() -> None:
    session, held = Running("key"), HoldKey(True, at=12.5)
    assert attended(session, View(held, HoldKey(False))) == []
    assert session.told == [12.5, None, 12.5, None]
    attended(None, View(held))


def test_a_run_fails_when_the_window_with_its_key_is_gone_and_only_then() -> None:
    session = Running("key")
    assert attended(session, View(dies=True)) == []
    assert session.told == ["the live view is gone, and with it the key that must be held: the run was stopped."]
    for dead_man in ("button", "none"):
        session = Running(dead_man)
        (line,) = attended(session, View(dies=True))
        assert session.told == []
        assert "goes on without it" in line


def test_a_window_that_is_closed_by_hand_is_no_fault() -> None:
    session = Running("key")
    assert attended(session, View(Close(), dies=True)) == []
    assert session.told == ["stop"]


def test_who_does_not_wait_for_the_window_is_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    view = View()
    monkeypatch.setattr(view, "await_window", lambda patience, hurried: False)
    app = Application({}, window=False)
    with pytest.raises(ConfigurationError, match="no window could be opened"):
        app._require_window(view, config_of("envelope.dead_man=key"))
    app._interrupt()
    with pytest.raises(KeyboardInterrupt):
        app._require_window(view, config_of("envelope.dead_man=key"))
