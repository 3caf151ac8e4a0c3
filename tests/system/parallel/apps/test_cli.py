"""The command line from outside: a process, its exit status, one JSON object on standard output."""

import contextlib
import io
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from apps.cli import main
from tests.processes import NO_PICTURE, ROOT, RUN, ended, program, until, until_running

JSON_KEYS = {
    "recording",
    "picture",
    "device",
    "model",
    "rate_hz",
    "ticks",
    "skipped",
    "lost_ticks",
    "overruns",
    "period_error_us",
    "tick_us",
    "realtime",
    "force_n",
    "stick_fraction",
}


def haptics(
    *arguments: str, folder: Path, timeout: float = 100.0, picture: bool = False
) -> subprocess.CompletedProcess[str]:
    plain = NO_PICTURE if arguments[:1] == ("run",) and not picture else ()
    command = [sys.executable, "-m", "apps", *arguments, *plain]
    environment = {key: value for key, value in os.environ.items() if key not in {"DISPLAY", "WAYLAND_DISPLAY"}}
    environment["PYTHONPATH"] = str(ROOT)
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=timeout, check=False
    )


def answer_of(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


@pytest.mark.parametrize(
    ("model", "device"),
    [
        ("A", "virtual-arm"),
        ("C", "virtual-joystick"),
        ("B", "virtual-joystick"),
    ],
)
def test_a_session_of_each_model_is_whole_and_replays_bit_for_bit(tmp_path: Path, model: str, device: str) -> None:
    arguments = ("run", "--device", device, "--model", model, "--duration", "3", "--headless", "--json")
    done = haptics(*arguments, folder=tmp_path, picture=True)
    assert done.returncode == 0, done.stderr
    answer = answer_of(done)
    assert set(answer) >= JSON_KEYS
    assert answer["ticks"] + answer["skipped"] == 3000
    assert answer["lost_ticks"] == 0
    assert set(answer["period_error_us"]) == {"p50", "p99", "p999", "max"}
    assert set(answer["tick_us"]) == {"p50", "p99", "max"}
    assert answer["realtime"] in {"fifo", "other"}
    assert 0.0 < answer["stick_fraction"] < 1.0
    assert (tmp_path / answer["picture"]).read_bytes().startswith(b"\x89PNG")
    rows = np.load(tmp_path / answer["recording"] / "ticks.npy")
    assert len(rows) == answer["ticks"]
    verified = haptics("replay", answer["recording"], "--verify", "--json", folder=tmp_path)
    assert verified.returncode == 0
    assert answer_of(verified)["mismatches"] == 0
    assert answer_of(verified)["ticks"] == answer["ticks"]


def test_two_runs_with_one_seed_feel_the_same(tmp_path: Path) -> None:
    recordings: list[Any] = []
    for _ in range(8):  # on a busy machine, until two of them missed no deadline for long enough to compare something
        done = haptics("run", "--duration", "1", "--seed", "11", "--headless", "--json", folder=tmp_path)
        rows = np.load(tmp_path / answer_of(done)["recording"] / "ticks.npy")
        until_a_skip = int(np.argmax(np.append(np.diff(rows["tick"]), 2) > 1)) + 1
        recordings += [rows[:until_a_skip]] if until_a_skip > 100 else []
        if len(recordings) == 2:
            break
    assert len(recordings) == 2, "too many deadlines were missed to compare anything"
    count = min(map(len, recordings))
    for column in ("position", "velocity", "command", "proxy"):
        assert np.array_equal(recordings[0][column][:count], recordings[1][column][:count])


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["run", "--device", "virtual-joystick", "--model", "A"], 2, "virtual-arm with model A or D"),
        (["run", "--set", "element.mass=-1", "--model", "A"], 2, "element.mass = -1"),
        (["run", "--set", "law.force=nan"], 2, "law.force = nan"),
        (["run", "--set", "law.colour=3"], 2, "law.colour"),
        (["run", "--config", "missing.toml"], 2, "missing.toml"),
        (["run", "--hand", "missing.csv"], 2, "missing.csv"),
        (["run", "--hand", "mouse", "--headless"], 2, "live view"),
        (["run", "--rate", "9000"], 2, "100 to 8000 Hz"),
        (["run", "--rate", "99999"], 2, "session.rate = 99999"),
        (["run", "--set", "session.model=['A']"], 2, "unknown model"),
        (["run", "--set", "law.name=['x']"], 2, "unknown law"),
        (["run", "--set", "device.hand=3"], 2, "device.hand = 3"),
        (["run", "--record", "/proc"], 2, "session.record = /proc"),
        (["run", "--rate", "fast"], 2, "--rate"),
        (["run", "--duration", "nan"], 2, "session.duration"),
        (["run", "--record", "/proc/nowhere"], 2, "/proc/nowhere"),
        (["fly"], 2, "fly"),
        ([], 2, "COMMAND"),
        (["replay", "missing"], 2, "missing is not a readable recording"),
    ],
)
def test_a_wrong_request_is_one_line_and_status_2(
    tmp_path: Path, arguments: list[str], status: int, message: str
) -> None:
    done = haptics(*arguments, "--json", folder=tmp_path)
    assert done.returncode == status
    assert message in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1, done.stderr
    assert not (tmp_path / "recordings").exists()


