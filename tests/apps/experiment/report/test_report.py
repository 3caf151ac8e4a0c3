"""The command and its file: whole, self-contained, with every number in JSON."""

from __future__ import annotations

import base64
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from apps.cli import main
from apps.experiment.report.words import SIMULATED
from tests.apps.experiment.report.sittings import design, write_session


def report_of(folder: Path, out: Path, capsys: pytest.CaptureFixture[str], *options: str) -> tuple[str, dict[str, Any]]:
    status = main(["experiment", "report", str(folder), "--out", str(out), "--json", *options])
    captured = capsys.readouterr()
    assert status == 0, captured.err
    return out.read_text(encoding="utf-8"), json.loads(captured.out)


def figures(html: str) -> list[ElementTree.Element]:
    found = re.findall(r'src="data:image/svg\+xml;base64,([^"]+)"', html)
    return [ElementTree.fromstring(base64.b64decode(one)) for one in found]


class _Balance(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in {"meta", "img", "br"}:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.fixture(scope="module")
def made(weber: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, dict[str, Any]]:
    import contextlib
    import io

    out, text = tmp_path_factory.mktemp("report") / "R.html", io.StringIO()
    with contextlib.redirect_stdout(text):
        assert main(["experiment", "report", str(weber), "--out", str(out), "--json"]) == 0
    return out.read_text(encoding="utf-8"), json.loads(text.getvalue())


def test_the_file_is_whole_and_needs_nothing_else(made: tuple[str, dict[str, Any]]) -> None:
    html, _ = made
    balance = _Balance()
    balance.feed(html)
    assert balance.open == []
    assert not re.findall(r'(?:src|href)="(?!data:|#)', html)
    assert len(figures(html)) == 1 + 3 * 4  # group; curves, tracks, Weber fractions, time of each participant
    for code in ("P01", "P02", "P03"):
        assert f'<section id="{code}">' in html
        assert f'href="#{code}"' in html


def test_simulated_observers_are_never_taken_for_people(made: tuple[str, dict[str, Any]]) -> None:
    html, result = made
    assert html.count(SIMULATED) == 1 + 3 + 1  # every page, and the methods
    assert result["simulated"] is True
    assert SIMULATED in result["methods"]
    assert "3 simulated observers gave 180 answers" in result["methods"]


def test_the_json_has_every_number_of_the_tables(made: tuple[str, dict[str, Any]]) -> None:
    html, result = made
    for person in result["participants"]:
        assert person["truth"]["1 N"]["lapse"] == 0.02
        for condition in person["conditions"]:
            (difference,) = condition["differences"]
            assert difference["jnd"]["low"] <= difference["jnd"]["value"] <= (difference["jnd"]["high"] or 1e9)
            assert f">{difference['true_weber_fraction'] * 100:.3g}</td>" in html
            assert f">{condition['fit']['deviance']:.1f}</td>" in html
    for condition in result["group"]["conditions"]:
        assert f"{100 * condition['weber_fraction']['mean']['value']:.3g}</td>" in html


def test_the_methods_say_what_a_paper_needs(made: tuple[str, dict[str, Any]]) -> None:
    _, result = made
    for words in (
        "law.force [N] of the coulomb law rendered by model C on the device virtual-joystick by haptics 0.1.0",
        "calibration has the SHA-256 abababababababab",
        "no recordings with a certificate",
        "References were 1 and 2 N. Levels were chosen by QUEST+ (Watson 2017).",
        "None was excluded.",
        "read off at 75 % correct, without lapses",
        "guessing fixed at 0.5",
    ):
        assert words in result["methods"], words


def test_a_person_is_no_observer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_session(tmp_path, tables=design(references=(1.0,), catch={}), simulated=False)
    html, result = report_of(tmp_path, tmp_path / "R.html", capsys, "--percent", "71", "--percent", "84")
    assert SIMULATED not in html
    assert result["simulated"] is False
    assert "age band 20-29; handedness right; consent id C17" in html
    assert [one["percent"] for one in result["participants"][0]["conditions"][0]["differences"]] == [71.0, 84.0]
    assert "read off at 71 % and 84 % correct" in result["methods"]
    assert result["participants"][0]["conditions"][0]["differences"][0]["true_jnd"] is None


def test_what_a_certificate_says_stands_in_the_methods(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write_session(tmp_path, tables=design(references=(1.0,), catch={}))
    recording = folder / "blocks" / "block-01"
    recording.mkdir(parents=True)
    delays = {"p50": 4.0, "p99": 61.0, "p999": 90.0, "max": 120.0}
    histograms = {"edges_us": [0.0, 1.0, 10.0, 100.0, 1000.0], "period_error_us": [0, 60000, 3996, 4]}
    certificate = {"ticks": 64000, "overruns": 4, "period_error_us": delays, "fit": True, "histograms": histograms}
    (recording / "recording.json").write_text(json.dumps({"certificate": certificate}), encoding="utf-8")
    from apps.experiment.report.sessions import read_experiment
    from apps.experiment.report.words import timing

    experiment = read_experiment([tmp_path])
    words = re.sub(r"\s", " ", timing(experiment))
    assert "The recording has 64 000 ticks, of which 4 (0.0063 %) were late" in words
    assert "4 µs (median) and 61 µs (99th percentile) late" in words
    assert "It is fit by its limits." in words
    (recording / "recording.json").write_text("nothing", encoding="utf-8")
    html, _ = report_of(tmp_path, tmp_path / "R.html", capsys)
    assert "blocks/block-01: cannot be read (Expecting value" in html  # the answers are in the journal all the same


def test_a_report_that_cannot_be_written_is_an_error_in_words(
    weber: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["experiment", "report", str(weber / "sub-P01"), "--out", str(tmp_path / "no" / "R.html")]) != 0
    assert "cannot be written" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("task", "table", "figure"),
    [
        ("estimation", {"kind": "estimation", "levels": [0.5, 1.0, 2.0], "repeats": 3}, "Power law"),
        ("adjustment", {"kind": "adjustment", "starts": [0.5, 1.5], "repeats": 4}, "Values that were set"),
        ("detection", {"kind": "constant", "levels": [0.1, 0.5], "repeats": 6}, "Psychometric functions"),
    ],
)
def test_every_task_has_its_figure(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], task: str, table: dict[str, Any], figure: str
) -> None:
    catches = {"null": 0.3} if task == "detection" else {}
    write_session(tmp_path, tables=design(task, (1.0,), procedure=table, catch=catches))
    html, result = report_of(tmp_path, tmp_path / "R.html", capsys)
    assert f'alt="{figure}"' in html
    assert result["task"] == task
    assert figures(html)
