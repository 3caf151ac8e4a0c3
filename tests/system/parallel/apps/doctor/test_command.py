"""The command itself, as whoever calls it: with and without rights, in a poor environment, interrupted."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from apps.cli import main
from apps.doctor.registry import CHECKS
from tests.apps.doctor.machines import is_shell
from tests.processes import ROOT, program

NOBODY = 65534
TIMER = {
    "rate_hz",
    "duration_s",
    "p50_us",
    "p99_us",
    "p999_us",
    "max_us",
    "late_share",
    "missed_share",
    "realtime",
    "usage",
}


def doctor(
    *arguments: str, folder: Path, environment: dict[str, str] | None = None, before: tuple[str, ...] = ()
) -> subprocess.CompletedProcess[str]:
    variables = {
        **(os.environ if environment is None else environment),
        "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path]),
    }
    command = [*before, sys.executable, "-m", "apps", "doctor", *arguments]
    return subprocess.run(
        command, cwd=folder, env=variables, capture_output=True, text=True, timeout=100, check=False, errors="replace"
    )


def answer_of(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def test_the_whole_examination(tmp_path: Path) -> None:
    answer = answer_of(doctor("--json", folder=tmp_path))
    assert set(answer) == {"findings", "timer", "ready"}
    assert [row["name"] for row in answer["findings"]] == list(CHECKS)
    assert set(answer["timer"]) >= TIMER
    for row in answer["findings"]:
        assert set(row) == {"name", "group", "severity", "found", "fix"}
        assert row["severity"] in {"ok", "note", "problem"}
        assert bool(row["fix"]) == (row["severity"] != "ok")
        assert is_shell(row["fix"])
        assert "could not be checked" not in row["found"], row
    assert answer["ready"] == all(row["severity"] != "problem" for row in answer["findings"])
    assert list(tmp_path.iterdir()) == []


def test_words_for_people_on_a_terminal_that_knows_no_letters_but_ascii(tmp_path: Path) -> None:
    place = tmp_path / "jörg"
    place.mkdir()
    poor = {"PATH": os.defpath, "PYTHONIOENCODING": "ascii:strict", "LC_ALL": "POSIX"}
    done = doctor("disk", "encoding", "--record", str(place), folder=tmp_path, environment=poor)
    assert done.returncode == 0 and done.stderr == ""
    assert done.stdout.isascii() and "export PYTHONUTF8=1" in done.stdout
    assert done.stdout.splitlines()[-1].startswith(("no problem found", "works, but"))


def test_without_home_path_and_everything(tmp_path: Path) -> None:
    names = [name for name in CHECKS if name not in {"timer", "window"}]
    answer = answer_of(doctor(*names, "--json", folder=tmp_path, environment={}))
    assert not [row for row in answer["findings"] if "could not be checked" in row["found"]]


@pytest.mark.skipif(not (hasattr(os, "geteuid") and os.geteuid() == 0), reason="only root can give rights away")
@pytest.mark.skipif(shutil.which("setpriv") is None, reason="needs setpriv")
def test_root_without_its_privileges(tmp_path: Path) -> None:
    poor = ("prlimit", "--rtprio=0", "--", "setpriv", "--bounding-set=-all", "--inh-caps=-all")
    answer = answer_of(doctor("scheduling", "--json", folder=tmp_path, before=poor))
    (row,) = answer["findings"]
    assert row["severity"] == "problem" and "SCHED_FIFO was refused" in row["found"]
    assert answer["ready"] is False and answer["timer"] == {}


def _interpreter_for_others() -> str | None:
    """Return a Python that an ordinary user can start and that finds this one's packages."""
    question = "import numpy, numba, apps.doctor"
    for path in (sys.executable, shutil.which("python3", path="/usr/bin:/usr/local/bin")):
        if path is None:
            continue
        try:
            asked = subprocess.run(
                [path, "-c", question],
                cwd="/",
                user=NOBODY,
                extra_groups=(),
                env={"PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])},
                capture_output=True,
                check=False,
            )
        except OSError:
            continue
        if asked.returncode == 0:
            return path
    return None


@pytest.mark.skipif(not (hasattr(os, "geteuid") and os.geteuid() == 0), reason="only root can become somebody else")
def test_an_ordinary_user(tmp_path: Path) -> None:
    python = _interpreter_for_others()
    if python is None:
        pytest.skip("no Python here that an ordinary user may start")
    names = [name for name in CHECKS if name not in {"timer", "window"}]
    done = subprocess.run(
        [python, "-B", "-m", "apps", "doctor", *names, "--record", str(tmp_path), "--json"],
        cwd="/",
        user=NOBODY,
        group=NOBODY,
        extra_groups=(),
        env={"PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path]), "PATH": os.defpath},
        capture_output=True,
        text=True,
        check=False,
    )
    rows = {row["name"]: row for row in answer_of(done)["findings"]}
    assert not [row for row in rows.values() if "could not be checked" in row["found"]]
    assert "root" not in rows["serial-ports"]["found"] and "root may" not in rows["udev"]["found"]
    assert rows["disk"]["severity"] == "problem"  # the folder is root's
    assert all(is_shell(row["fix"]) for row in rows.values())


@pytest.mark.parametrize(
    ("arguments", "word"), [(["pulse"], "pulse"), (["--udev", "toaster"], "toaster"), (["timer", "x"], "x")]
)
def test_an_unknown_name_is_a_wrong_request(tmp_path: Path, arguments: list[str], word: str) -> None:
    done = doctor(*arguments, folder=tmp_path)
    assert done.returncode == 2
    assert f"'{word}'" in done.stderr and len(done.stderr.splitlines()) == 1


def test_rules_are_printed_for_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--udev", "pid-joystick"]) == 0
    printed = capsys.readouterr()
    assert 'ATTRS{idProduct}=="ffb0"' in printed.out and "optoforce" not in printed.out
    assert printed.err == ""
    assert main(["doctor", "--udev", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert "optoforce" in answer["devices"] and "04d8" in answer["rules"]


def test_the_list_names_every_check(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--list"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == list(CHECKS)


def _children(process: int) -> list[int]:
    """Return the processes that `process` has started and that still run."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, parent = path.read_text().rpartition(")")[2].split()[:2]
        except OSError:
            continue
        if int(parent) == process and state != "Z":
            found.append(int(path.parent.name))
    return found


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes are looked up in /proc")
def test_an_interrupt_ends_it_and_its_measurement(tmp_path: Path) -> None:
    with program(
        *("-m", "apps", "doctor", "timer", "--json"),
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        # What runs in the background of a shell was told to ignore interrupts, and hands that on.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as process:
        while not (measuring := _children(process.pid)):
            assert process.poll() is None
            time.sleep(0.02)
        time.sleep(0.3)  # it has begun to measure, which takes two seconds
        process.send_signal(signal.SIGINT)
        output, words = process.communicate(timeout=20)
        assert process.returncode == 130, words
        assert json.loads(output) == {"error": "interrupted"}
        assert words == "haptics: interrupted\n"
        assert not any(Path(f"/proc/{child}").exists() for child in measuring)
