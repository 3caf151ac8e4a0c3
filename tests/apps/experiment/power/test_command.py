"""The plan of an experiment, from its file."""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path
from typing import Any

import pytest

from apps.experiment.power import command
from apps.shared.answer import Answer
from haptics.errors import ConfigurationError

FILE = """\
[experiment]
name = "weber"
task = "discrimination"

[session]
model = "C"

[device]
name = "virtual-joystick"

[law]
name = "coulomb"

[stimulus]
axis = "law.force"

[[conditions]]
name = "low"
reference = 0.5
procedure = { minimum = 0.01, maximum = 1.0 }

[[conditions]]
name = "high"
reference = 2.0

[procedure]
kind = "quest+"
minimum = 0.04
maximum = 2.0
count = 16
thresholds = 20
trials = 30

[catch]
easy = 0.1

[trials]
interval = 3.0
gap = 0.5
block = 22
rest = 60.0

[exploration]
rest = 0.5

[power]
people = 60
participants = [8, 16]
"""


def plan(folder: Path, *arguments: str, old: str = "", new: str = "") -> Answer:
    """Run the command on the file with `old`, which must be in it, replaced."""
    assert old in FILE
    path = folder / "weber.toml"
    path.write_text(FILE.replace(old, new, 1), encoding="utf-8")
    parser = argparse.ArgumentParser()
    command.add_options(parser)
    return command.run(parser.parse_args([str(path), "--workers", "1", *arguments]))


def test_a_plan_of_a_difference(tmp_path: Path) -> None:
    answer = plan(tmp_path, "--ratio", "2")
    result: dict[str, Any] = json.loads(json.dumps(answer.result, allow_nan=False))
    assert result["truth"] == pytest.approx(2.0, rel=0.05) and result["found"] == pytest.approx(2.0, rel=0.25)
    assert result["trials"] == {"low": 30.0, "high": 30.0}
    few, many = result["power"]
    assert few["power"] < many["power"] > 0.8 and few["half_width"] > many["half_width"]
    assert result["enough"] in (8, 16) and f"{result['enough']} participants are enough" in answer.text
    assert "not people" in answer.text and "not people" in result["statement"]


def test_the_time_of_a_participant(tmp_path: Path) -> None:
    """60 trials and their share of catch trials: two intervals with a rest before each, a gap, an answer; breaks."""
    result = plan(tmp_path, "--people", "20").result
    assert result["minutes"] == pytest.approx((60 / 0.9 * (2 * (3.0 + 0.5) + 0.5 + 0.6) + 3 * 60.0) / 60.0)


def test_without_an_effect_nothing_is_found(tmp_path: Path) -> None:
    answer = plan(tmp_path, "--ratio", "1", "--participants", "4,6")
    assert all(row["power"] < 0.3 for row in answer.result["power"]) and answer.result["enough"] is None
    assert "take more participants or trials" in answer.text


def test_a_plan_of_a_precision(tmp_path: Path) -> None:
    answer = plan(tmp_path, old="[power]", new='[power]\nquestion = "precision"\nfirst = "high"\nprecision = 0.3')
    assert answer.result["truth"] == pytest.approx(math.hypot(0.2, 0.05) / 2.0, rel=0.15)
    assert list(answer.result["trials"]) == ["high"] and "within 30%" in answer.text


def test_threads_come_to_the_same_plan(tmp_path: Path) -> None:
    alone, threads = (
        plan(tmp_path, "--people", "30", *more).result["power"]
        for more in ((), ("--executor", "threads", "--workers", "2"))
    )
    assert threads == alone


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("people = 60", "people = 6", r"weber\.toml:\d+: power\.people = 6: must be a whole number at least 20"),
        ("[power]", "[power]\nsecond = 'middle'", r"weber\.toml:\d+: .*unknown condition 'middle'"),
        ("[power]", "[power]\nfirst = 'high'\nsecond = 'high'", r"power\.second = 'high': must be another condition"),
        ("[power]", "[observer]\nlapse = 0.6\n[power]", r"weber\.toml:\d+: observer\.lapse = 0\.6"),
        ('"discrimination"', '"same-different"', r"weber\.toml:\d+: .*catch\.null = 0"),
        ('"discrimination"', '"estimation"', r"weber\.toml:\d+: .*ask for 'precision'"),
        ('"discrimination"', '"adjustment"', r"weber\.toml:\d+: .*does not find what the task 'adjustment' is for"),
    ],
)
def test_errors_name_line_and_key(tmp_path: Path, old: str, new: str, words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        plan(tmp_path, old=old, new=new)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--participants", "8;12"), "--participants 8;12: must be whole numbers"),
        (("--workers", "-1"), "--workers -1"),
        (("--ratio", "0"), r"power\.ratio = 0"),
    ],
)
def test_options_that_cannot_be(tmp_path: Path, arguments: tuple[str, ...], words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        plan(tmp_path, *arguments)
