"""``haptics demo --list`` and ``haptics demo NAME``."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from apps import cli
from apps.gallery import command
from apps.gallery.outcome import Guide, Outcome, Scene
from apps.gallery.registry import DEMONSTRATIONS
from apps.gallery.showing import Showing
from apps.reproduce.outcome import Row
from haptics.records import ROW


def still(count: int = 50) -> np.ndarray:
    rows = np.zeros(count, ROW)
    rows["time"] = 1e-3 * np.arange(count)
    return rows


def outcome(number: float, rows: tuple[Row, ...] = ()) -> Outcome:
    return Outcome(number, 2.0, "%", "off by", rows, lambda figure: None, [Scene("still", still())])


def test_list_names_every_demonstration(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["demo", "--list", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)["demonstrations"]
    assert [one["name"] for one in listed] == list(DEMONSTRATIONS)
    assert all(one["title"] and one["see"] for one in listed)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["hold"], "'hold'"),
        (["holds", "--duration", "3"], "--duration"),
        (["holds", "--seed", "3"], "--seed"),
    ],
)
def test_what_cannot_be_is_refused(words: list[str], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["demo", *words, "--headless"]) == 2
    assert told in capsys.readouterr().err


def test_one_is_run_and_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("apps.gallery.showing.Showing.brief", True)
    words = ["demo", "delay", "--headless", "--out", str(tmp_path / "out"), "--record", str(tmp_path / "recordings")]
    assert cli.main([*words, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["holds"], told["mismatches"], told["unit"]) == (True, 0, "%")
    assert told["number"] <= told["bound"] == 10.0
    assert Path(told["picture"]) == tmp_path / "out" / "delay.png"
    assert cli.main(["replay", told["recording"], "--verify"]) == 0


@pytest.mark.parametrize("number", [3.0, float("nan")])
def test_a_number_beyond_its_bound_does_not_hold(number: float) -> None:
    assert outcome(1.9).holds
    assert not outcome(number).holds


def test_what_stands_beside_it_counts() -> None:
    assert not outcome(1.0, (Row("mass", 1.0, 1.2, 0.1),)).holds


def test_what_does_not_hold_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def demonstrate(showing: Showing) -> Outcome:
        showing.beside(
            {
                "session": {"model": "C", "duration": 0.05},
                "device": {"name": "virtual-joystick"},
            },
            "shown",
        )
        return outcome(3.0)

    module = SimpleNamespace(TITLE="it does not", GUIDE=Guide("do.", "feel.", "see."), demonstrate=demonstrate)
    monkeypatch.setattr(command, "load", lambda name: module)
    options = SimpleNamespace(
        name="holds", duration=None, seed=None, out=tmp_path, record=str(tmp_path / "recordings"), clock=None
    )
    answer = command.run(options, (), (), "")
    assert answer.status == 1
    assert "holds" in answer.error
    assert "NO" in answer.text
    assert answer.result["holds"] is False
