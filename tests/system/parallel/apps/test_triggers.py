"""Triggers of experiments in real time: every code is sent, journalled and in order, also after kills.

The check ``triggers`` of the doctor (`test_doctor`) measures the delay, and `test_lsl` receives codes.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import threading
from pathlib import Path

import numpy as np
import pytest

import devices
from apps.cli import main
from apps.experiment.journal import Journal, read_journal, replay
from apps.experiment.triggers.ports import TriggerSettings
from apps.experiment.triggers.session import LOG, Triggers
from devices.common.plane import Plane
from devices.emulators.forcedimension import MAKER, WEIGHT
from haptics.errors import DeviceFault
from haptics.jit import COMPILED
from tests.apps.experiment.designs import WEBER, changed
from tests.apps.experiment.journal.records import HEADER, place
from tests.c_types import needs_compiler
from tests.devices.emulators.far_ends import resting, served
from tests.processes import program, until

RESET = 0.002
_ONE_TRIAL = 'kind = "constant"\nlevels = [0.5, 1.0]\nrepeats = 1\n'


def experiment(folder, address):
    """Two short trials, with triggers on a serial port."""
    second = '[[conditions]]\nname = "2 N"\nreference = 2.0\nprocedure = { most_trials = 3 }\n'
    assert second in WEBER
    head, tail = WEBER.replace(second, "").split('kind = "staircase"')
    text = head + _ONE_TRIAL + tail[tail.index("[catch]") :]
    text = text.replace("easy = 0.2", "easy = 0.0\nnull = 0.0")
    text = text.replace("block = 5", "block = 4\nrest = 0.0\ninterval = 0.2\nlate_ticks = 1.0\nlongest_gap = 0.9")
    text = text.replace("start = [-0.03, 0.0]\nstrokes = 2", "strokes = 0")
    text += f'\n[triggers]\nport = "serial"\naddress = "{address}"\nreset = {RESET}\n'
    return changed(folder, text=text)


class Receiver:
    """Far end of a pseudo terminal, read in a thread."""

    def __init__(self):
        self.far, self.near = os.openpty()
        self.address = os.ttyname(self.near)
        self.received = b""
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self):
        with contextlib.suppress(OSError):  # the near end was closed
            while data := os.read(self.far, 4096):
                self.received += data

    def close(self):
        os.close(self.near)
        self._thread.join(20)
        assert not self._thread.is_alive(), "another process has the terminal open"
        os.close(self.far)


@pytest.fixture
def receiver():
    own = Receiver()
    yield own
    own.close()


def test_codes_of_a_session_are_received_and_journalled_despite_a_kill(receiver, tmp_path, capsys):
    file, out = experiment(tmp_path, receiver.address), tmp_path / "out"
    folder = out / "sub-sim01" / "ses-01"
    live = ("--clock", "wall", "--json")
    command = ("-m", "apps", "experiment", "run", str(file), "--observer", "simulated", "--out", str(out), *live)
    with program(*command, stdout=subprocess.DEVNULL) as process:
        until(lambda: b"\x1f" in receiver.received, "no stimulus was announced")
        process.kill()
        process.wait()
        assert (folder / LOG).exists()
        assert main(["experiment", "resume", str(folder), *live]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert not (folder / LOG).exists()
    records = read_journal(Path(answer["journal"])).records
    sent = [one for record in records if record.get("name") == "triggers" for one in record["sent"]]
    assert bytes(code for one in sent for code in (one["code"], 0)) == receiver.received
    assert all(one["due_ns"] < one["sent_ns"] for one in sent)
    state = replay(records)
    for attempt in state.attempts:
        if attempt.end is None:
            continue
        assert attempt.response is not None
        first, second = attempt.start["markers"]
        own = [one for one in sent if one["marker"] // 10 == first // 10]
        assert [(one["code"], one["marker"]) for one in own] == [
            (2, first - 1),
            *((31, first - 1), (11, first), (21, first)),
            *((32, first - 1), (12, second), (22, second)),
            (4, first - 1),
        ]
        assert own[-1]["tick"] == attempt.response["tick"]
    assert [one["code"] for one in sent].count(1) == len(state.block_starts)


@needs_compiler
@pytest.mark.skipif(not COMPILED, reason="the emulated device moves in compiled code")
def test_codes_reach_the_digital_output_of_the_device(tmp_path, capsys):
    own = devices.create_device("forcedimension", {"kind": "delta"})
    axes = Plane.of(own.settings).axes.ravel()
    body = resting((-0.03, 0.0), name="1234", kind=63, axes=axes, weight=WEIGHT, half_width=0.1, half_height=0.1)
    file = experiment(tmp_path, "")
    with served(MAKER, body) as far_end:
        device = f'name = "forcedimension"\nkind = "delta"\nlibrary = "{far_end.library}"\n'
        text = file.read_text().replace('name = "virtual-joystick"\n', device + "hardware_watchdog = 0.0\n")
        text = text.replace('port = "serial"\naddress = ""\n', 'port = "device"\n')
        hand = text[text.index("[hand]") : text.index("[law]")]
        file.write_text(text.replace(hand, ""))
        out = tmp_path / "out"
        assert main(["experiment", "run", str(file), "--observer", "simulated", "--out", str(out), "--json"]) == 0
        log = far_end.far().log()
    answer = json.loads(capsys.readouterr().out)
    records = read_journal(Path(answer["journal"])).records
    sent = [one for record in records if record.get("name") == "triggers" for one in record["sent"]]
    changes = log[np.flatnonzero(np.diff(log["output"], prepend=0))]
    assert {one["code"] for one in sent} == {1, 2, 31, 11, 21, 32, 12, 22, 4}
    assert changes["output"].tolist() == [code for one in sent for code in (one["code"], 0)]
    for one, at in zip(sent, changes["time"][::2], strict=True):
        assert one["due_ns"] < 1e9 * at < one["sent_ns"]


def test_device_without_a_digital_output_is_refused_before_anything_is_written(tmp_path, capsys):
    file = experiment(tmp_path, "")
    file.write_text(file.read_text().replace('port = "serial"\naddress = ""\n', 'port = "device"\n'))
    out = tmp_path / "out"
    live = ("--observer", "simulated", "--clock", "wall", "--out", str(out))
    assert main(["experiment", "run", str(file), *live]) == 2
    assert "triggers.port = 'device': the driver virtual-joystick has no digital output" in capsys.readouterr().err
    assert not out.exists()


def test_end_of_the_process_or_of_the_output_is_a_fault_and_loses_nothing(receiver, tmp_path):
    with Journal.create(place(tmp_path), HEADER) as journal:

        def write(name, **fields):
            journal.append("event", name=name, **fields)

        with pytest.raises(DeviceFault, match="there is no /dev/ttyUSB99"):
            Triggers(TriggerSettings(port="serial", address="/dev/ttyUSB99"), journal)
        triggers = Triggers(TriggerSettings(port="serial", address=receiver.address), journal, fifo=False)
        triggers.collect(write)
        os.kill(triggers.front._process.pid, signal.SIGKILL)
        triggers.front._process.join()
        with pytest.raises(DeviceFault, match="ended unexpectedly"):
            triggers.collect(write)
        triggers.close()
    assert [record["name"] for record in journal.records[1:]] == ["triggers-opened"]
