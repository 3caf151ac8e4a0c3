"""The command line: arguments, names, output, progress."""

import json
import os
import subprocess
import sys
from importlib import metadata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps import cli
from apps.cli import main
from apps.shared.command import Answer, select
from apps.shared.terminal import Line, wrapped
from devices.virtual.hands.csv_table import read_table
from haptics.errors import ConfigurationError
from tests.processes import program

NAMES = ("one", "two", "three")
FULL = "haptics: the result could not be written to standard output (No space left on device)."


def refused(arguments, capsys):
    """Return the error message of a refused command, which is one line and also in the JSON output."""
    assert main([*arguments, "--json"]) == 2
    out, err = capsys.readouterr()
    assert len(err.splitlines()) == 1
    assert json.loads(out)["error"] == err.removeprefix("haptics: ").strip()
    return err


def test_version_is_printed(capsys):
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
        (["bench", "servo", "--duraton=3"], "Did you mean '--duration'?"),
        (["replay", "a", "b"], "does not take 'b'"),
        (["demo", "--headless", "--duration", "1e9"], "less than 1e+07 s (116 days)"),
    ],
)
def test_invalid_argument_is_explained(arguments, words, capsys):
    assert words in refused(arguments, capsys)


@pytest.mark.parametrize("value", ["4N", "4,5"])
@pytest.mark.parametrize("option", [["--set", "law.force={}"], ["--set", "device.mass={}"], ["--rate", "{}"]])
def test_number_format_is_explained(option, value, capsys):
    words = refused(["run", "--headless", *(part.format(value) for part in option)], capsys)
    assert value in words
    assert "with a point and without a unit, such as 4.5" in words


@pytest.mark.parametrize("text", ["t;x\n0,0;1,5\n0,1;2,5\n", "t,x\n0,0,1,5\n0,1,2,5\n"])
def test_decimal_commas_in_a_table_are_explained(tmp_path, text):
    path = tmp_path / "joint.csv"
    path.write_text(text)
    with pytest.raises(ConfigurationError, match=r"line 2.*Write numbers with a point, not with a comma: 4\.5"):
        read_table(str(path))


@pytest.mark.parametrize(("names", "expected"), [
    ([], list(NAMES)), (["all"], list(NAMES)), (["two", "all"], list(NAMES)),
    (["three", "one", "three"], ["three", "one"]),
])  # fmt: skip
def test_names_are_chosen_once_in_the_given_order(names, expected):
    assert select("thing", names, NAMES, "all") == expected


def test_unknown_name_is_refused_with_all_valid_ones():
    with pytest.raises(ConfigurationError, match=r"unknown thing 'tow'. Did you mean 'two'.*one, three, two"):
        select("thing", ["one", "tow"], NAMES)
    with pytest.raises(ConfigurationError, match="unknown thing 'all'"):
        select("thing", ["all"], NAMES)


# --- output ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("arguments", [("devices",), ("devices", "--json"), ("run", "--help")])
def test_full_output_device_gives_status_2_and_one_line(arguments):
    with (
        open("/dev/full", "w") as full,
        program("-m", "apps", *arguments, stdout=full, stderr=subprocess.PIPE) as process,
    ):
        _, err = process.communicate(timeout=60)
    assert (process.returncode, err.splitlines()) == (2, [FULL])


@pytest.mark.parametrize("arguments", [("devices",), ("devices", "--json"), ("--help",)])
def test_closed_output_pipe_is_no_error(arguments):
    read_end, write_end = os.pipe()
    os.close(read_end)
    with (
        os.fdopen(write_end, "w") as closed,
        program("-m", "apps", *arguments, stdout=closed, stderr=subprocess.PIPE) as process,
    ):
        _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (0, "")


def test_failure_keeps_its_status_on_a_full_disk(monkeypatch, capsys):
    with open("/dev/full", "w") as full:
        monkeypatch.setattr(sys, "stdout", full)
        assert cli._deliver(Answer({"error": "x"}, status=4, error="x"), as_json=True) == 4
    assert capsys.readouterr().err.splitlines() == ["haptics: x", FULL]


def test_result_is_delivered_without_stderr(monkeypatch, capsys):
    with open("/dev/full", "w", buffering=1) as full:
        monkeypatch.setattr(sys, "stderr", full)
        assert cli._deliver(Answer({"error": "x"}, status=3, error="x"), as_json=True) == 3
        os.dup2(os.open(os.devnull, os.O_WRONLY), full.fileno())
    assert capsys.readouterr().out == '{"error": "x"}\n'


# --- text ------------------------------------------------------------------------------------------------------------


@given(st.lists(st.text("ab -:.", max_size=300), max_size=4), st.integers(20, 120), st.integers(0, 10))
def test_wrapped_text_keeps_its_words_and_fits_the_width(lines, width, indent):
    text = "\n".join(lines)
    found = wrapped(text, indent, width)
    assert found.split() == text.split()
    longest = max((len(word) for word in text.split()), default=0)
    for line in found.splitlines():
        assert len(line) <= max(width, longest + max(indent, len(line) - len(line.lstrip())))


@pytest.mark.parametrize("terminal", [True, False])
def test_progress_line_is_replaced_and_removed_on_a_terminal_only(terminal, monkeypatch, capsys):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal)
    with pytest.raises(ZeroDivisionError), Line() as line:
        line.show("first")
        line.show("second")
        _ = 1 / 0
    assert capsys.readouterr() == ("", "\r\x1b[Kfirst\r\x1b[Ksecond\r\x1b[K" if terminal else "")


def test_progress_line_ignores_a_closed_terminal(monkeypatch):
    class Closed:
        def isatty(self):
            return True

        def write(self, text):
            raise BrokenPipeError

    monkeypatch.setattr(sys, "stderr", Closed())
    with Line() as line:
        line.show("first")
