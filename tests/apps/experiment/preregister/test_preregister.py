"""A preregistration says everything that the file fixes, and what is still missing."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from apps.cli import main
from tests.apps.experiment.design.designs import WEBER

ANALYSIS = """
[analysis]
hypotheses = ["The Weber fraction | is the same at 1 N and 2 N."]
exclusions = "Participants with a Weber fraction above 1."
plan = ["A fit per participant.", "A paired t test."]
percent = 75.0
"""
POWER = {"experiment": "weber", "alpha": 0.05, "enough": 12, "power": [{"participants": 12, "power": 0.84}]}


@pytest.fixture
def design(tmp_path: Path) -> Path:
    path = tmp_path / "weber.toml"
    path.write_text(WEBER + ANALYSIS, encoding="utf-8")
    return path


def asked(capsys: pytest.CaptureFixture[str], *arguments: object, status: int = 0) -> dict[str, Any]:
    assert main(["experiment", "preregister", *map(str, arguments), "--json"]) == status
    told: dict[str, Any] = json.loads(capsys.readouterr().out)
    return told


def test_facts_are_those_of_the_file(design: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told = asked(capsys, design)
    assert told["design_sha256"] == hashlib.sha256(design.read_bytes()).hexdigest()
    assert told["file"] == design.read_text()
    assert [one["name"] for one in told["conditions"]] == ["1 N", "2 N"]
    assert told["conditions"][1]["procedure"]["most_trials"] == 3
    assert (told["trials"]["most"], told["conditions"][1]["trials"]["most"]) == (7, 3)
    assert all(one["trials"]["least"] <= one["trials"]["most"] for one in told["conditions"])
    assert told["seeds"]["seed"] == 7
    assert told["missing"] == []
    assert told["participants"] is None
    assert any("20 % of its easy" in rule.replace("20%", "20 %") for rule in told["exclusions"])


def test_the_page_says_all_of_it(design: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    power = tmp_path / "power.json"
    power.write_text(json.dumps(POWER))
    out = tmp_path / "out"
    assert main(["experiment", "preregister", str(design), "--power", str(power), "--out", str(out)]) == 0
    page = (out / "preregistration.md").read_text(encoding="utf-8")
    for words in (
        hashlib.sha256(design.read_bytes()).hexdigest(),
        "Weber fraction \\| is the same",
        "A paired t test.",
        "percent: 75",
        "Planned: 12 participants",
        "| 12 | 0.84 |",
        "| 2 N | 2 | 1 | nothing |",
        "discrimination",
        "SeedSequence",
        WEBER,
    ):
        assert words in page
    assert "Not stated" not in page
    assert json.loads((out / "preregistration.json").read_text())["power"] == POWER
    assert "not stated yet" not in capsys.readouterr().out


def test_what_is_missing_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    design = tmp_path / "weber.toml"
    design.write_text(WEBER)
    assert asked(capsys, design)["missing"] == ["analysis.hypotheses", "analysis.exclusions", "analysis.plan"]
    assert main(["experiment", "preregister", str(design), "--out", str(tmp_path / "out")]) == 0
    assert "not stated yet: analysis.hypotheses" in capsys.readouterr().out
    assert main(["experiment", "preregister", str(design)]) == 0
    assert capsys.readouterr().out.count("Not stated yet") == 3


def test_the_number_of_participants_may_be_said(design: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert asked(capsys, design, "--participants", 20)["participants"] == 20
    assert "at least 1" in asked(capsys, design, "--participants", 0, status=2)["error"]


@pytest.mark.parametrize("content", ["", "[]", '{"power": 3}', '{"power": [1]}', "{" * 10_000])
def test_what_is_no_plan_is_refused(
    design: Path, tmp_path: Path, content: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "power.json").write_text(content)
    assert "haptics experiment power" in asked(capsys, design, "--power", tmp_path / "power.json", status=2)["error"]


def test_an_analysis_must_be_plain(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    design = tmp_path / "weber.toml"
    design.write_text(WEBER + "\n[analysis]\nplan = { deep = 1 }\n")
    assert "analysis.plan" in asked(capsys, design, status=2)["error"]
