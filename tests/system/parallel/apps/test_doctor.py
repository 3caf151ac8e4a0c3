"""The doctor command in its own process, and its questions to child interpreters."""

from __future__ import annotations

import contextlib
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
from apps.doctor.child import NoAnswer, call_in_child
from apps.doctor.registry import CHECKS
from tests.apps.doctor.machines import is_shell
from tests.processes import ROOT, program

NOBODY = 65534
NAMES = [name for name in CHECKS if name not in {"timer", "triggers", "window"}]
TIMER = {"rate_hz", "duration_s", "p50_us", "p99_us", "p999_us", "max_us", "late_share", "missed_share", "realtime"}


def doctor(*arguments, folder, environment=None, before=()):
    variables = {
        **(os.environ if environment is None else environment),
        "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path]),
    }
    command = [*before, sys.executable, "-m", "apps", "doctor", *arguments]
    return subprocess.run(
        command, cwd=folder, env=variables, capture_output=True, text=True, timeout=100, check=False, errors="replace"
    )


def findings_of(done):
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def test_doctor_runs_every_check(tmp_path):
    answer = findings_of(doctor("--json", folder=tmp_path))
    assert set(answer) == {"findings", "timer", "ready"}
    assert [row["name"] for row in answer["findings"]] == list(CHECKS)
    assert set(answer["timer"]) >= TIMER
    for row in answer["findings"]:
        assert set(row) == {"name", "group", "severity", "found", "fix"}
        assert row["severity"] in {"ok", "note", "problem"}
        assert bool(row["fix"]) == (row["severity"] != "ok")
        assert is_shell(row["fix"])
        assert "could not be checked" not in row["found"], row
    (triggers,) = (row["found"] for row in answer["findings"] if row["name"] == "triggers")
    assert triggers.count("500 of 500 codes in order") == 2, triggers
    assert answer["ready"] == all(row["severity"] != "problem" for row in answer["findings"])
    assert list(tmp_path.iterdir()) == []


def test_doctor_prints_ascii_on_an_ascii_terminal(tmp_path):
    place = tmp_path / "jörg"
    place.mkdir()
    poor = {"PATH": os.defpath, "PYTHONIOENCODING": "ascii:strict", "LC_ALL": "POSIX"}
    done = doctor("disk", "encoding", "--record", str(place), folder=tmp_path, environment=poor)
    assert done.returncode == 0 and done.stderr == ""
    assert done.stdout.isascii() and "export PYTHONUTF8=1" in done.stdout
    assert done.stdout.splitlines()[-1].startswith(("no problem found", "works, but"))


def test_doctor_runs_with_an_empty_environment(tmp_path):
    answer = findings_of(doctor(*NAMES, "--json", folder=tmp_path, environment={}))
    assert not [row for row in answer["findings"] if "could not be checked" in row["found"]]


@pytest.mark.skipif(not (hasattr(os, "geteuid") and os.geteuid() == 0), reason="only root can give rights away")
@pytest.mark.skipif(shutil.which("setpriv") is None, reason="needs setpriv")
def test_doctor_of_root_without_privileges_reports_scheduling(tmp_path):
    poor = ("prlimit", "--rtprio=0", "--", "setpriv", "--bounding-set=-all", "--inh-caps=-all")
    answer = findings_of(doctor("scheduling", "--json", folder=tmp_path, before=poor))
    (row,) = answer["findings"]
    assert row["severity"] == "problem" and "SCHED_FIFO was refused" in row["found"]
    assert answer["ready"] is False and answer["timer"] == {}


