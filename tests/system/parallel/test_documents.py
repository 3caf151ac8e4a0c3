"""Run the commands and the Python code in the documents; parse the commands that need hardware."""

from __future__ import annotations

import functools
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from apps.cli import make_parser
from haptics.errors import ConfigurationError
from haptics.records import ROW_UNITS
from tests.documents import PAGES, REASONS, blocks_of, commands_of
from tests.processes import ROOT

STROKES = " ".join(f"--set=excitation.{setting}" for setting in ("speeds=4", "rounds=2", "strokes=1"))
POSES = " ".join(f"--set=poses.{setting}" for setting in ("columns=3", "rows=2", "rounds=1"))

LANGUAGES = {"sh", "html", "json", "python", "r", "toml", "text"}
OWN_COMMANDS = {"demo", "test", "haptics", "python", "check", "docs", "setup"}

HAPTICS = """#!/bin/sh
# Short sessions and motions, without a window and a picture.
case "$1" in
    run|demo)
        all=" $* "
        for word do
            shift
            case "$all $before $word" in
                *" --clock off "*|*"--duration "[123]) ;;  # without a clock, long sessions take no time
                *"--duration $word") word=3 ;;
            esac
            set -- "$@" "$word"
            before=$word
        done
        case " $* " in
            *" --duration "*|*" --config "*) ;;
            " demo "[a-z]*) ;;  # of the gallery: as long as it takes
            *) set -- "$@" --duration 1 ;;
        esac
        set -- "$@" --headless ;;
esac
case "$*" in
    "run "*) set -- "$@" --set session.picture=false ;;
    "calibrate friction "*"--device "*) set -- "$@" {strokes} ;;
    "calibrate arm "*"--only handle"*) set -- "$@" {poses} ;;
    "calibrate arm "*) set -- "$@" {strokes} {poses} ;;
    "calibrate servo "*) set -- "$@" --set=servo.lowest=4 --set=servo.strokes=2 ;;
    "calibrate device "*) set -- "$@" --set=autotune.pushes=16 ;;
esac
exec {python} -P -m apps "$@"
"""
SCRIPT = """#!/bin/sh
# Stands in for the script at the top of the repository, which sets up an environment first.
command=$1; shift
case "$command" in
    haptics) exec haptics "$@" ;;
    demo) exec haptics demo "$@" ;;
    python) exec python "$@" ;;
    test) exit 0 ;;  # this is it
esac
echo "./run $command is to be marked: not run" >&2; exit 1
"""


def page_name(page):
    return page.relative_to(ROOT).as_posix()


PAGES_WITH_CODE = [
    pytest.param(page, id=page_name(page))
    for page in PAGES
    if any(block.language in {"sh", "python"} and "not run" not in block.marks for block in blocks_of(page))
]


# --- parsing ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_every_block_says_its_language_and_why_it_is_not_run(page):
    for block in blocks_of(page):
        assert block.language in LANGUAGES, block.where
        assert block.marks.get("not run", REASONS[0]) in REASONS, block.where


@functools.cache
def parser():
    return make_parser()


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_every_command_is_understood(page, monkeypatch):
    monkeypatch.chdir(ROOT)
    for where, (program, *words) in commands_of(page):
        if program == "./run":
            assert words[0] in OWN_COMMANDS, f"{where}: ./run {words[0]}"
        if program == "haptics" or words[0] == "haptics":
            arguments = words if program == "haptics" else words[1:]
            try:
                parser().parse_args(arguments)
            except SystemExit as left:  # --help
                assert not left.code, where
            except ConfigurationError as error:
                only_named = ":" not in where and "are required" in str(error)  # mentioned, not typed
                assert only_named, f"{where}: haptics {' '.join(arguments)}: {error}"


def test_every_column_of_a_recording_is_explained_with_its_unit():
    text = (ROOT / "docs" / "formats.md").read_text(encoding="utf-8")
    rows = [line.split("|")[1:3] for line in text.splitlines() if line.startswith("| `")]
    explained = {name: unit for names, unit in rows for name in re.findall(r"`(\w+)`", names)}
    assert [name for name in ROW_UNITS if name not in explained] == []
    for name, unit in ROW_UNITS.items():
        assert re.sub(r" \(\w+\)|flags", "", unit).split()[0] in explained[name], name


# --- execution --------------------------------------------------------------------------------------------------------


def executable(path, text):
    path.write_text(text)
    path.chmod(0o755)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Return a folder like a clone of the repository, with the commands of the documents on the path."""
    programs, here = tmp_path / "bin", tmp_path / "clone"
    programs.mkdir()
    here.mkdir()
    executable(programs / "haptics", HAPTICS.format(python=sys.executable, strokes=STROKES, poses=POSES))
    executable(programs / "python", f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    executable(here / "run", SCRIPT)
    (here / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(here)
    monkeypatch.syspath_prepend(str(here))
    return here


def run_commands(block, folder):
    environment = {name: value for name, value in os.environ.items() if name not in {"DISPLAY", "WAYLAND_DISPLAY"}}
    environment |= {"PATH": f"{folder.parent / 'bin'}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
    for line in block.lines:
        recordings = sorted((folder / "recordings").glob("*"), key=lambda path: path.stat().st_mtime_ns)
        command = line.replace("recordings/NAME", f"recordings/{recordings[-1].name}") if recordings else line
        done = subprocess.run(
            ["bash", "-o", "pipefail", "-c", command],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        expected = int(block.marks.get("exit status", 0))
        assert done.returncode == expected, f"{block.where}: {command}\n{done.stdout}{done.stderr}"


def run_python(block, folder, names):
    """Run a block with the names defined by the preceding blocks of its page."""
    file = folder / f"{Path(block.page).stem}_{block.line}.py"
    file.write_text(block.text)
    exec(compile(block.text, str(file), "exec"), names)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("page", PAGES_WITH_CODE)
def test_what_a_page_says_can_be_done(page, folder):
    names: dict[str, object] = {"__name__": "page"}
    before = set(sys.modules)
    try:
        for block in blocks_of(page):
            if "not run" in block.marks:
                continue
            if "file" in block.marks:
                (folder / block.marks["file"]).write_text(block.text)
            elif block.language == "sh":
                run_commands(block, folder)
            elif block.language == "python":
                run_python(block, folder, names)
    finally:
        for name in set(sys.modules) - before:
            if str(getattr(sys.modules[name], "__file__", "")).startswith(str(folder)):
                del sys.modules[name]
