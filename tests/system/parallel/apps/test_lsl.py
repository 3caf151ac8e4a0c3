"""The Lab Streaming Layer, received by another process of this machine."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from apps.cli import main
from apps.experiment.export.lsl import start_outlet
from apps.experiment.journal import Journal
from apps.experiment.journal.blinding import make_codes, seal_codes
from apps.front_ends.messages import SessionEnded
from apps.stream import StreamAddress, open_stream, require_usable
from haptics.errors import ConfigurationError
from haptics.recording.recording import Recording
from haptics.records import NEUTRAL
from haptics.trace import Trace
from tests.apps.experiment.designs import WEBER, changed
from tests.apps.experiment.journal.records import HEADER, begin_block, place, run_trial
from tests.apps.experiment.screens.driving import started
from tests.processes import program

try:
    import pylsl
except (ImportError, RuntimeError) as error:  # RuntimeError: its library is not there
    pytest.skip(f"pylsl cannot be used ({error})", allow_module_level=True)


TICKS = 2000
RATE = 1000.0
ORIGIN = (7_000_000_000, 1_790_000_000_000_000_000)
_RECEIVER = """
import json, sys, time
import pylsl

ticks, count, last = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
inlets = {}
for name in ("haptics ticks", "haptics markers"):
    found = pylsl.resolve_byprop("name", name, timeout=60.0)
    inlets[name] = pylsl.StreamInlet(found[0], max_buflen=60)
    inlets[name].open_stream(timeout=60.0)
print("ready", flush=True)
samples, stamps, markers = [], [], []
latest = time.monotonic() + 80.0
seen = {""}
while (len(samples) < ticks or len(markers) < count or last not in seen) and time.monotonic() < latest:
    more, when = inlets["haptics ticks"].pull_chunk(timeout=0.05)
    samples += more
    stamps += when
    more, when = inlets["haptics markers"].pull_chunk(timeout=0.0)
    markers += [[json.loads(text), at] for (text,), at in zip(more, when)]
    seen |= {what["event"] for what, _ in markers}
info = inlets["haptics ticks"].info()
channel, labels = info.desc().child("channels").first_child(), []
while not channel.empty():
    labels.append(channel.child_value("label"))
    channel = channel.next_sibling()
told = {"labels": labels, "rate": info.nominal_srate(), "samples": samples, "stamps": stamps, "markers": markers}
print(json.dumps(told), flush=True)
"""


@pytest.fixture(autouse=True)
def on_this_machine_alone(tmp_path, monkeypatch):
    config = tmp_path / "lsl_api.cfg"
    first = 16571 + 100 * int(os.environ.get("PYTEST_XDIST_WORKER", "gw0")[2:])  # other workers have other streams
    lines = ("[lab]", "KnownPeers = {127.0.0.1}", "[multicast]", "ResolveScope = machine", "[ports]", "IPv6 = disable")
    lines += (f"MulticastPort = {first}", f"BasePort = {first + 1}")
    config.write_text("\n".join([*lines, "[log]", "level = -3", ""]))
    monkeypatch.setenv("LSLAPICFG", str(config))


def receiver(ticks, markers, last=""):
    """Receive a number of ticks and markers, and a marker of the event `last`."""
    return program("-c", _RECEIVER, str(ticks), str(markers), last, stdout=subprocess.PIPE)


def wait_ready(process):
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"


def received(process):
    return dict(json.loads(process.communicate(timeout=100)[0]))


def rows_of(ticks):
    """Return rows of random numbers; tick 300 is skipped, and two intervals have a marker."""
    rows = np.repeat(NEUTRAL, ticks)
    rows["tick"] = np.delete(np.arange(ticks + 1), 300)
    rows["time"] = rows["tick"] / RATE
    rows["position"] = np.random.default_rng(4).normal(size=(ticks, 2))
    rows["marker"][500:700] = 111
    rows["marker"][900:1200] = 112
    return rows


def write(trace, rows):
    """Append the rows in real time, in batches of 10 ms."""
    for first in range(0, len(rows), 10):
        for row in rows[first : first + 10]:
            trace.append(row)
        time.sleep(0.01)


def new_trace(path):
    trace = Trace.create(path)
    trace.origin[:] = ORIGIN
    return trace


def require_every_tick(told, rows):
    table, labels = np.array(told["samples"]), told["labels"]
    assert told["rate"] == RATE
    np.testing.assert_array_equal(table[:, labels.index("tick")], rows["tick"])
    np.testing.assert_array_equal(table[:, labels.index("position_y_m")], rows["position"][:, 1])
    expected = ORIGIN[0] * 1e-9 + rows["time"]
    np.testing.assert_array_equal(told["stamps"], expected)  # time stamps of the ticks, not of the transmission


def test_clock_of_the_layer_is_the_monotonic_clock():
    assert abs(pylsl.local_clock() - time.monotonic()) < 0.01


def test_every_tick_is_received_with_its_time_stamp(tmp_path):
    stream = StreamAddress("lsl")
    require_usable(stream)
    rows = rows_of(TICKS)
    front = open_stream(stream)
    try:
        trace = new_trace(tmp_path / "trace")
        front.send(started(trace.path))
        with receiver(TICKS, 4) as process:
            wait_ready(process)
            write(trace, rows)
            told = received(process)
        front.send(SessionEnded("completed"))
    finally:
        front.close()
    require_every_tick(told, rows)
    times = ORIGIN[0] * 1e-9 + rows["time"]
    expected = [(111, times[500]), (0, times[700]), (112, times[900]), (0, times[1200])]
    assert [(what["marker"], at) for what, at in told["markers"]] == expected


_TRIGGERS = """
import json, os
import pylsl
from apps.experiment.triggers.ports import STREAM, TriggerSettings, open_port

