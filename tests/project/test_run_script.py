"""The script ``./run``: what it decides, without touching the system or the network."""

from __future__ import annotations

import ast
import fcntl
import importlib.util
import json
import os
import sys
from collections.abc import Callable
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType

import pytest

WORKERS = str((os.cpu_count() or 1) + 1)
SCRIPT = Path(__file__).resolve().parents[2] / "run"
THIS_VENV_PACKAGE = f"python3.{sys.version_info[1]}-venv"


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
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
def venv(run: ModuleType) -> Path:
    """A finished environment with the extra ``test``."""
    run.PYTHON.parent.mkdir(parents=True)
    run.PYTHON.write_text("#!/bin/sh\nexit 0\n")
    run.PYTHON.chmod(0o755)
    (run.VENV / "pyvenv.cfg").write_text("home = somewhere\n")
    stamp = {"key": run.setup_key(), "extra": "test", "python": os.path.realpath(run.PYTHON)}
    run.STAMP.write_text(json.dumps(stamp))
    return Path(run.VENV)


class Logged:
    """Stands in for running a command: notes it and answers as told, then with success."""

    def __init__(self, *answers: bool) -> None:
        self.commands: list[list[str]] = []
        self.answers = list(answers)

    def __call__(self, command: list[str], **environment: str) -> bool:
        self.commands.append(command)
        return self.answers.pop(0) if self.answers else True


# --- Python -----------------------------------------------------------------------------------------------------


def test_old_pythons_can_read_the_script() -> None:
    ast.parse(SCRIPT.read_text(), feature_version=(3, 6))
    assert "from __future__" not in SCRIPT.read_text()  # Python 3.6 knows no annotations there


@pytest.mark.parametrize(("version", "enough"), [((3, 8), False), ((3, 10), False), ((3, 11), True), ((4, 0), True)])
def test_the_oldest_python(run: ModuleType, version: tuple[int, int], enough: bool) -> None:
    assert run.new_enough(version) is enough


def test_a_newer_python_is_asked_before_it_is_trusted(run: ModuleType, tmp_path: Path) -> None:
    shell = tmp_path / "python3.13"
    shell.write_text("#!/bin/sh\nexit 127\n")
    shell.chmod(0o755)
    found = {"python3.13": str(shell), "python3.11": sys.executable}
    assert run.newer_python(found.get) == sys.executable
    assert run.newer_python({"python3.13": str(shell)}.get) is None


def test_too_old_a_python_is_told_so(run: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "OLDEST", (99, 0))
    with pytest.raises(run.SetupError, match=r"Python 99\.0 or newer is needed; this is 3\.") as caught:
        run.require_python(["demo"])
    assert caught.value.status == 2


# --- system packages --------------------------------------------------------------------------------------------


def test_each_missing_library_names_its_package_once(run: ModuleType) -> None:
    needs = {"libglib-2.0.so.0": "glib", "libgthread-2.0.so.0": "glib", "libGL.so.1": "gl", "libX11.so.6": "x11"}
    assert run.packages_for(needs, lambda name: name == "libGL.so.1") == ["glib", "x11"]
    assert run.packages_for(needs, lambda name: True) == []


def test_a_library_that_does_not_exist_does_not_load(run: ModuleType) -> None:
    assert not run.loads("libthere-is-no-such-thing.so.7")


@pytest.mark.parametrize(
    ("command", "display", "window", "tools"),
    [
        ("demo", False, False, False),
        ("demo", True, True, False),
        ("haptics", True, True, False),
        ("check", False, False, False),
        ("test", False, True, True),
        ("setup", False, True, True),
    ],
)
def test_what_each_command_wants_of_the_system(
    run: ModuleType, monkeypatch: pytest.MonkeyPatch, command: str, display: bool, window: bool, tools: bool
) -> None:
    monkeypatch.setattr(run.sys, "platform", "linux")
    monkeypatch.setattr(run, "loads", lambda library: False)
    monkeypatch.setattr(run.shutil, "which", lambda name: None)
    wanted = run.wanted_packages(run.COMMANDS[command], display)
    assert ("libegl1" in wanted, "libxcb-cursor0" in wanted) == (window, window)
    assert ("xvfb" in wanted, "xdotool" in wanted, "libusb-1.0-0" in wanted) == (tools, tools, tools)
    assert ("rt-tests" in wanted, "gcc" in wanted) == (command == "setup", command == "setup")


def test_the_line_to_paste(run: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run.shutil, "which", lambda name: f"/usr/bin/{name}")
    assert run.advice(["libegl1", "xvfb"]) == "sudo apt-get install -y --no-install-recommends libegl1 xvfb"
    monkeypatch.setattr(run.shutil, "which", lambda name: None)
    assert run.advice(["libegl1"]) == "what Debian calls libegl1"


