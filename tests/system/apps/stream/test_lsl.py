"""The Lab Streaming Layer, received by another process on this machine alone."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from apps.cli import main
from apps.experiment.exports.lsl import start_outlet
from apps.experiment.journal import Journal, make_codes, seal_codes
from apps.front_ends.messages import SessionEnded, SessionStarted
from apps.stream.address import StreamAddress, require_usable
from apps.stream.launch import open_stream
from apps.stream.lsl import LslSink
from apps.stream.ticks import Batch
from haptics.errors import ConfigurationError
from haptics.recording.recording import Recording
from haptics.records import NEUTRAL, Rows
from haptics.trace import Trace
from tests.apps.experiment.design.designs import WEBER, changed
from tests.apps.experiment.journal.records import HEADER, begin_block, place, run_trial

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
def on_this_machine_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = tmp_path / "lsl_api.cfg"
    lines = ("[lab]", "KnownPeers = {127.0.0.1}", "[multicast]", "ResolveScope = machine", "[ports]", "IPv6 = disable")
    config.write_text("\n".join([*lines, "[log]", "level = -3", ""]))
    monkeypatch.setenv("LSLAPICFG", str(config))


@contextmanager
def receiver(ticks: int, markers: int, last: str = "") -> Iterator[subprocess.Popen[str]]:
    """Receive until there are so many ticks and markers, and one of the event `last`."""
    command = [sys.executable, "-c", _RECEIVER, str(ticks), str(markers), last]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def wait_ready(process: subprocess.Popen[str]) -> None:
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"


def received(process: subprocess.Popen[str]) -> dict[str, Any]:
    out, _ = process.communicate(timeout=100)
    told: dict[str, Any] = json.loads(out)
    return told


def started(trace: Path) -> SessionStarted:
    return SessionStarted(
        trace=str(trace),
        recording="",
        device="virtual-joystick",
        model="C",
        causality="impedance",
        rate_hz=RATE,
        hand="",
        workspace=((-1.0, -1.0), (1.0, 1.0)),
        parameters=(),
        choices={},
        hands=(),
        mouse=False,
        force_scale=1.0,
    )


def rows_of(ticks: int) -> Rows:
    """Any numbers; tick 300 was skipped, and two stretches have a marker."""
    rows = np.repeat(NEUTRAL, ticks)
    rows["tick"] = np.delete(np.arange(ticks + 1), 300)
    rows["time"] = rows["tick"] / RATE
    rows["position"] = np.random.default_rng(4).normal(size=(ticks, 2))
    rows["marker"][500:700] = 111
    rows["marker"][900:1200] = 112
    return rows


def write(trace: Trace, rows: Rows) -> None:
    """Let the rows come as a servo would write them, 10 ms together."""
    for first in range(0, len(rows), 10):
        for row in rows[first : first + 10]:
            trace.append(row)
        time.sleep(0.01)


def new_trace(path: Path) -> Trace:
    trace = Trace.create(path)
    trace.origin[:] = ORIGIN
    return trace


def require_every_tick(told: dict[str, Any], rows: Rows) -> None:
    table, labels = np.array(told["samples"]), told["labels"]
    assert told["rate"] == RATE
    np.testing.assert_array_equal(table[:, labels.index("tick")], rows["tick"])
    np.testing.assert_array_equal(table[:, labels.index("position_y_m")], rows["position"][:, 1])
    expected = ORIGIN[0] * 1e-9 + rows["time"]
    np.testing.assert_array_equal(told["stamps"], expected)  # the tick's own stamps, not those of the moment of sending


def test_the_clock_of_the_layer_is_the_monotonic_clock() -> None:
    assert abs(pylsl.local_clock() - time.monotonic()) < 0.01


def test_a_marker_has_the_stamp_of_the_tick_it_begins_with(monkeypatch: pytest.MonkeyPatch) -> None:
    sink = LslSink()
    marked: list[tuple[int, float]] = []
    monkeypatch.setattr(sink, "mark", lambda what, at: marked.append((what["marker"], at)))
    columns = ["utc_s", "time_s", "marker"]
    sink.begin({"columns": columns, "rate_hz": RATE})
    sink.send(Batch(columns, [(0.0, k / RATE, marker) for k, marker in enumerate((0, 0, 7, 7, 0, 8))], origin=10.0))
    sink.close()
    assert marked == [(7, 10.0 + 2 / RATE), (0, 10.0 + 4 / RATE), (8, 10.0 + 5 / RATE)]


def test_every_tick_of_a_run_is_received_with_the_stamp_of_its_tick(tmp_path: Path) -> None:
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


@pytest.mark.parametrize("blind", [False, True])
def test_the_records_of_a_session_are_markers(tmp_path: Path, blind: bool) -> None:
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


def test_without_the_layer_the_remedy_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pylsl", None)
    with pytest.raises(ConfigurationError, match=r"pip install 'haptics\[lsl\]'"):
        require_usable(StreamAddress("lsl"))


# --- an experiment ----------------------------------------------------------------------------------------------------

_ONE_TRIAL = 'kind = "constant"\nlevels = [0.5, 1.0]\nrepeats = 1\n'
_PATIENT = "block = 9\nrest = 0.5\nlate_ticks = 1.0\nlongest_gap = 0.9"


def short_experiment(folder: Path) -> Path:
    """Four trials of two conditions, in one block."""
    head, tail = WEBER.replace("procedure = { most_trials = 3 }\n", "").split('kind = "staircase"')
    text = head + _ONE_TRIAL + tail[tail.index("[catch]") :]
    return changed(folder, text=text.replace("easy = 0.2", "easy = 0.0\nnull = 0.0").replace("block = 5", _PATIENT))


def test_an_experiment_is_streamed_to_its_last_record(tmp_path: Path) -> None:
    """Every answer is received, and of the ticks all since the receiver was there, without a gap."""
    command = [sys.executable, "-m", "apps", "experiment", "run", str(short_experiment(tmp_path)), "--json"]
    command += ["--observer", "simulated", "--clock", "wall", "--lsl", "--out", str(tmp_path / "out")]
    with receiver(1000, 0, "end") as process, subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as run:
        wait_ready(process)
        answer = json.loads(run.communicate(timeout=100)[0])
        told = received(process)
    assert answer["trials"] == 4
    events = [what["event"] for what, _ in told["markers"] if what["event"] in ("response", "end")]
    assert events == ["response"] * 4 + ["end"]
    ticks = np.array(told["samples"])[:, told["labels"].index("tick")].astype(int)
    recorded = Recording(Path(answer["folder"]) / "blocks" / "block-01").rows["tick"]
    np.testing.assert_array_equal(ticks, recorded[recorded >= ticks[0]][: len(ticks)])


def test_a_session_without_a_clock_is_not_streamed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["experiment", "run", str(short_experiment(tmp_path)), "--observer", "simulated", "--lsl"]
    assert main([*command, "--out", str(tmp_path / "out")]) == 2
    assert "--clock wall" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
