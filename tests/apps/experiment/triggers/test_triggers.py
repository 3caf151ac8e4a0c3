"""Triggers: settings, detection of events in rows, order and times of codes, outputs, log of a killed session."""

from __future__ import annotations

import contextlib
import gc
import json
import multiprocessing
import os
import signal
import socket
import threading

import numpy as np
import pytest

from apps.cli import main
from apps.experiment.design import read_design
from apps.experiment.journal import Journal, replay
from apps.experiment.report.data import Person, SessionData
from apps.experiment.report.page import trigger_table
from apps.experiment.triggers import process
from apps.experiment.triggers.ports import EVENTS, TriggerSettings, open_port
from apps.experiment.triggers.process import Detector, Due, Event, Pulses
from apps.experiment.triggers.session import LOG, Triggers, _recover
from apps.front_ends import front_end
from apps.front_ends.messages import Quit
from haptics.errors import ConfigurationError, DeviceFault, DeviceOpenError, RecordingError
from haptics.records import NEUTRAL
from haptics.shared import SharedFile
from haptics.trace import Trace
from tests.apps.experiment.designs import WEBER, changed
from tests.apps.experiment.journal.records import HEADER, place
from tests.apps.experiment.screens.driving import started

ORIGIN = 5_000_000_000


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ('port = "usb"', "triggers.port = 'usb': must be one of"),
        ('port = "serial"', "triggers.address = '': must be a device file"),
        ('port = "loopback"\naddress = "/dev/ttyUSB0"', "has no address; leave it out"),
        ('port = "socket"\naddress = "box"', "must be HOST:PORT"),
        ('port = "loopback"\nspeed = 115201', "triggers.speed = 115201: must be one of"),
        ('port = "loopback"\nreset = 2.0', "triggers.reset"),
        ('port = "lsl"\nreset = 0.005', "an LSL stream has no level"),
        ('port = "loopback"\ncodes = { onset = 1 }', "triggers.codes.onset"),
        (
            'port = "loopback"\ncodes = { stimulus = 256 }',
            "triggers.codes.stimulus = 256: must be a code from 1 to 255",
        ),
        ('port = "loopback"\ncodes = { trial = [1, 2] }', "triggers.codes.trial"),
        ('port = "loopback"\ncodes = { answer = { "1" = true } }', "triggers.codes.answer"),
        ('port = "loopback"\ncodes = { answer = { "yes" = 3 } }', "codes.answer.yes: is no answer to this task"),
    ],
)
def test_wrong_setting_is_refused_with_name_and_line(table, words, tmp_path):
    with pytest.raises(ConfigurationError) as error:
        read_design(changed(tmp_path, text=f"{WEBER}\n[triggers]\n{table}\n"))
    line = len(WEBER.splitlines()) + 2 + len(table.splitlines())
    assert words in str(error.value)
    assert f"weber.toml:{line}" in str(error.value) or f"weber.toml:{line - 1}" in str(error.value)


def test_absent_output_is_refused_before_anything_is_written(tmp_path, capsys):
    file = changed(tmp_path, text=f'{WEBER}\n[triggers]\nport = "serial"\naddress = "/dev/ttyUSB99"\n')
    arguments = ["experiment", "run", str(file), "--observer", "simulated", "--out", str(tmp_path / "out")]
    assert main([*arguments, "--clock", "wall"]) != 0
    assert "there is no /dev/ttyUSB99" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_codes_by_interval_and_answer():
    settings = TriggerSettings(codes={"interval_begin": 5, "stimulus": [7], "answer": {"yes": 8}, "trial": 0})
    assert [settings.code("interval_begin", k) for k in (1, 2)] == [5, 5]
    assert [settings.code("stimulus", k) for k in (1, 2)] == [7, 0]
    assert [settings.code("answer", answer=answer) for answer in ("yes", "no")] == [8, 0]
    assert (settings.code("trial"), settings.code("block")) == (0, EVENTS["block"])
    assert [settings.code("interval_end", k) for k in (1, 2, 3)] == [21, 22, 0]