port = open_port(TriggerSettings(port="lsl"))
(stream,) = pylsl.resolve_byprop("name", STREAM, timeout=60.0)
inlet = pylsl.StreamInlet(stream)
inlet.open_stream(timeout=60.0)
for code, due in ((31, 7_000_000_000), (255, 7_000_000_001), (4, 9_123_456_789)):
    port.write(code, due)
kind = [stream.type(), stream.channel_count(), stream.nominal_srate()]
print(json.dumps([kind, [inlet.pull_sample(timeout=10.0) for _ in range(3)]]), flush=True)
os._exit(0)  # the library has no time limit for its end
"""


def test_trigger_has_the_time_of_its_event():
    with program("-c", _TRIGGERS, stdout=subprocess.PIPE) as process:
        kind, samples = json.loads(process.communicate(timeout=100)[0])
    assert kind == ["Markers", 1, 0.0]
    sent = [(31, 7_000_000_000), (255, 7_000_000_001), (4, 9_123_456_789)]
    assert [(sample, round(1e9 * at)) for sample, at in samples] == [([code], due) for code, due in sent]


@pytest.mark.parametrize("blind", [False, True])
def test_records_of_a_session_are_markers(tmp_path, blind):
    where = place(tmp_path / "out")
    seal = seal_codes(where, make_codes([{"condition": "low"}])) if blind else None
    with Journal.create(where, HEADER | {"blind": seal}) as journal:
        front = start_outlet(where.journal, "impedance", RATE)
        try:
            with receiver(1000, 9) as process:
                wait_ready(process)  # before the first block
                trace = new_trace(tmp_path / "trace")
                front.send(started(trace.path))
                begin_block(journal)
                write(trace, rows_of(1000))
                run_trial(journal, 3)
                journal.append("event", name="block-end", block=1)
                journal.append("end", reason="completed", trials=1, repeated=0)
                told = received(process)
        finally:
            front.close()
    require_every_tick(told, rows_of(1000))
    records = {what["event"]: (what, at) for what, at in told["markers"] if what["event"] != "marker"}
    assert list(records) == ["block_start", "trial_start", "response", "trial_end", "event", "end"]
    response, at = records["response"]
    assert (response["response"], response["tick"]) == (2, 12000)
    assert at == ORIGIN[0] * 1e-9 + 12.0
    start, at = records["trial_start"]
    assert at == journal.records[2]["monotonic_ns"] * 1e-9
    assert ("level" in start, "condition" in start, "correct" in response) == (not blind,) * 3


def test_missing_layer_is_reported_with_the_remedy(monkeypatch):
    monkeypatch.setitem(sys.modules, "pylsl", None)
    with pytest.raises(ConfigurationError, match=r"pip install 'haptics\[lsl\]'"):
        require_usable(StreamAddress("lsl"))


_ONE_TRIAL = 'kind = "constant"\nlevels = [0.5, 1.0]\nrepeats = 1\n'
_PATIENT = "block = 9\nrest = 0.5\nlate_ticks = 1.0\nlongest_gap = 0.9"


def short_experiment(folder):
    """Four trials of two conditions, in one block."""
    head, tail = WEBER.replace("procedure = { most_trials = 3 }\n", "").split('kind = "staircase"')
    text = head + _ONE_TRIAL + tail[tail.index("[catch]") :]
    return changed(folder, text=text.replace("easy = 0.2", "easy = 0.0\nnull = 0.0").replace("block = 5", _PATIENT))


def test_experiment_is_streamed_to_its_last_record(tmp_path):
    """Every answer is received, and every tick since the receiver was connected."""
    command = ["-m", "apps", "experiment", "run", str(short_experiment(tmp_path)), "--json"]
    command += ["--observer", "simulated", "--clock", "wall", "--lsl", "--out", str(tmp_path / "out")]
    with receiver(1000, 0, "end") as process, program(*command, stdout=subprocess.PIPE) as run:
        wait_ready(process)
        answer = json.loads(run.communicate(timeout=100)[0])
        told = received(process)
    assert answer["trials"] == 4
    events = [what["event"] for what, _ in told["markers"] if what["event"] in ("response", "end")]
    assert events == ["response"] * 4 + ["end"]
    ticks = np.array(told["samples"])[:, told["labels"].index("tick")].astype(int)
    recorded = Recording(Path(answer["folder"]) / "blocks" / "block-01").rows["tick"]
    np.testing.assert_array_equal(ticks, recorded[recorded >= ticks[0]][: len(ticks)])


def test_session_without_a_clock_is_not_streamed(tmp_path, capsys):
    command = ["experiment", "run", str(short_experiment(tmp_path)), "--observer", "simulated", "--lsl"]
    assert main([*command, "--out", str(tmp_path / "out")]) == 2
    assert "--clock wall" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
