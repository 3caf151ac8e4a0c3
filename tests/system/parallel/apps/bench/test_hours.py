"""The benchmark of what commands need against the length of a recording."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from apps.bench import hours
from apps.bench.hours import Usage
from haptics.errors import ConfigurationError, HapticError


def result(peak: float, ratio: float) -> dict[str, Any]:
    return {"commands": {"verify": {"lengths": [{"memory_mb": peak}], "memory_ratio": ratio}}}


@pytest.mark.parametrize(
    ("peak", "ratio", "words"),
    [(299.0, 1.09, []), (301.0, 1.0, ["verify had 301 MB"]), (200.0, 1.2, ["verify needs 1.20 times the memory"])],
)
def test_too_much_memory_and_growing_memory_are_failures(peak: float, ratio: float, words: list[str]) -> None:
    found = hours.failures(result(peak, ratio))
    assert len(found) == len(words)
    assert all(word in sentence for word, sentence in zip(words, found, strict=True))


def test_ratio_is_that_of_the_longest_to_the_middle_one() -> None:
    found = hours._as_dict({10: Usage(50.0, 1.0, 1.0), 100: Usage(80.0, 2.0, 1.5), 600: Usage(100.0, 4.0, 3.0)})
    assert found["memory_ratio"] == 1.25
    assert found["lengths"][-1] == {
        "ticks": 600,
        "memory_mb": 100.0,
        "time_s": 4.0,
        "processor_s": 3.0,
        "ticks_per_s": 150,
    }


def test_no_room_is_said_before_anything_is_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hours, "_SPARE", 1e12)
    with pytest.raises(ConfigurationError, match="name another folder with --record"):
        hours.run(lambda *_: None, record=str(tmp_path))
    assert list(tmp_path.iterdir()) == []


def test_command_that_fails_is_named_with_its_error() -> None:
    with pytest.raises(HapticError, match=r"haptics verify /nowhere: /nowhere is not a readable recording"):
        hours._measure(["verify", "/nowhere"])


@pytest.mark.timeout(300)
def test_every_command_is_measured_for_three_lengths(tmp_path: Path, compiled: None) -> None:
    found = hours.run(lambda *_: None, duration=60.0, rate=200.0, record=str(tmp_path)).result
    commands = found["commands"]
    assert {"run", "run with picture", "replay --verify", "verify", "compare", "export --to csv"} <= commands.keys()
    for one in commands.values():
        assert [length["ticks"] for length in one["lengths"]] == [200, 2000, 12_000]
        assert all(20.0 < length["memory_mb"] < 1000.0 for length in one["lengths"])
    assert list(tmp_path.iterdir()) == []