def trial_of_rows():
    """Return rows of a trial: the gate opens at 100 and 400, the intervals begin at 150 and 450 and last 100 ticks."""
    rows = np.repeat(NEUTRAL, 700)
    rows["tick"] = np.arange(700)
    rows["gate"], rows["marker"] = 0.0, 110
    rows["gate"][:20] = np.linspace(1.0, 0.05, 20)  # closes at the beginning
    rows["marker"][:30] = 0
    rows["period_error"] = 20e-6
    for number, opens in ((1, 100), (2, 400)):
        rows["gate"][opens : opens + 150] = np.clip(np.arange(1, 151) / 50, 0.0, 1.0)
        rows["marker"][opens + 50 : opens + 150] = 110 + number
    return rows


@pytest.mark.parametrize("batch", [1, 7, 700])
def test_events_are_found_in_rows_at_their_ticks(batch):
    detector, rows, found = Detector(TriggerSettings(), 1e-3), trial_of_rows(), []
    for first in range(0, len(rows), batch):
        found += detector.events(rows[first : first + batch], ORIGIN)
    assert [(one.event, one.code, one.tick, one.marker) for one in found] == [
        ("block", 1, 0, 0),
        ("stimulus", 31, 100, 110),
        ("interval_begin", 11, 150, 111),
        ("interval_end", 21, 250, 111),
        ("stimulus", 32, 400, 110),
        ("interval_begin", 12, 450, 112),
        ("interval_end", 22, 550, 112),
    ]
    assert [one.due_ns for one in found] == [ORIGIN + 1_000_000 * one.tick + 20_000 for one in found]


def test_intervals_are_counted_anew_in_every_attempt_and_run():
    detector, rows = Detector(TriggerSettings(), 1e-3), trial_of_rows()
    codes = [one.code for one in detector.events(rows[:260], ORIGIN)]  # aborted after its first interval
    again = trial_of_rows()
    again["marker"][again["marker"] > 0] += 10
    codes += [one.code for one in detector.events(again[30:], ORIGIN)]
    assert codes == [1, 31, 11, 21, 31, 11, 21, 32, 12, 22]


class Wire:
    """Clock and output in virtual time; a write takes 10 us."""

    def __init__(self, reset):
        self.now, self.written, self.sent = 0, [], []
        self.pulses = Pulses(self.write, self.sent.append, reset, clock=lambda: self.now)

    def write(self, code, due):
        self.now += 10_000
        self.written.append((code, self.now))


def due(number):
    return Due("trial", 1 + number % 255, number, 0, 1000 * number)


def test_every_code_of_a_burst_is_a_pulse_of_its_own_in_order():
    wire = Wire(reset=0.004)
    wire.pulses.add(due(number) for number in range(300))
    while (wait := wire.pulses.wait) is not None:
        wire.now += round(wait * 1e9)
        wire.pulses.run()
    codes = [code for code, _ in wire.written]
    assert codes == [code for number in range(300) for code in (due(number).code, 0)]
    assert np.diff([at for _, at in wire.written]).min() >= 4_000_000
    assert [one["tick"] for one in wire.sent] == list(range(300))
    assert [one["sent_ns"] for one in wire.sent] == [at for code, at in wire.written if code]


def test_without_reset_codes_follow_at_once():
    wire = Wire(reset=0.0)
    wire.pulses.add(due(number) for number in range(3))
    wire.pulses.run()
    assert wire.written == [(1, 10_000), (2, 20_000), (3, 30_000)] and wire.pulses.wait is None


@pytest.fixture
def ticks():
    """Return a trace of the first ticks of a run, each 30 us late, and the message with which the run begins."""
    with contextlib.closing(SharedFile("trace")) as file:
        trace = Trace.create(file.path, capacity=64)
        trace.origin[:] = ORIGIN
        for tick in range(50):
            row = NEUTRAL.copy()
            row["tick"], row["time"], row["period_error"] = tick, 1e-3 * tick, 30e-6
            trace.append(row)
        yield trace, started(file.path)