def as_nobody(*command):
    """Run a command as an ordinary user."""
    environment = {"PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path]), "PATH": os.defpath}
    identity: Any = {"user": NOBODY, "group": NOBODY, "extra_groups": ()}
    return subprocess.run(command, cwd="/", env=environment, capture_output=True, text=True, check=False, **identity)


def interpreter_of_others():
    """Return a Python that an ordinary user can start and that finds the packages of this one."""
    for path in filter(None, (sys.executable, shutil.which("python3", path="/usr/bin:/usr/local/bin"))):
        with contextlib.suppress(OSError):
            if as_nobody(path, "-c", "import numpy, numba, apps.doctor").returncode == 0:
                return path
    return None


@pytest.mark.skipif(not (hasattr(os, "geteuid") and os.geteuid() == 0), reason="only root can change the user")
def test_doctor_of_an_ordinary_user_checks_everything(tmp_path):
    python = interpreter_of_others()
    if python is None:
        pytest.skip("no Python here that an ordinary user may start")
    done = as_nobody(python, "-B", "-m", "apps", "doctor", *NAMES, "--record", str(tmp_path), "--json")
    rows = {row["name"]: row for row in findings_of(done)["findings"]}
    assert not [row for row in rows.values() if "could not be checked" in row["found"]]
    assert "root" not in rows["serial-ports"]["found"] and "root may" not in rows["udev"]["found"]
    assert rows["disk"]["severity"] == "problem"  # the folder is root's
    assert all(is_shell(row["fix"]) for row in rows.values())


@pytest.mark.parametrize(
    ("arguments", "word"), [(["pulse"], "pulse"), (["--udev", "toaster"], "toaster"), (["timer", "x"], "x")]
)
def test_unknown_check_is_status_2(capsys, arguments, word):
    assert main(["doctor", *arguments]) == 2
    error = capsys.readouterr().err
    assert f"'{word}'" in error and len(error.splitlines()) == 1


def test_udev_rules_are_printed_for_a_pipe(capsys):
    assert main(["doctor", "--udev", "pid-joystick"]) == 0
    printed = capsys.readouterr()
    assert 'ATTRS{idProduct}=="ffb0"' in printed.out and "optoforce" not in printed.out
    assert printed.err == ""
    assert main(["doctor", "--udev", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert "optoforce" in answer["devices"] and "04d8" in answer["rules"]


def _children(process):
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
def test_interrupt_ends_the_doctor_and_its_measurement(tmp_path):
    with program(
        *("-m", "apps", "doctor", "timer", "--json"),
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        # A background job of a shell ignores interrupts, and its children inherit that.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as process:
        while not (measuring := _children(process.pid)):
            assert process.poll() is None
            time.sleep(0.02)
        time.sleep(0.3)  # the measurement has begun and takes two seconds
        process.send_signal(signal.SIGINT)
        output, words = process.communicate(timeout=20)
        assert process.returncode == 130, words
        assert json.loads(output) == {"error": "interrupted"}
        assert words == "haptics: interrupted\n"
        assert not any(Path(f"/proc/{child}").exists() for child in measuring)


HERE = "tests.system.parallel.apps.test_doctor"


def echo(*arguments):
    sys.stdout.write("noise")
    return list(arguments)


def fail():
    raise ValueError("this is why")


def die():
    os.write(2, b"the first word\nand others\n")
    os.kill(os.getpid(), signal.SIGKILL)


def hang():
    time.sleep(60.0)


def test_child_answers_besides_printed_noise():
    assert call_in_child(f"{HERE}:echo", 1, "two", [3.5, None]) == [1, "two", [3.5, None]]


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        ("fail", "ValueError: this is why"),
        ("die", "SIGKILL: the first word"),
        ("nothing", "no attribute 'nothing'"),
    ],
)
def test_failing_child_is_reported_with_its_reason(function, reason):
    with pytest.raises(NoAnswer, match=reason):
        call_in_child(f"{HERE}:{function}")


def test_hanging_child_is_stopped():
    waited: list[float] = []
    with pytest.raises(NoAnswer, match=r"no answer within 0\.3 s"):
        call_in_child(f"{HERE}:hang", timeout=0.3, waiting=waited.append)
    assert waited == sorted(waited) and waited
