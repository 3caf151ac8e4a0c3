"""Decisions of the script ``./run``, without touching the system or the network."""

from __future__ import annotations

import ast
import fcntl
import importlib.util
import json
import os
import sys
from importlib.machinery import SourceFileLoader
from pathlib import Path

import pytest

WORKERS = str((os.cpu_count() or 1) + 1)
SCRIPT = Path(__file__).resolve().parents[2] / "run"
THIS_VENV_PACKAGE = f"python3.{sys.version_info[1]}-venv"


@pytest.fixture
def run(tmp_path, monkeypatch):
    """The script as a module, with its environment and its project in an empty folder."""
    spec = importlib.util.spec_from_loader("run_script", SourceFileLoader("run_script", str(SCRIPT)))
    assert spec is not None and spec.loader is not None
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.setenv("HAPTICS_VENV", str(tmp_path / "venv"))
    for variable in ("DISPLAY", "WAYLAND_DISPLAY", "HAPTICS_NO_INSTALL"):
        monkeypatch.delenv(variable, raising=False)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "ROOT", tmp_path / "project")
    module.ROOT.mkdir()
    (module.ROOT / "pyproject.toml").write_text("[project]\n")
    (module.ROOT / "constraints.txt").write_text("numpy==2.4.6\n")
    return module


@pytest.fixture
def venv(run):
    """A finished environment with the extra ``test``."""
    run.PYTHON.parent.mkdir(parents=True)
    run.PYTHON.write_text("#!/bin/sh\nexit 0\n")
    run.PYTHON.chmod(0o755)
    (run.VENV / "pyvenv.cfg").write_text("home = somewhere\n")
    stamp = {"key": run.setup_key(), "extra": "test", "python": os.path.realpath(run.PYTHON)}
    run.STAMP.write_text(json.dumps(stamp))
    return Path(run.VENV)


class Logged:
    """Records commands instead of running them; returns the given answers, then success."""

    def __init__(self, *answers):
        self.commands: list[list[str]] = []
        self.answers = list(answers)

    def __call__(self, command, **environment):
        self.commands.append(command)
        return self.answers.pop(0) if self.answers else True


# --- Python -----------------------------------------------------------------------------------------------------


def test_old_pythons_can_read_the_script():
    ast.parse(SCRIPT.read_text(), feature_version=(3, 6))
    assert "from __future__" not in SCRIPT.read_text()  # Python 3.6 knows no annotations there


def test_an_old_python_is_refused(run, monkeypatch):
    versions = ((3, 8), (3, 10), (3, 11), (4, 0))
    assert [run.new_enough(version) for version in versions] == [False, False, True, True]
    monkeypatch.setattr(run, "OLDEST", (99, 0))
    with pytest.raises(run.SetupError, match=r"Python 99\.0 or newer is needed; this is 3\.") as caught:
        run.require_python(["demo"])
    assert caught.value.status == 2


# --- system packages --------------------------------------------------------------------------------------------


def test_each_missing_library_names_its_package_once(run):
    needs = {"libglib-2.0.so.0": "glib", "libgthread-2.0.so.0": "glib", "libGL.so.1": "gl", "libX11.so.6": "x11"}
    assert run.packages_for(needs, lambda name: name == "libGL.so.1") == ["glib", "x11"]
    assert run.packages_for(needs, lambda name: True) == []
    assert not run.loads("libthere-is-no-such-thing.so.7")


def test_a_user_can_forbid_system_packages(run, monkeypatch):
    logged = Logged()
    monkeypatch.setattr(run, "logged", logged)
    monkeypatch.setenv("HAPTICS_NO_INSTALL", "1")
    assert run.administrator() is None
    assert not run.install_packages(["xvfb"])
    assert logged.commands == []


def test_missing_window_libraries_are_a_warning_and_missing_ensurepip_an_error(run, monkeypatch, capsys):
    monkeypatch.setattr(run, "install_packages", lambda packages: False)
    run.provide_packages(run.COMMANDS["demo"], ["libegl1"], [])
    out, err = capsys.readouterr()
    assert out == ""
    assert "libraries of windows" in err and err.rstrip().endswith("libegl1")
    monkeypatch.setattr(run.importlib.util, "find_spec", lambda name: None)
    assert run.venv_package() == [THIS_VENV_PACKAGE]
    with pytest.raises(run.SetupError, match=THIS_VENV_PACKAGE) as caught:
        run.provide_packages(run.COMMANDS["demo"], ["libegl1"], [THIS_VENV_PACKAGE])
    assert caught.value.status == 2


# --- environment ------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("venv")
@pytest.mark.parametrize(
    "change",
    [
        lambda run: (run.ROOT / "constraints.txt").write_text("numpy==2.5.5\n"),
        lambda run: (run.ROOT / "pyproject.toml").write_text("[project]\nname = 'x'\n"),
        lambda run: run.PYTHON.unlink(),
        lambda run: run.STAMP.write_text('{"key": '),
    ],
    ids=["constraints", "project", "no python", "broken stamp"],
)
def test_a_change_invalidates_the_stamp(run, change):
    assert run.installed_extra() == "test"
    change(run)
    assert run.installed_extra() is None