def follow(tmp_path, settings, *messages):
    """Run the process of the triggers in a thread until it has ended; return the records of its log."""
    log = tmp_path / "log"
    log.touch()
    ours, theirs = multiprocessing.Pipe()
    thread = threading.Thread(target=process.main, args=(theirs, settings, log, False, None))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(signal, "signal", lambda *arguments: None)  # not in a thread
        patch.setattr(gc, "freeze", lambda: None)
        thread.start()
        for message in (*messages, Quit()):
            ours.send(message)
        thread.join(30.0)
    assert not thread.is_alive()
    return [json.loads(line) for line in log.read_text().splitlines()]


def test_event_of_the_experiment_has_the_start_of_its_tick(tmp_path, ticks):
    opened, block, answer = follow(tmp_path, TriggerSettings(port="loopback"), ticks[1], Event("answer", 4, 20, 110))
    assert opened == {"opened": "loopback"} and (block["event"], answer["event"]) == ("block", "answer")
    assert (answer["tick"], answer["due_ns"]) == (20, ORIGIN + 20_030_000)


def test_codes_that_come_much_too_late_stop_the_session(tmp_path, ticks):
    events = [Event("trial", 2, 20, 110) for _ in range(2 * process.MOST_WAITING)]
    records = follow(tmp_path, TriggerSettings(port="loopback", reset=1.0), ticks[1], *events)
    assert "codes wait for the output" in records[-1]["error"] and "triggers.reset = 1 s" in records[-1]["error"]


def test_codes_that_wait_at_the_end_of_the_session_are_sent(tmp_path, ticks, monkeypatch):
    """Ten codes of 0.1 s each take longer than a process of a front end is usually given to end."""
    monkeypatch.setattr(front_end, "_LAST_WORDS", 0.3)
    found = []
    with Journal.create(place(tmp_path), HEADER) as journal:
        settings = TriggerSettings(port="loopback", reset=0.05)
        with contextlib.closing(Triggers(settings, journal, fifo=False)) as triggers:
            triggers.front.send(ticks[1])
            for _ in range(10):
                triggers.send("trial", 20, 110)
            triggers.finish(lambda name, sent: found.extend(sent))
    assert [one["code"] for one in found] == [1, *[2] * 10]


def test_event_without_a_run_is_an_error(tmp_path):
    *_, last = follow(tmp_path, TriggerSettings(port="loopback"), Event("trial", 2, 20, 110))
    assert "'trial' came without a run" in last["error"]


# --- outputs ----------------------------------------------------------------------------------------------------------


def test_serial_port_receives_a_byte_for_each_code():
    far, near = os.openpty()
    port = open_port(TriggerSettings(port="serial", address=os.ttyname(near), speed=9600))
    for code in (1, 10, 13, 17, 19, 255, 0):  # bytes that a terminal in cooked mode would change
        port.write(code, 0)
    received = b""
    while len(received) < 7:  # a pseudo terminal passes bytes on from time to time
        received += os.read(far, 100)
    assert received == bytes((1, 10, 13, 17, 19, 255, 0))
    os.close(far)
    with pytest.raises(DeviceFault, match="did not accept code 3"):
        port.write(3, 0)
    port.close()
    os.close(near)
    with pytest.raises(DeviceOpenError, match="it is no serial port"):
        open_port(TriggerSettings(port="serial", address="/dev/null"))


def test_socket_receives_a_byte_for_each_code():
    with socket.create_server(("127.0.0.1", 0)) as server:
        settings = TriggerSettings(port="socket", address=f"127.0.0.1:{server.getsockname()[1]}")
        port = open_port(settings)
        with server.accept()[0] as line:
            for code in (7, 0, 255):
                port.write(code, 0)
            assert line.recv(3, socket.MSG_WAITALL) == bytes((7, 0, 255))
        port.close()
    with pytest.raises(DeviceOpenError, match="cannot be reached"):
        open_port(settings)


