"""Results that cannot be delivered: a full disk behind standard output, and somebody who stops reading."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from apps import cli
from apps.shared.answer import Answer
from tests.processes import ROOT, program


@pytest.mark.parametrize("arguments", [("devices",), ("devices", "--json"), ("--help",), ("run", "--help")])
def test_a_result_that_cannot_be_written_is_status_2_and_one_line(arguments: tuple[str, ...]) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "apps", *arguments],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert line == "haptics: the result could not be written to standard output (No space left on device)."


@pytest.mark.parametrize("arguments", [("devices",), ("devices", "--json"), ("--help",)])
def test_a_reader_who_has_left_is_no_error(arguments: tuple[str, ...]) -> None:
    read_end, write_end = os.pipe()
    os.close(read_end)
    with (
        os.fdopen(write_end, "w") as nobody,
        program("-m", "apps", *arguments, stdout=nobody, stderr=subprocess.PIPE) as process,
    ):
        _, err = process.communicate(timeout=60)
    assert process.returncode == 0
    assert err == ""


def test_what_failed_before_keeps_its_status(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with open("/dev/full", "w") as full:
        monkeypatch.setattr(sys, "stdout", full)
        assert cli._deliver(Answer({"error": "x"}, status=4, error="x"), as_json=True) == 4
    assert capsys.readouterr().err.splitlines() == [
        "haptics: x",
        "haptics: the result could not be written to standard output (No space left on device).",
    ]


def test_a_result_is_delivered_though_nobody_hears_the_complaint(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with open("/dev/full", "w", buffering=1) as full:
        monkeypatch.setattr(sys, "stderr", full)
        assert cli._deliver(Answer({"error": "x"}, status=3, error="x"), as_json=True) == 3
        os.dup2(os.open(os.devnull, os.O_WRONLY), full.fileno())
    assert capsys.readouterr().out == '{"error": "x"}\n'