@pytest.mark.usefixtures("venv")
@pytest.mark.parametrize(
    "spoil",
    [lambda run: run.UNFINISHED.touch(), lambda run: run.PYTHON.write_text("#!/bin/sh\nexit 1\n")],
    ids=["unfinished", "without packages"],
)
def test_a_broken_environment_is_not_used(run, spoil):
    assert run.usable()
    spoil(run)
    assert not run.usable()


def test_only_a_broken_environment_is_emptied_but_for_lock_and_log(run, venv):
    run.LOCK.touch()
    run.LOG.touch()
    run.empty_venv()
    assert {entry.name for entry in venv.iterdir()} == {run.STAMP.name, run.LOCK.name, run.LOG.name}
    (venv / "thesis.tex").touch()  # now a folder that is no environment
    with pytest.raises(run.SetupError, match="not an environment"):
        run.empty_venv()
    assert (venv / "thesis.tex").exists()


def test_pip_gets_the_constraints_and_leaves_a_stamp(run, venv, monkeypatch):
    logged = Logged()
    monkeypatch.setattr(run, "logged", logged)
    run.install("dev", make=False)
    (pip,) = logged.commands
    assert pip[:5] == [str(run.PYTHON), "-I", "-m", "pip", "install"]
    assert pip[pip.index("-c") + 1] == "constraints.txt"
    assert pip[-2:] == ["-e", ".[dev]"]
    assert run.installed_extra() == "dev"
    assert not run.UNFINISHED.exists()


@pytest.mark.usefixtures("venv")
def test_a_failed_or_killed_install_leaves_no_stamp(run, monkeypatch):
    run.LOG.write_text("ERROR: no such package\n")
    monkeypatch.setattr(run, "logged", Logged(False))
    with pytest.raises(run.SetupError, match="no such package") as caught:
        run.install("", make=False)
    assert caught.value.status == 1
    assert run.installed_extra() is None

    def killed(command, **environment):
        raise KeyboardInterrupt

    monkeypatch.setattr(run, "logged", killed)
    with pytest.raises(KeyboardInterrupt):
        run.install("", make=False)
    assert run.installed_extra() is None
    assert not run.usable()


@pytest.mark.usefixtures("venv")
def test_setup_installs_only_a_missing_extra(run, monkeypatch):
    installs: list[tuple[str, bool]] = []
    monkeypatch.setattr(run, "install", lambda extra, make: installs.append((extra, make)))
    monkeypatch.setattr(run, "wanted_packages", lambda command, display: [])
    run.set_up(run.COMMANDS["demo"])
    assert installs == []
    run.set_up(run.COMMANDS["check"])
    assert installs == [("dev", False)]


@pytest.mark.usefixtures("venv")
def test_concurrent_setups_exclude_each_other(run):
    with run.locked(), run.LOCK.open("a") as other, pytest.raises(BlockingIOError):
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
    with run.LOCK.open("a") as other:
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)


# --- the command line -------------------------------------------------------------------------------------------


def test_the_program_replaces_the_script(run, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", "/opt/foreign")
    monkeypatch.setattr(run, "set_up", lambda command: None)
    calls: list[tuple[Path, list[str], dict[str, str]]] = []
    monkeypatch.setattr(run.os, "execve", lambda *arguments: calls.append(arguments))
    run.start("haptics", ["devices"])
    assert Path.cwd() == tmp_path  # paths in the arguments keep their meaning
    run.start("test", ["-k", "law"])
    run.start("test", [])
    assert Path.cwd() == run.ROOT
    assert [call[1][0] for call in calls] == [str(run.PYTHON)] * 3
    assert all("PYTHONPATH" not in call[2] for call in calls)


def test_every_level_runs_also_after_one_has_failed(run, monkeypatch):
    monkeypatch.setattr(run, "set_up", lambda command: None)
    commands: list[list[str]] = []

    def call(command, **options):
        commands.append(command[3:])
        return -9 if len(commands) == 2 else 0  # the unit tests are killed; the first command compiles kernels

    monkeypatch.setattr(run.subprocess, "call", call)
    assert run.start("test", ["--all"]) == 1
    assert commands[1:] == [
        ["-n", WORKERS, "--dist", "worksteal"],
        ["tests/system/parallel", "-n", str(int(WORKERS) + 1), "--dist", "worksteal"],
        ["tests/system", "--ignore=tests/system/parallel"],
    ]
    with pytest.raises(run.SetupError, match="no other arguments"):
        run.start("test", ["--all", "-k", "law"])


def test_help_goes_to_standard_output_and_an_error_exits_with_status_2(run, capsys):
    assert run.main(["--help"]) == 0
    out = capsys.readouterr().out
    assert all(f"./run {name}" in out for name in ("demo", "test", "haptics", "check", "docs", "setup"))
    for arguments, word in (([], "usage"), (["demmo"], "unknown command 'demmo'")):
        assert run.main(arguments) == 2
        out, err = capsys.readouterr()
        assert out == ""
        assert word in err


def test_checks_go_on_after_one_has_failed(run, monkeypatch):
    asked: list[str] = []

    def call(command, **options):
        asked.append(Path(command[0]).name)
        return int(asked[-1] == "ruff")

    monkeypatch.setattr(run.subprocess, "call", call)
    assert run.check_all() == 1
    assert asked == ["ruff", "ruff", "mypy", "lint-imports"]