def test_parallel_port_uses_the_requests_of_ppdev(monkeypatch, tmp_path):
    requests, file = [], tmp_path / "parport0"
    file.touch()
    settings = TriggerSettings(port="parallel", address=str(file))
    with pytest.raises(DeviceOpenError, match="is no parallel port"):
        open_port(settings)
    monkeypatch.setattr("fcntl.ioctl", lambda descriptor, *request: requests.append(request))
    port = open_port(settings)
    port.write(255, 0)
    port.close()
    # include/uapi/linux/ppdev.h: _IO('p', 0x8b), _IOW('p', 0x86, unsigned char), _IO('p', 0x8c)
    group = ord("p") << 8
    assert requests == [(group | 0x8B,), (1 << 30 | 1 << 16 | group | 0x86, b"\xff"), (group | 0x8C,)]


def test_loopback_reads_every_code_back():
    port = open_port(TriggerSettings(port="loopback"))
    for code in range(256):
        port.write(code, 0)
    port.close()


# --- log of a killed session ------------------------------------------------------------------------------------------


def line(number):
    return {
        "event": "trial",
        "code": 2,
        "tick": number,
        "marker": 110,
        "due_ns": 1000 * number,
        "sent_ns": 1001 * number,
    }


def log_of(folder, *records, tail=""):
    (folder / LOG).write_text("".join(json.dumps(one) + "\n" for one in records) + tail)
    return folder / LOG


def test_log_of_a_killed_session_is_added_to_the_journal_once(tmp_path):
    with Journal.create(place(tmp_path), HEADER) as journal:
        journal.append("event", name="triggers", sent=[line(1)])  # of an earlier run
        journal.append("event", name="triggers-opened", port="serial", address="/dev/ttyUSB0")
        journal.append("event", name="triggers", sent=[line(2), line(3)])
        lines = [line(number) for number in range(2, 300)]
        path = log_of(journal.place.folder, {"opened": "serial"}, *lines, tail='{"event": "tri')
        _recover(path, journal)
        _recover(path, journal)
        sent = [one for record in journal.records[4:] for one in record["sent"]]
    assert [one["tick"] for one in sent] == list(range(4, 300))
    assert not path.exists()


@pytest.mark.parametrize(
    "record",
    [
        {**line(1), "code": 0},
        {**line(1), "event": "name"},
        {**line(1), "tick": "1"},
        {**line(1), "more": 1},
        {**line(1), "due_ns": 2**70},
        ["opened"],
        {"text": "x" * 70_000},
    ],
    ids=lambda record: str(record)[-20:],
)
def test_log_of_a_stranger_is_refused(record, tmp_path):
    with Journal.create(place(tmp_path), HEADER) as journal:
        path = log_of(journal.place.folder, record)
        with pytest.raises(RecordingError, match="move it away"):
            _recover(path, journal)
        path.rename(path.with_suffix(".old"))
        path.symlink_to(path.with_suffix(".old"))
        with pytest.raises(RecordingError, match="move it away"):
            _recover(path, journal)
        assert len(journal.records) == 1


# --- report -----------------------------------------------------------------------------------------------------------


def test_report_states_delays_by_event_and_ignores_what_is_no_code(tmp_path):
    with Journal.create(place(tmp_path), HEADER) as journal:
        sent = [{**line(1), "due_ns": 0, "sent_ns": 1_000_000 * number} for number in (1, 2, 6)]
        journal.append("event", name="triggers", sent=[*sent, {"event": "trial"}, 4])
        journal.append("event", name="triggers", sent="none")
        session = SessionData(journal.place, replay(journal.records), [], [], [])
    assert session.trigger_delays["trial"] == pytest.approx([0.001, 0.002, 0.006])
    text = trigger_table(Person("P01", (session,)))
    assert [cell in text for cell in (">3<", ">2.00<", ">6.00<", ">2.16<")] == [True] * 4