def test_the_package_lists_are_fetched_only_when_needed(run: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "administrator", lambda: ["sudo", "-n"])
    for answers, verbs, succeeded in [
        ([], ["install"], True),
        ([False], ["install", "update", "install"], True),
        ([False, False], ["install", "update"], False),
    ]:
        logged = Logged(*answers)
        monkeypatch.setattr(run, "logged", logged)
        assert run.install_packages(["xvfb"]) is succeeded
        assert [next(verb for verb in ("install", "update") if verb in command) for command in logged.commands] == verbs
        assert all(command[:2] == ["sudo", "-n"] for command in logged.commands)


def test_nothing_is_installed_on_the_system_against_the_wish(run: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    logged = Logged()
    monkeypatch.setattr(run, "logged", logged)
    monkeypatch.setenv("HAPTICS_NO_INSTALL", "1")
    assert run.administrator() is None
    assert not run.install_packages(["xvfb"])
    assert logged.commands == []


def test_without_a_window_the_work_goes_on(
    run: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(run, "install_packages", lambda packages: False)
    run.provide_packages(run.COMMANDS["demo"], ["libegl1"], [])
    out, err = capsys.readouterr()
    assert out == ""
    assert "there is no window" in err and err.rstrip().endswith("libegl1")


def test_without_ensurepip_the_work_stops_with_the_line(run: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run.importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(run, "install_packages", lambda packages: False)
    assert run.venv_package() == [THIS_VENV_PACKAGE]
    with pytest.raises(run.SetupError, match=THIS_VENV_PACKAGE) as caught:
        run.provide_packages(run.COMMANDS["demo"], ["libegl1"], [THIS_VENV_PACKAGE])
    assert caught.value.status == 2


# --- environment ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("installed", "extra", "ready"),
    [(None, "", False), ("", "", True), ("", "test", False), ("test", "", True), ("dev", "test", True)],
)
def test_an_extra_contains_the_smaller_ones(run: ModuleType, installed: str | None, extra: str, ready: bool) -> None:
    assert run.is_ready(extra, installed) is ready


@pytest.mark.usefixtures("venv")
def test_the_stamp_of_the_last_set_up(run: ModuleType) -> None:
    assert run.installed_extra() == "test"


def _edit_constraints(run: ModuleType) -> None:
    (run.ROOT / "constraints.txt").write_text("numpy==2.5.5\n")


def _edit_project(run: ModuleType) -> None:
    (run.ROOT / "pyproject.toml").write_text("[project]\nname = 'x'\n")


def _lose_python(run: ModuleType) -> None:
    run.PYTHON.unlink()


def _break_stamp(run: ModuleType) -> None:
    run.STAMP.write_text('{"key": ')


@pytest.mark.usefixtures("venv")
@pytest.mark.parametrize("change", [_edit_constraints, _edit_project, _lose_python, _break_stamp])
def test_a_change_makes_the_stamp_void(run: ModuleType, change: Callable[[ModuleType], None]) -> None:
    change(run)
    assert run.installed_extra() is None


@pytest.mark.usefixtures("venv")
def test_an_environment_left_half_made_is_not_used(run: ModuleType) -> None:
    assert run.usable()
    run.UNFINISHED.touch()
    assert not run.usable()


@pytest.mark.usefixtures("venv")
def test_an_environment_whose_python_lost_its_packages_is_not_used(run: ModuleType) -> None:
    run.PYTHON.write_text("#!/bin/sh\nexit 1\n")
    assert not run.usable()


def test_a_broken_environment_is_emptied_but_for_lock_and_log(run: ModuleType, venv: Path) -> None:
    run.LOCK.touch()
    run.LOG.touch()
    run.empty_venv()
    assert {entry.name for entry in venv.iterdir()} == {run.STAMP.name, run.LOCK.name, run.LOG.name}


def test_a_folder_of_somebody_else_is_left_alone(run: ModuleType) -> None:
    run.VENV.mkdir()
    treasure = run.VENV / "thesis.tex"
    treasure.touch()
    with pytest.raises(run.SetupError, match="not an environment"):
        run.empty_venv()
    assert treasure.exists()


def test_pip_gets_the_constraints_and_leaves_a_stamp(
    run: ModuleType, venv: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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
def test_a_failed_install_shows_the_log_and_leaves_no_stamp(run: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    run.LOG.write_text("ERROR: no such package\n")
    monkeypatch.setattr(run, "logged", Logged(False))
    with pytest.raises(run.SetupError, match="no such package") as caught:
        run.install("", make=False)
    assert caught.value.status == 1
    assert run.installed_extra() is None


@pytest.mark.usefixtures("venv")
def test_a_killed_install_is_recognised(run: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    def killed(command: list[str], **environment: str) -> bool:
        raise KeyboardInterrupt

    monkeypatch.setattr(run, "logged", killed)
    with pytest.raises(KeyboardInterrupt):
        run.install("", make=False)
    assert run.installed_extra() is None
    assert not run.usable()


@pytest.mark.usefixtures("venv")
def test_set_up_does_only_what_is_needed(run: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    installs: list[tuple[str, bool]] = []
    monkeypatch.setattr(run, "install", lambda extra, make: installs.append((extra, make)))
    monkeypatch.setattr(run, "wanted_packages", lambda command, display: [])
    run.set_up(run.COMMANDS["demo"])
    assert installs == []
    run.set_up(run.COMMANDS["check"])
    assert installs == [("dev", False)]


@pytest.mark.usefixtures("venv")
def test_two_set_ups_exclude_each_other(run: ModuleType) -> None:
    with run.locked(), run.LOCK.open("a") as other, pytest.raises(BlockingIOError):
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
    with run.LOCK.open("a") as other:
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)


@pytest.mark.usefixtures("venv")
def test_what_a_step_prints_goes_to_the_log(run: ModuleType, capfd: pytest.CaptureFixture[str]) -> None:
    assert run.logged([sys.executable, "-c", "print('heard')"])
    assert not run.logged([sys.executable, "-c", "raise SystemExit(3)"])
    assert capfd.readouterr().out == ""
    assert "heard" in run.LOG.read_text()


# --- the command line -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("demo", ["--headless"], ["-P", "-m", "apps", "demo", "--headless"]),
        ("haptics", ["run", "--json"], ["-P", "-m", "apps", "run", "--json"]),
        ("haptics", [], ["-P", "-m", "apps"]),
        ("docs", [], ["-P", "-m", "mkdocs", "build", "--strict"]),
        ("docs", ["serve"], ["-P", "-m", "mkdocs", "serve"]),
        ("python", ["examples/one.py"], ["examples/one.py"]),
        ("test", ["-k", "law"], ["-m", "pytest", "-k", "law"]),
        ("test", [], ["-m", "pytest", "-n", WORKERS, "--dist", "worksteal"]),
    ],
)
def test_what_is_executed(run: ModuleType, name: str, arguments: list[str], expected: list[str]) -> None:
    assert run.program(name, arguments) == expected


def test_the_program_replaces_the_script(run: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", "/opt/foreign")
    monkeypatch.setattr(run, "set_up", lambda command: None)
    calls: list[tuple[Path, list[str], dict[str, str]]] = []
    monkeypatch.setattr(run.os, "execve", lambda *arguments: calls.append(arguments))
    run.start("haptics", ["devices"])
    assert Path.cwd() == tmp_path  # paths in the arguments keep their meaning
    compiled: list[list[str]] = []
    monkeypatch.setattr(run.subprocess, "call", lambda command, **options: compiled.append(command))
    run.start("test", ["-k", "law"])
    assert compiled == []
    run.start("test", [])
    assert compiled == [[str(run.PYTHON), "-m", "tests.kernels"]]
    assert Path.cwd() == run.ROOT
    assert [call[1][0] for call in calls] == [str(run.PYTHON)] * 3
    assert all("PYTHONPATH" not in call[2] for call in calls)


def test_every_level_runs_also_after_one_has_failed(run: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "set_up", lambda command: None)
    commands: list[list[str]] = []

    def call(command: list[str], **options: object) -> int:
        commands.append(command[3:])
        return -9 if len(commands) == 2 else 0  # the unit tests are killed; the first command compiles kernels

    monkeypatch.setattr(run.subprocess, "call", call)
    assert run.start("test", ["--all"]) == 1
    parallel = ["-n", WORKERS, "--dist", "worksteal"]
    assert commands[1:] == [
        parallel,
        ["tests/system/parallel", *parallel],
        ["tests/system", "--ignore=tests/system/parallel"],
    ]
    with pytest.raises(run.SetupError, match="no other arguments"):
        run.start("test", ["--all", "-k", "law"])


def test_bytecode_that_must_not_lie_beside_the_sources_goes_into_the_environment(
    run: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PYTHONPYCACHEPREFIX", raising=False)
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
    assert "PYTHONPYCACHEPREFIX" not in run.clean_environment()
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    assert run.clean_environment()["PYTHONPYCACHEPREFIX"] == str(run.VENV / "bytecode")
    assert "PYTHONDONTWRITEBYTECODE" not in run.clean_environment()
    monkeypatch.setenv("PYTHONPYCACHEPREFIX", "/elsewhere")
    assert run.clean_environment()["PYTHONPYCACHEPREFIX"] == "/elsewhere"


def test_help_goes_to_standard_output(run: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    assert run.main(["--help"]) == 0
    out = capsys.readouterr().out
    assert all(f"./run {name}" in out for name in ("demo", "test", "haptics", "check", "docs", "setup"))


@pytest.mark.parametrize(("arguments", "word"), [([], "usage"), (["demmo"], "unknown command 'demmo'")])
def test_a_wrong_request_is_status_2(
    run: ModuleType, capsys: pytest.CaptureFixture[str], arguments: list[str], word: str
) -> None:
    assert run.main(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert word in err


def test_checks_go_on_after_one_has_failed(run: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def call(command: list[str], **options: object) -> int:
        asked.append(Path(command[0]).name)
        return int(asked[-1] == "ruff")

    monkeypatch.setattr(run.subprocess, "call", call)
    assert run.check_all() == 1
    assert asked == ["ruff", "ruff", "mypy", "lint-imports"]
