from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from apps.cli import main
from apps.compare.comparison import Comparison
from haptics.recording.recording import Recording


def record(parent: Path, *more: str) -> Path:
    """Record a second on the virtual joystick; return the folder."""
    asked = ("run", "--device", "virtual-joystick", "--headless", "--clock", "off", "--duration", "1", *more)
    before = set(parent.iterdir())
    assert main([*asked, "--set", "session.picture=false", "--record", str(parent)]) == 0
    (found,) = set(parent.iterdir()) - before
    return found


@pytest.fixture(scope="module")
def recordings(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    parent = tmp_path_factory.mktemp("recordings")
    return {
        "three": record(parent, "--model", "C", "--set", "law.force=3"),
        "again": record(parent, "--model", "C", "--set", "law.force=3"),
        "four": record(parent, "--model", "C", "--set", "law.force=4"),
    }


def compared(a: Path, b: Path, capsys: pytest.CaptureFixture[str], *more: str) -> dict[str, Any]:
    capsys.readouterr()
    assert main(["compare", str(a), str(b), "--json", *more]) == 0
    answer: dict[str, Any] = json.loads(capsys.readouterr().out)
    return answer


def test_another_force_is_named_and_measured(recordings: dict[str, Path], capsys: pytest.CaptureFixture[str]) -> None:
    answer = compared(recordings["three"], recordings["four"], capsys)
    assert answer["settings"] == {"law.force": {"a": 3.0, "b": 4.0}}
    figures = {row["name"]: row for row in answer["figures"]}
    sliding = figures["friction while sliding, mean"]
    assert sliding["a"] == pytest.approx(3.0, rel=1e-9)
    assert sliding["b"] == pytest.approx(4.0, rel=1e-9)
    differences = {row["column"]: row for row in answer["differences"]}
    one, other = (Recording(recordings[name]).rows for name in ("three", "four"))
    unlike = np.flatnonzero((one["command"] != other["command"]).any(axis=1))
    assert differences["command"]["first_tick"] == unlike[0]
    lengths = np.hypot(*(one["position"] - other["position"]).T)
    assert differences["position"]["largest"] == pytest.approx(lengths.max())


def test_only_ticks_that_both_have_are_compared(recordings: dict[str, Path]) -> None:
    a, b = Recording(recordings["three"]), Recording(recordings["again"])
    b.rows = b.rows[500:]
    found = Comparison.of(a, b)
    assert found.ticks == 500
    assert "500 ticks that both have" in found.describe()
    a.rows = a.rows[:500]
    assert "0 ticks that both have" in Comparison.of(a, b).describe()


def test_the_tick_where_they_part_is_named_and_where_they_lie_is_no_setting(recordings: dict[str, Path]) -> None:
    a, b = Recording(recordings["three"]), Recording(recordings["again"])
    b.metadata["configuration"]["session"] |= {"record": "elsewhere", "picture": True}
    b.rows = np.array(b.rows[400:])
    b.rows["command"][200] += 1.0
    found = Comparison.of(a, b)
    assert found.settings == {}
    parted = {one.column: one.first_tick for one in found.differences if one.first_tick is not None}
    assert parted == {"command": 600}


def test_words_for_people(recordings: dict[str, Path], capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert main(["compare", str(recordings["three"]), str(recordings["four"])]) == 0
    words = capsys.readouterr().out
    assert "law.force: 3 | 4" in words
    assert "command: differs from tick" in words
    assert max(map(len, words.splitlines()[3:])) <= 100


def test_a_picture_of_both(recordings: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "both.png"
    answer = compared(recordings["three"], recordings["four"], capsys, "--out", str(out))
    assert answer["picture"] == str(out)
    assert out.read_bytes().startswith(b"\x89PNG") and out.stat().st_size > 20_000


def test_a_recording_without_ticks_is_refused(recordings: dict[str, Path]) -> None:
    a, b = Recording(recordings["three"]), Recording(recordings["again"])
    b.rows = b.rows[:0]
    with pytest.raises(Exception, match="has no ticks"):
        Comparison.of(a, b)