def test_devices_and_their_models_are_listed(tmp_path: Path) -> None:
    done = haptics("devices", "--json", folder=tmp_path)
    assert done.returncode == 0
    models = {row["name"]: row["models"] for row in answer_of(done)["devices"]}
    assert models["virtual-joystick"][:2] == ["B", "C"]
    assert "lugre" in models["virtual-joystick"]
    assert models["virtual-arm"][:2] == ["A", "D"]
    assert "virtual-arm" in haptics("devices", folder=tmp_path).stdout


def test_listing_devices_loads_neither_windows_nor_compilers(tmp_path: Path) -> None:
    code = (
        "import sys; from apps.cli import main; main(['devices', '--json']); "
        "sys.exit(any(name in sys.modules for name in ('numba', 'PySide6', 'scipy', 'matplotlib')))"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    assert subprocess.run([sys.executable, "-c", code], env=environment, check=False).returncode == 0


@contextlib.contextmanager
def session(folder: Path) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """Start a session without end, and hand it on with its recording once ticks are in it."""
    where, pipe = ("--headless", "--record", str(folder)), subprocess.PIPE
    with program(*RUN, *where, stdout=pipe, stderr=pipe) as process:
        yield process, until_running(process, folder, 500)


def test_ctrl_c_ends_in_order(tmp_path: Path) -> None:
    with session(tmp_path) as (process, recording):
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=60)
    assert process.returncode == 130
    assert json.loads(out)["recording"] == str(recording)
    assert (recording / "ticks.npy").exists()
    event = json.loads((recording / "events.jsonl").read_text())
    assert event["event"] == "stopped"


