"""The command line in a process: exit status, JSON object, signals, streams, faults, and runs without a clock."""

from __future__ import annotations

import contextlib
import io
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from apps.cli import main
from apps.settings.config import complete, gather
from haptics.errors import ConfigurationError
from haptics.recording.recording import Recording
from haptics.records import Status
from tests.processes import NO_PICTURE, ROOT, RUN, ended, program, until, until_running

KEYS = {
    *("recording", "picture", "device", "model", "rate_hz", "ticks", "skipped", "lost_ticks", "overruns"),
    *("period_error_us", "tick_us", "realtime", "force_n", "stick_fraction"),
}


def haptics(*arguments, folder):
    environment = {key: value for key, value in os.environ.items() if key not in {"DISPLAY", "WAYLAND_DISPLAY"}}
    return subprocess.run(
        [sys.executable, "-m", "apps", *arguments],
        cwd=folder,
        env={**environment, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=300.0,
        check=False,
    )


def answer_of(done):
    return dict(json.loads(done.stdout))


@pytest.mark.parametrize(
    ("model", "device"), [("A", "virtual-arm"), ("C", "virtual-joystick"), ("B", "virtual-joystick")]
)
def test_session_of_each_model_is_whole_and_replays_bit_for_bit(tmp_path, model, device):
    arguments = ("run", "--device", device, "--model", model, "--duration", "3", "--headless", "--json")
    done = haptics(*arguments, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    answer = answer_of(done)
    assert set(answer) >= KEYS
    assert answer["ticks"] + answer["skipped"] == 3000
    assert answer["lost_ticks"] == 0
    assert set(answer["period_error_us"]) == {"p50", "p99", "p999", "max"} > set(answer["tick_us"])
    assert answer["realtime"] in {"fifo", "other"} and 0.0 < answer["stick_fraction"] < 1.0
    assert (tmp_path / answer["picture"]).read_bytes().startswith(b"\x89PNG")
    assert len(np.load(tmp_path / answer["recording"] / "ticks.npy")) == answer["ticks"]
    verified = haptics("replay", answer["recording"], "--verify", "--json", folder=tmp_path)
    assert verified.returncode == 0
    assert (answer_of(verified)["mismatches"], answer_of(verified)["ticks"]) == (0, answer["ticks"])


def test_two_runs_with_one_seed_are_equal(tmp_path):
    recordings: list[Any] = []
    for _ in range(8):  # on a busy machine, until two runs are long enough before their first skipped tick
        done = haptics("run", "--duration", "1", "--seed", "11", "--headless", "--json", *NO_PICTURE, folder=tmp_path)
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
    ("arguments", "message"),
    [
        (["run", "--device", "virtual-joystick", "--model", "A"], "virtual-arm with model A or D"),
        (["run", "--set", "law.force=nan"], "law.force = nan"),
        (["run", "--config", "missing.toml"], "missing.toml"),
        (["run", "--hand", "missing.csv"], "missing.csv"),
        (["run", "--hand", "mouse", "--headless"], "live view"),
        (["run", "--rate", "fast"], "--rate"),
        (["run", "--record", "/proc/nowhere"], "/proc/nowhere"),
        (
            ["run", "--headless", "--clock", "off", "--device", "pid-joystick", "--duration", "1"],
            "use a virtual device",
        ),
        (["run", "--headless", "--clock", "off", "--device", "virtual-joystick"], "--duration"),
        (["fly"], "fly"),
        ([], "COMMAND"),
        (["replay", "missing"], "missing is not a readable recording"),
    ],
)
def test_wrong_request_is_one_line_and_status_2(tmp_path, arguments, message):
    done = haptics(*arguments, "--json", folder=tmp_path)
    assert done.returncode == 2
    assert message in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1, done.stderr
    assert not (tmp_path / "recordings").exists()


def test_devices_are_listed_with_their_models_and_without_heavy_imports(tmp_path):
    done = haptics("devices", "--json", folder=tmp_path)
    assert done.returncode == 0
    models = {row["name"]: row["models"] for row in answer_of(done)["devices"]}
    assert models["virtual-joystick"][:2] == ["B", "C"]
    assert "lugre" in models["virtual-joystick"]
    assert models["virtual-arm"][:2] == ["A", "D"]
    assert "virtual-arm" in haptics("devices", folder=tmp_path).stdout
    code = (
        "import sys; from apps.cli import main; main(['devices', '--json']); "
        "sys.exit(any(name in sys.modules for name in ('numba', 'PySide6', 'scipy', 'matplotlib')))"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    assert subprocess.run([sys.executable, "-c", code], env=environment, check=False).returncode == 0


def test_damaged_recording_is_one_line_and_status_2(tmp_path):
    recording = Path(run(tmp_path, "--duration", "0.5")["recording"])
    description = json.loads((recording / "recording.json").read_text())
    texts = ["{}", "[]", "[" * 100000, '{"state": NaN}', "not json"]
    for key in ("device", "model", "rate_hz", "configuration", "limits", "certificate"):
        texts += [json.dumps({**description, key: value}) for value in (None, "x", [], -1)]
    for number, text in enumerate(texts):
        (recording / "recording.json").write_text(text)
        for option in ("--verify", "--headless")[: 2 if number % 10 == 0 else 1]:  # a picture takes a second
            said = io.StringIO()
            with contextlib.redirect_stdout(said), contextlib.redirect_stderr(io.StringIO()):
                status = main(["replay", str(recording), "--json", option])
            answer = json.loads(said.getvalue())
            assert status in {0, 1, 2}, (text[:80], answer)
            assert status != 1 or answer["verdict"] != "ok"
            assert status != 2 or "\n" not in answer["error"]


# --- signals and streams; more kills and stops are in tests/system/apps/test_fault_processes.py -----------------------


@contextlib.contextmanager
def session(folder):
    """Start an endless session and yield it with its recording once it has ticks."""
    where, pipe = ("--headless", "--record", str(folder)), subprocess.PIPE
    with program(*RUN, *where, stdout=pipe, stderr=pipe) as process:
        yield process, until_running(process, folder, 500)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_request_to_end_and_closed_terminal_end_the_session_in_order(tmp_path, number):
    with session(tmp_path) as (process, recording):
        if number == signal.SIGHUP:  # a closed terminal signals the whole group
            os.killpg(process.pid, number)
        else:
            process.send_signal(number)
        out, _ = process.communicate(timeout=60)
    assert process.returncode == 130
    assert json.loads(out)["recording"] == str(recording)
    assert (recording / "ticks.npy").exists()
    assert json.loads((recording / "recording.json").read_text())["state"] == "complete"
    assert json.loads((recording / "events.jsonl").read_text())["event"] == "stopped"


def servo_of(pid):
    """Return the child that runs the servo; the other child is the resource tracker of multiprocessing."""
    for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        if b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes():
            return int(child)
    raise AssertionError("no servo process")


def test_suspended_session_has_no_force(tmp_path):
    with session(tmp_path) as (process, recording):
        # Ctrl-Z reaches every process of the terminal: the servo must not stop with its last force.
        status = Path(f"/proc/{servo_of(process.pid)}/status").read_text().splitlines()
        ignored = int(next(line for line in status if line.startswith("SigIgn:")).split()[1], 16)
        assert ignored >> (signal.SIGTSTP - 1) & 1
        process.send_signal(signal.SIGSTOP)
        time.sleep(2.5)
        event = json.loads((recording / "events.jsonl").read_text())
        assert event["event"] == "application lost"
        process.send_signal(signal.SIGCONT)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 4
    assert "no sign of life" in err
    assert len(np.load(recording / "ticks.npy")) == event["ticks"]


def test_servo_terminated_by_another_program_is_status_4(tmp_path):
    with session(tmp_path) as (process, _):
        os.kill(servo_of(process.pid), signal.SIGTERM)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 4
    assert "another program" in err


@pytest.mark.parametrize("redirection", ["2>&-", ">/dev/full", "| true"])
def test_closed_and_full_streams_do_not_change_the_run(tmp_path, redirection):
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


# --- without a clock --------------------------------------------------------------------------------------------------


def run(folder, *arguments, status=0):
    """Run a session from this process, and return its answer."""
    out = io.StringIO()
    command = ["run", "--headless", "--json", *NO_PICTURE, "--record", str(folder), *arguments]
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
        assert main(command) == status
    return dict(json.loads(out.getvalue()))


@pytest.mark.parametrize(
    ("device", "model"),
    [("virtual-joystick", "C"), ("virtual-arm", "D"), ("virtual-joystick", "B"), ("virtual-arm", "A")],
)
def test_run_without_a_clock_has_the_rows_of_a_live_run_until_its_first_skip(device, model, tmp_path):
    arguments = "--device", device, "--model", model, "--duration", "0.5", "--seed", "4"
    live, off = run(tmp_path, *arguments), run(tmp_path, *arguments, "--clock", "off")
    assert "real_time_factor" not in live
    assert off["real_time_factor"] > 0.0
    rows, others = (Recording(Path(answer["recording"])).rows for answer in (live, off))
    assert len(others) == 500
    common = int(np.argmin(np.append(rows["tick"] == np.arange(len(rows)), False)))
    assert common > 0
    late = int(Status.STARTED_LATE | Status.ENDED_LATE)
    np.testing.assert_array_equal(rows["status"][:common] | late, others["status"][:common] | late)
    timing = {"sample_age", "period_error", "tick_time", "write_time", "status"}
    for name in set(rows.dtype.names or ()) - timing:
        np.testing.assert_array_equal(rows[name][:common], others[name][:common], err_msg=name)


def test_long_run_without_a_clock_records_every_tick_and_has_its_fault_in_time(tmp_path):
    arguments = ("--device", "virtual-joystick", "--duration", "40", "--clock", "off", "--fault", "nan@1+0.01")
    answer = run(tmp_path, *arguments)
    rows = Recording(Path(answer["recording"])).rows
    assert answer["lost_ticks"] == 0
    assert answer["ticks"] == len(rows) == 40_000  # more than the trace holds: the run waits for its recorder
    assert np.flatnonzero(rows["status"] & int(Status.NOT_FINITE)).tolist() == list(range(1000, 1010))


# --- faults on demand -------------------------------------------------------------------------------------------------


def run_faulty(folder, *arguments):
    done = haptics("run", "--headless", "--json", *NO_PICTURE, "--record", str(folder), *arguments, folder=folder)
    return done, Recording(Path(answer_of(done)["recording"]))


def test_device_without_finite_numbers_is_status_4_with_the_recording_kept(tmp_path):
    done, recording = run_faulty(tmp_path, "--fault", "nan@0.3", "--duration", "20")
    assert done.returncode == 4
    assert "faults on demand: nan from 0.3 s on" in done.stderr.splitlines()
    assert "virtual-joystick" in answer_of(done)["error"]
    assert str(recording.folder) in done.stderr
    assert recording.metadata["configuration"]["session"]["faults"] == ["nan@0.3"]
    rows = recording.rows
    bad = rows["time"] >= 0.3
    assert bad.any()
    assert (((rows["status"] & Status.NOT_FINITE) != 0) == bad).all()
    assert np.isfinite(rows["command"]).all()
    assert not rows["command"][-1].any()


def test_dropout_is_survived(tmp_path):
    """Without a clock: on a busy machine, a live run has more samples that are too old."""
    faults = "--fault", "duplicate@0.1", "--fault", "dropout@0.3"
    done, recording = run_faulty(tmp_path, *faults, "--duration", "0.8", "--clock", "off")
    assert done.returncode == 0, done.stderr
    assert "faults on demand: duplicate from 0.1 s on, dropout from 0.3 s for 0.05 s" in done.stderr
    rows = recording.rows
    stale = (rows["status"] & Status.STALE) != 0
    too_old = 0.3005 + recording.metadata["limits"]["max_sample_age"]
    without = (rows["time"] > too_old) & (rows["time"] < 0.3495)
    assert stale[without].all()
    assert not stale[~without & ((rows["time"] < 0.3) | (rows["time"] > 0.36))].any()


def test_faults_are_read_from_file_and_command_line(tmp_path, capsys):
    file = tmp_path / "session.toml"
    file.write_text('[session]\nfaults = ["nan@2", "stuck@1+0.5"]\n')
    config = complete(gather(file, []))
    assert config.session.faults == ("nan@2", "stuck@1+0.5")
    assert config.as_dict()["session"]["faults"] == ["nan@2", "stuck@1+0.5"]
    assert complete({}).as_dict()["session"]["faults"] == []
    assert main(["run", "--config", str(file), "--fault", "unplugged@2", "--headless"]) == 2
    assert "Did you mean 'unplug'?" in capsys.readouterr().err


@pytest.mark.parametrize("wrong", ["nan@2", 3, ["nan"], [2.0], [["nan@2"]], {"nan": 2}])
def test_wrong_faults_are_refused(wrong):
    with pytest.raises(ConfigurationError, match="fault"):
        complete({"session": {"faults": wrong}})


# --- worker processes -------------------------------------------------------------------------------------------------

BUSY = """
import os, signal
from apps.shared.workers import workers

if __name__ == "__main__":
    with workers("processes", 1) as (executor, _):
        print(executor.submit(os.getpid).result(), flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
"""


def test_worker_ends_with_its_killed_parent(tmp_path):
    file = tmp_path / "busy.py"
    file.write_text(BUSY)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with open(tmp_path / "said", "w+") as said:  # not a pipe, which a remaining worker would keep open
        done = subprocess.run([sys.executable, file], env=environment, stdout=said, check=False)
        said.seek(0)
        worker = int(said.read())
    assert done.returncode == -signal.SIGKILL
    until(lambda: ended(worker), "a worker waits for tasks of a dead process", 20.0)
