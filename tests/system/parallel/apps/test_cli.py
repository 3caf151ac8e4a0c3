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

import numpy as np
import pytest

from apps.cli import main
from apps.settings.config import complete, gather
from haptics.errors import ConfigurationError
from haptics.recording.recording import Recording
from haptics.records import Status
from tests.processes import NO_PICTURE, ROOT, RUN, ended, program, spawned_by, until, until_running
from tests.system.parallel.commands import haptics

KEYS = {
    *("recording", "picture", "device", "model", "rate_hz", "ticks", "skipped", "lost_ticks", "overruns"),
    *("period_error_us", "tick_us", "realtime", "force_n", "stick_fraction"),
}


def answer_of(done):
    return dict(json.loads(done.stdout))


@pytest.mark.parametrize(
    ("model", "device"), [("A", "virtual-arm"), ("C", "virtual-joystick"), ("B", "virtual-joystick")]
)
def test_session_of_each_model_is_whole_and_replays_bit_for_bit(tmp_path, model, device):
    arguments = ("run", "--device", device, "--model", model, "--duration", "3", "--headless", "--json")
    answer = answer_of(haptics(*arguments, folder=tmp_path))
    assert set(answer) >= KEYS
    assert answer["ticks"] + answer["skipped"] == 3000
    assert answer["lost_ticks"] == 0
    assert set(answer["period_error_us"]) == {"p50", "p99", "p999", "max"} > set(answer["tick_us"])
    assert answer["realtime"] in {"fifo", "other"} and 0.0 < answer["stick_fraction"] < 1.0
    assert (tmp_path / answer["picture"]).read_bytes().startswith(b"\x89PNG")
    assert len(np.load(tmp_path / answer["recording"] / "ticks.npy")) == answer["ticks"]
    verified = answer_of(haptics("replay", answer["recording"], "--verify", "--json", folder=tmp_path))
    assert (verified["mismatches"], verified["ticks"]) == (0, answer["ticks"])


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
        (["run", "--headless", "--clock", "off", "--device", "pid-joystick"], "use a virtual device"),
        (["run", "--headless", "--clock", "off", "--device", "virtual-joystick"], "--duration"),
        (["fly"], "fly"),
        ([], "COMMAND"),
        (["replay", "missing"], "missing is not a readable recording"),
    ],
)
def test_wrong_request_is_one_line_and_status_2(tmp_path, monkeypatch, capsys, arguments, message):
    monkeypatch.chdir(tmp_path)
    assert main([*arguments, "--json"]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert len(error.strip().splitlines()) == 1, error
    assert not (tmp_path / "recordings").exists()


def test_devices_are_listed_with_their_models(tmp_path):
    listed = answer_of(haptics("devices", "--json", folder=tmp_path))
    models = {row["name"]: row["models"] for row in listed["devices"]}
    assert models["virtual-joystick"][:2] == ["B", "C"]
    assert "lugre" in models["virtual-joystick"]
    assert models["virtual-arm"][:2] == ["A", "D"]
    assert "virtual-arm" in haptics("devices", folder=tmp_path).stdout


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


def test_suspended_session_has_no_force(tmp_path):
    with session(tmp_path) as (process, recording):
        # Ctrl-Z reaches every process of the terminal: the servo must not stop with its last force.
        status = Path(f"/proc/{spawned_by(process.pid)[0]}/status").read_text().splitlines()
        ignored = int(next(line for line in status if line.startswith("SigIgn:")).split()[1], 16)
        assert ignored >> (signal.SIGTSTP - 1) & 1
        process.send_signal(signal.SIGSTOP)
        time.sleep(2.5)
        event = json.loads((recording / "events.jsonl").read_text())
        assert event["event"] == "application lost"
        assert event["details"] == "the application was stopped by a signal or a debugger"
        process.send_signal(signal.SIGCONT)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 4
    assert event["details"] in err
    assert len(np.load(recording / "ticks.npy")) == event["ticks"]


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