def children_of(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def servo_of(pid: int) -> int:
    """Return the child that runs the servo; the other one is multiprocessing's resource tracker."""
    for child in children_of(pid):
        if b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes():
            return child
    raise AssertionError("no servo process")


def test_a_killed_servo_is_status_4_with_the_recording_kept(tmp_path: Path) -> None:
    with session(tmp_path) as (process, recording):
        os.kill(servo_of(process.pid), signal.SIGKILL)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 4
    assert "killed by SIGKILL" in err
    assert str(recording) in err
    assert json.loads(out)["lost_ticks"] == 0
    assert len(np.load(recording / "ticks.npy.part")) == json.loads(out)["ticks"]


def test_a_killed_application_leaves_the_virtual_device_without_force(tmp_path: Path) -> None:
    with session(tmp_path) as (process, recording):
        servo = servo_of(process.pid)
        killed_ns = time.monotonic_ns()
        process.kill()
        process.communicate()
        until(lambda: ended(servo), "the servo never ended", 10.0)
    event = json.loads((recording / "events.jsonl").read_text())
    assert event["event"] == "application lost"
    log = np.load(recording / "device_log.npy")
    received = log[np.argsort(log["monotonic_ns"])]
    # The device's own log: its last command is the safe output, within 20 ms of the servo noticing.
    assert received["command"][-1].tolist() == [0.0, 0.0]
    assert received["monotonic_ns"][-1] - event["noticed_monotonic_ns"] < 20e6
    part = np.load(recording / "ticks.npy.part")
    assert len(part) == event["ticks"]
    assert part["time"][-1] > 0.5
    assert event["noticed_monotonic_ns"] > killed_ns


def test_a_closed_terminal_ends_in_order(tmp_path: Path) -> None:
    with session(tmp_path) as (process, recording):
        os.killpg(process.pid, signal.SIGHUP)
        process.communicate(timeout=60)
    assert process.returncode == 130
    assert json.loads((recording / "recording.json").read_text())["state"] == "complete"
    assert json.loads((recording / "events.jsonl").read_text())["event"] == "stopped"


def ignored_signals(pid: int) -> int:
    """Return the mask of the signals that a process ignores."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("SigIgn:")).split()[1], 16)


def test_a_suspended_session_leaves_no_force_on(tmp_path: Path) -> None:
    with session(tmp_path) as (process, recording):
        # Ctrl-Z reaches every process of the terminal; the servo must not freeze with its last force on.
        assert ignored_signals(servo_of(process.pid)) >> (signal.SIGTSTP - 1) & 1
        process.send_signal(signal.SIGSTOP)
        time.sleep(2.5)
        event = json.loads((recording / "events.jsonl").read_text())
        assert event["event"] == "application lost"
        process.send_signal(signal.SIGCONT)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 4
    assert "no sign of life" in err
    assert len(np.load(recording / "ticks.npy")) == event["ticks"]


def test_a_damaged_recording_is_one_line_and_status_2(tmp_path: Path) -> None:
    done = haptics("run", "--duration", "0.5", "--headless", "--json", "--record", "kept", folder=tmp_path)
    recording = tmp_path / answer_of(done)["recording"]
    description = json.loads((recording / "recording.json").read_text())
    texts = ["{}", "[]", "[" * 100000, '{"state": NaN}', "not json"]
    for key in ("device", "model", "rate_hz", "configuration", "limits", "certificate"):
        texts += [json.dumps({**description, key: value}) for value in (None, "x", [], -1)]
    for number, text in enumerate(texts):
        (recording / "recording.json").write_text(text)
        for arguments in (["--verify"], ["--headless"])[: 2 if number % 10 == 0 else 1]:  # a picture takes a second
            answer, status = replayed(recording, *arguments)
            assert status in {0, 1, 2}, (text[:80], answer)
            assert status != 1 or answer["verdict"] != "ok"
            assert status != 2 or "\n" not in answer["error"]


def replayed(recording: Path, *arguments: str) -> tuple[dict[str, Any], int]:
    """Run the command in this process, which is faster than many new ones."""
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(io.StringIO()):
        status = main(["replay", str(recording), "--json", *arguments])
    return json.loads(said.getvalue()), status


def test_a_frozen_servo_is_status_4(tmp_path: Path) -> None:
    with session(tmp_path) as (process, recording):
        os.kill(servo_of(process.pid), signal.SIGSTOP)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 4
    assert "was stopped from outside and was ended after tick" in err
    assert json.loads((recording / "events.jsonl").read_text())["event"] == "servo lost"


def test_a_servo_that_is_terminated_by_others_is_status_4(tmp_path: Path) -> None:
    with session(tmp_path) as (process, _):
        os.kill(servo_of(process.pid), signal.SIGTERM)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 4
    assert "another program" in err


@pytest.mark.parametrize(
    "redirection",
    [
        "2>&-",
        ">/dev/full",
        "| true",
    ],
)
def test_closed_and_full_streams_do_not_change_the_run(tmp_path: Path, redirection: str) -> None:
    command = f"{sys.executable} -m apps run --duration 0.2 --headless --json {redirection}; exit ${{PIPESTATUS[0]}}"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        ["bash", "-c", command], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=90, check=False
    )
    assert done.returncode == (2 if redirection == ">/dev/full" else 0), done.stderr
    assert len(list((tmp_path / "recordings").glob("*/ticks.npy"))) == 1
    assert "Traceback" not in done.stderr
    if "2>" in redirection:
        assert json.loads(done.stdout)["ticks"] > 0
