"""Wrong words on the command line are answered with the nearest right one."""

from __future__ import annotations

import json
from importlib import metadata
from pathlib import Path

import pytest

from apps.cli import main
from devices.virtual.hands.csv_table import read_table
from haptics.errors import ConfigurationError


def refused(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """Return what the command says about `arguments`, in one line."""
    assert main([*arguments, "--json"]) == 2
    out, err = capsys.readouterr()
    assert len(err.splitlines()) == 1
    assert json.loads(out)["error"] == err.removeprefix("haptics: ").strip()
    return err


def test_the_version_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(["--version"])
    assert not left.value.code
    assert capsys.readouterr().out.strip() == f"haptics {metadata.version('haptics')}"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["dmo"], "unknown command 'dmo'. Did you mean 'demo'?"),
        (["Demo"], "Did you mean 'demo'?"),
        (["calibrate", "frction"], "Did you mean 'friction'?"),
        (["run", "--model", "c"], "Did you mean 'C'?"),
        (["run", "--device", "Virtual-Joystick"], "Did you mean 'virtual-joystick'?"),
        (["demo", "--headles"], "'haptics demo' has no option '--headles'. Did you mean '--headless'?"),
        (["demo", "--head"], "'haptics demo' has no option '--head'"),
        (["calibrate", "friction", "--dat", "x.csv"], "Did you mean '--data'?"),
        (["bench", "servo", "--duraton=3"], "Did you mean '--duration'?"),
        (["run", "--theme", "drak"], "Did you mean 'dark'?"),
        (["replay", "a", "b"], "does not take 'b'"),
    ],
)
def test_the_nearest_name_is_suggested(arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert words in refused(arguments, capsys)


@pytest.mark.parametrize("value", ["4N", "4,5"])
@pytest.mark.parametrize("option", [["--set", "law.force={}"], ["--set", "device.mass={}"], ["--rate", "{}"]])
def test_numbers_are_explained(option: list[str], value: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = refused(["run", "--headless", *(part.format(value) for part in option)], capsys)
    assert value in words
    assert "with a point and without a unit, such as 4.5" in words


def test_too_long_a_duration_is_answered_with_the_longest(capsys: pytest.CaptureFixture[str]) -> None:
    words = refused(["demo", "--headless", "--duration", "1e9"], capsys)
    assert "less than 1e+07 s (116 days)" in words


@pytest.mark.parametrize("text", ["t;x\n0,0;1,5\n0,1;2,5\n", "t,x\n0,0,1,5\n0,1,2,5\n"])
def test_decimal_commas_in_a_table_are_explained(tmp_path: Path, text: str) -> None:
    path = tmp_path / "joint.csv"
    path.write_text(text)
    with pytest.raises(ConfigurationError, match=r"line 2.*Write numbers with a point, not with a comma: 4\.5"):
        read_table(str(path))


@pytest.mark.parametrize(("command", "words"), [("demo", "default: 30 s"), ("run", "default: until it is stopped")])
def test_the_help_tells_how_long_it_runs(command: str, words: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main([command, "--help"])
    assert words in " ".join(capsys.readouterr().out.split())
