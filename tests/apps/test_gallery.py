"""The demonstrations of ``haptics demo``: command, films, and whether they hold."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image

from apps import cli
from apps.experiment.observers import SimulatedObserver
from apps.gallery import command
from apps.gallery.command import DEMONSTRATIONS, load
from apps.gallery.report import HEIGHT, LENGTH, PER_SECOND, WIDTH, Film, finish, write_film
from apps.gallery.showing import Guide, Outcome, Scene, Showing
from apps.reproduce.outcome import Row
from haptics.errors import ConfigurationError
from tests.apps.session.test_picture import circle

# --- command ----------------------------------------------------------------------------------------------------------


def outcome(number, rows=()):
    return Outcome(number, 2.0, "%", "off by", rows, lambda figure: None, [Scene("moving", circle(50))])


def test_list_names_every_demonstration(capsys):
    assert cli.main(["demo", "--list", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)["demonstrations"]
    assert [one["name"] for one in listed] == list(DEMONSTRATIONS)
    assert all(one["title"] and one["see"] for one in listed)


@pytest.mark.parametrize(
    ("words", "message"),
    [(["hold"], "'hold'"), (["holds", "--duration", "3"], "--duration"), (["holds", "--seed", "3"], "--seed")],
)
def test_invalid_arguments_are_refused(words, message, capsys):
    assert cli.main(["demo", *words, "--headless"]) == 2
    assert message in capsys.readouterr().err


def test_command_reports_the_result(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("apps.gallery.showing.Showing.brief", True)
    words = ["demo", "delay", "--headless", "--out", str(tmp_path / "out"), "--record", str(tmp_path / "recordings")]
    assert cli.main([*words, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["holds"], told["mismatches"], told["unit"]) == (True, 0, "%")
    assert told["number"] <= told["bound"] == 10.0
    assert Path(told["picture"]) == tmp_path / "out" / "delay.png"
    assert cli.main(["replay", told["recording"], "--verify"]) == 0


def test_demonstration_holds_within_its_bound_and_with_all_its_rows():
    assert outcome(1.9).holds
    assert not outcome(3.0).holds
    assert not outcome(float("nan")).holds
    assert not outcome(1.0, (Row("mass", 1.0, 1.2, 0.1),)).holds


def test_demonstration_that_does_not_hold_fails_the_command(tmp_path, monkeypatch):
    def demonstrate(showing):
        showing.record_offline(
            {"session": {"model": "C", "duration": 0.05}, "device": {"name": "virtual-joystick"}}, "shown"
        )
        return outcome(3.0)

    module = SimpleNamespace(TITLE="it does not", GUIDE=Guide("do.", "feel.", "see."), demonstrate=demonstrate)
    monkeypatch.setattr(command, "load", lambda name: module)
    options = SimpleNamespace(
        name="holds", duration=None, seed=None, out=tmp_path, record=str(tmp_path / "recordings"), clock=None
    )
    answer = command.run(options, (), (), "")
    assert (answer.status, answer.result["holds"]) == (1, False)
    assert "holds" in answer.error
    assert "NO" in answer.text


# --- films ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("duration", "speed"), [(2.0, 1.0), (60.0, 60.0 / LENGTH)])
def test_film_of_a_long_run_is_accelerated(duration, speed):
    film = Film("title", "foot", [Scene("one", circle(round(1000 * duration)))])
    assert film.speed == pytest.approx(speed, rel=0.01)
    assert film.count == pytest.approx(PER_SECOND * min(duration, LENGTH), abs=1)


def test_film_shows_the_motion(tmp_path):
    scenes = [Scene("one", circle(1000)), Scene("two", circle(1000))]
    (path,) = write_film(Film("title", "foot", scenes), tmp_path / "film")
    with Image.open(path) as image:
        assert (image.size, image.n_frames) == ((WIDTH, HEIGHT), PER_SECOND)
        frames = []
        for number in (1, PER_SECOND - 1):
            image.seek(number)
            frames.append(np.asarray(image.convert("RGB"), float))
    assert np.abs(frames[0] - frames[1]).max() > 100.0


def install_ffmpeg(folder, script, monkeypatch):
    program = folder / "ffmpeg"
    program.write_text(f"#!/bin/sh\n{script}", encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder), prepend=":")


def test_ffmpeg_receives_every_frame_and_its_error_is_reported(tmp_path, monkeypatch):
    film = Film("title", "foot", [Scene("one", circle(500))])
    install_ffmpeg(tmp_path, 'for last; do :; done\ncat > "$last"\n', monkeypatch)
    paths = write_film(film, tmp_path / "film")
    assert paths[1].suffix == ".mp4"
    assert paths[1].stat().st_size == round(0.5 * PER_SECOND) * WIDTH * HEIGHT * 3
    install_ffmpeg(tmp_path, "cat > /dev/null\necho no such codec >&2\nexit 1\n", monkeypatch)
    with pytest.raises(ConfigurationError, match="no such codec"):
        write_film(film, tmp_path / "film")


# --- demonstrations ---------------------------------------------------------------------------------------------------


def test_demonstration_holds_and_leaves_picture_and_film(tmp_path):
    module, showing = load("holds"), Showing("holds", tmp_path / "recordings", brief=True)
    outcome = module.demonstrate(showing)
    result = finish(showing, module.TITLE, module.GUIDE, outcome, tmp_path).result
    assert (result["mismatches"], result["holds"]) == (0, True)
    assert result["ticks"] > 1000 * len(result["recordings"])
    assert any(row.source == "derived" for row in outcome.rows), "no number was predicted"
    assert Path(result["picture"]).read_bytes().startswith(b"\x89PNG")
    assert all(Path(film).stat().st_size > 5000 for film in result["films"])


def test_demonstration_with_changed_friction_fails(tmp_path, monkeypatch):
    beside = Showing.record_offline

    def tampered(showing, tables, words):
        return beside(showing, {**tables, "law": {**tables.get("law", {}), "force": 3.4}}, words)

    monkeypatch.setattr(Showing, "record_offline", tampered)
    assert not load("holds").demonstrate(Showing("holds", tmp_path, brief=True)).holds


def test_threshold_of_a_guessing_observer_does_not_hold(tmp_path, monkeypatch):
    monkeypatch.setattr(SimulatedObserver, "probability", lambda self, trial: 0.5)
    assert not load("threshold").demonstrate(Showing("threshold", tmp_path)).holds
