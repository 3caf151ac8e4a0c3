"""Protocols of the ODrive driver: packets, endpoint table, error texts, request line, text line and rounds."""

import itertools
import json
import queue
import struct
import sys
import time
import warnings
from types import SimpleNamespace
from typing import cast

import pytest
import usb.backend.libusb1
from hypothesis import given
from hypothesis import strategies as st

from devices.arm.motors.errors import PARTS, explain
from devices.arm.motors.native import (
    Line,
    checksum,
    connect,
    fetch,
    identification,
    parse_table,
    request,
    response,
    table_folder,
    wait_all,
)
from devices.arm.motors.odrive import LONGEST, Answer, Rounds, TextLine, TextRounds
from devices.arm.motors.settings import OdriveSettings
from devices.arm.motors.stage import CLOSED_LOOP, Streaming
from devices.arm.motors.usb import open_drive
from devices.common.bus import TransferError, Trouble
from devices.emulators.odrive.board import EmulatedOdrive, EmulatedOdriveBackend
from devices.emulators.odrive.endpoints import rows, table_text
from devices.emulators.odrive.firmware import crc16
from devices.emulators.odrive.text import TextProtocol
from haptics.errors import DeviceFault, DeviceOpenError
from tests.devices.arm.odrive_rig import IDS, alone

# Checksum of the table of firmware 0.5.6.
CRC_056 = 0xC1A0

TEXT = table_text()


@pytest.mark.parametrize(
    ("sequence", "name", "form", "value", "length", "acknowledged", "packet"),
    [
        (0x038F, "axis0.encoder.pos_estimate", None, None, 4, True, "8f03 4881 0400 a0c1"),
        (0x0392, "axis0.controller.input_torque", "<f", 0.05, 0, True, "9203 0681 0000 cdcc4c3d a0c1"),
        (0x039D, "axis0.controller.input_torque", "<f", 0.05, 0, False, "9d03 0601 0000 cdcc4c3d a0c1"),
        (0x0398, "axis0.watchdog_feed", None, None, 0, True, "9803 bf81 0000 a0c1"),
        (0x0395, "axis0.requested_state", "<B", 8, 0, True, "9503 8780 0000 08 a0c1"),
    ],
)
def test_requests_match_the_manufacturer_client(sequence, name, form, value, length, acknowledged, packet):
    """Bytes of the maker's client to firmware 0.5.6; the addresses are from our excerpt of its table."""
    number = next(row.number for row in rows() if row.path == name)
    payload = struct.pack(form, value) if form else b""
    made = request(sequence, number, payload, length, CRC_056, acknowledged=acknowledged)
    assert made == bytes.fromhex(packet)


def test_responses_are_recognised():
    assert response(bytes.fromhex("8f83 0000a03f")) == (0x038F, struct.pack("<f", 1.25))
    assert response(bytes.fromhex("9283")) == (0x0392, b"")
    assert response(bytes.fromhex("8f03 4881 0400 a0c1")) is None
    assert response(b"\x8f") is None
    assert response(b"") is None


def test_known_checksums():
    assert checksum(b"123456789", 0x1337) == 0xAA01
    assert checksum(bytes.fromhex("808000800002000000000100"), 0x1337) == 0xA3AB


@pytest.mark.parametrize("count", [0, 100, 0x7FC0, (1 << 40) + 3])
def test_sequence_numbers_mark_requests(line, pipes, count):
    line._count = count
    for _ in range(400):
        line.request(1, acknowledged=False)
    sequences = [struct.unpack_from("<H", packet)[0] for packet in pipes.written]
    for sequence in sequences:
        assert sequence & 0x80
        assert not sequence & 0x8000
        assert response(struct.pack("<H", sequence)) is None
    assert all(len(set(sequences[first : first + 128])) == 128 for first in range(len(sequences) - 127))


# --- the table -------------------------------------------------------------------------------------------------------


def test_table_has_every_endpoint():
    table = parse_table(TEXT)
    for row in rows():
        if row.kind == "function":
            function = table.endpoints[f"{row.path}()"]
            assert function.number == row.number
            assert [part.number for part in function.inputs] == [number for _, _, number in row.inputs]
            assert [part.number for part in function.outputs] == [number for _, _, number in row.outputs]
        else:
            assert table.endpoints[row.path].number == row.number
    assert table.checksum == crc16(TEXT, 1)


def test_table_has_the_addresses_of_firmware_0_5_6():
    properties = """vbus_voltage 2 serial_number 5 axis0.error 130 axis0.current_state 134 axis1.error 448
        axis0.config.watchdog_timeout 145 axis0.config.enable_watchdog 146 axis0.controller.input_pos 260
        axis0.controller.input_vel 261 axis0.controller.config.control_mode 275 axis0.controller.config.input_mode 276
        axis0.encoder.pos_estimate 328 axis0.encoder.vel_estimate 334 axis1.requested_state 453
        axis1.controller.input_torque 580 axis1.encoder.pos_estimate 646 axis1.encoder.vel_estimate 652""".split()
    functions = "axis0.watchdog_feed() 447 axis1.watchdog_feed() 765 clear_errors() 787".split()
    known, found = properties + functions, parse_table(TEXT).endpoints
    assert [found[name].number for name in known[::2]] == [int(number) for number in known[1::2]]


def test_table_omits_unknown_types():
    kinds = {"a": "json", "b": "endpoint_ref", "c": "bool", "d": "float64"}
    members = [{"name": name, "id": 1, "type": kind} for name, kind in kinds.items()]
    assert set(parse_table(json.dumps(members).encode()).endpoints) == {"c"}


def one_endpoint(number, kind="bool"):
    return f'[{{"name": "a", "id": {number}, "type": "{kind}"}}]'.encode()


ADDRESSES = ["70000", "32768", "-1", "1e999", "1.5", "true", '"7"', "null", "1" + "0" * 99]


@pytest.mark.parametrize(
    "text",
    [b"", b"[", b"{}x", b'[{"name":"a"}]', b"[1]"]
    + [one_endpoint(number, kind) for kind in ("bool", "function") for number in ADDRESSES],
)
def test_invalid_table_is_rejected(text):
    assert parse_table(one_endpoint(32767)).endpoints["a"].number == 32767  # the largest address
    with pytest.raises(DeviceOpenError, match="cannot be understood") as caught:
        parse_table(text)
    assert len(str(caught.value)) < 150


class Pages:
    """A drive's text, in pieces; counts how often it is read."""

    def __init__(self, text=TEXT):
        self.text, self.reads = text, 0

    def __call__(self, offset):
        self.reads += 1
        return self.text[offset : offset + 61]


def test_table_is_read_once_and_cached(tmp_path):
    pages, version = Pages(), identification(TEXT)
    folder = tmp_path / "not" / "there"
    first = fetch(version, pages, folder)
    assert pages.reads == -(-len(TEXT) // 61) + 1
    second = fetch(version, pages, folder)
    assert pages.reads == -(-len(TEXT) // 61) + 1
    assert first.checksum == second.checksum
    assert first.endpoints.keys() == second.endpoints.keys()
    assert [file.name for file in folder.iterdir()] == [f"{version:08x}.json"]


@pytest.mark.parametrize("kept", [b"", TEXT[:-1], TEXT.replace(b"260", b"261")])
def test_damaged_cached_table_is_read_again(tmp_path, kept):
    version = identification(TEXT)
    file = tmp_path / f"{version:08x}.json"
    file.write_bytes(kept)
    assert fetch(version, Pages(), tmp_path).endpoints["axis0.controller.input_pos"].number == 260
    assert file.read_bytes() == TEXT


def test_table_is_read_every_time_without_a_cache(tmp_path):
    pages = Pages()
    (tmp_path / "file").write_text("in the way")
    for folder in (None, tmp_path / "file"):
        assert fetch(identification(TEXT), pages, folder).endpoints
    assert pages.reads == 2 * (-(-len(TEXT) // 61) + 1)


def test_garbled_or_endless_table_is_rejected_and_not_cached(tmp_path):
    with pytest.raises(DeviceOpenError, match="garbled"):
        fetch(identification(TEXT), Pages(TEXT.replace(b"260", b"261")), tmp_path)
    assert not list(tmp_path.iterdir())
    with pytest.raises(DeviceOpenError, match="garbled"):
        fetch(1, lambda offset: bytes(4096), None)


def test_table_folder_is_in_the_user_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert table_folder() == tmp_path / "haptics" / "odrive"


# --- error texts ------------------------------------------------------------------------------------------------------


def test_error_text_names_parts_and_remedy():
    errors = {"": 0x40 | 0x800, "motor": 1 << 3, "encoder": 0, "controller": 0}
    told = explain(1, errors)
    assert told.startswith("axis 1: the watchdog expired; motor: fault of the gate driver")
    assert "start again" in told
    assert "the motor failed" not in told  # it only says where to look


@given(st.sampled_from(list(PARTS)), st.integers(0, 40))
def test_every_error_bit_has_a_text(part, bit):
    assert explain(0, {part: 1 << bit})
    assert explain(0, dict.fromkeys(PARTS, 0)) == ""
    assert explain(0, {"": 1 << 30}) == "axis 0: error bit 30"
    assert explain(0, {"": 0x100}) == "axis 0: the encoder failed"


# --- request line -----------------------------------------------------------------------------------------------------


class FakePipes:
    """Pipes that record writes and return queued packets."""

    def __init__(self, *packets):
        self.written = []
        self.writes = 0
        self.coming = queue.Queue()
        for packet in packets:
            self.coming.put(packet)
        self.closed = False

    def write(self, *data):
        self.written.extend(data)
        self.writes += 1

    def read(self, timeout):
        try:
            packet = self.coming.get(timeout=timeout)
        except queue.Empty:
            return None
        if isinstance(packet, TransferError):
            raise packet
        return packet

    def close(self):
        self.closed = True

    def answer(self, request, data):
        self.coming.put(struct.pack("<H", struct.unpack_from("<H", request)[0] | 0x8000) + data)


@pytest.fixture
def pipes():
    return FakePipes()


@pytest.fixture
def line(pipes):
    line = Line(pipes)
    yield line
    line.close()
    assert pipes.closed


def test_batched_requests_are_written_at_once_in_order(line, pipes):
    with line.batch():
        line.request(7, b"x", acknowledged=False)
        tickets = [line.request(number, b"", 1) for number in (1, 2)]
        assert not pipes.written
    line.request(8, b"y", acknowledged=False)
    assert pipes.writes == 2
    assert [struct.unpack_from("<H", packet, 2)[0] & 0x7FFF for packet in pipes.written] == [7, 1, 2, 8]
    pipes.answer(pipes.written[1], b"a")
    pipes.answer(pipes.written[2], b"b")
    assert wait_all(line, tickets, 5.0) == [b"a", b"b"]


def test_failed_batch_writes_nothing(line, pipes):
    with pytest.raises(struct.error), line.batch():
        line.request(7, b"x", acknowledged=False)
        line.request(1, b"", 1 << 20)
    line.request(8, b"y", acknowledged=False)
    assert len(pipes.written) == 1


def test_lost_answer_does_not_shift_the_others(line, pipes):
    tickets = [line.request(number, b"", 1) for number in (1, 2, 3)]
    assert len(pipes.written) == 3  # all of them before any answer
    pipes.answer(pipes.written[0], b"a")
    pipes.answer(pipes.written[2], b"c")
    assert line.collect(tickets[0], 5.0) == b"a"
    assert line.collect(tickets[2], 5.0) == b"c"
    with pytest.raises(TransferError, match="does not answer") as caught:
        line.collect(tickets[1], 0.0)
    assert caught.value.trouble is Trouble.TIMEOUT
    assert line.unmatched == 0


def test_late_answer_is_not_assigned_to_a_reused_number(line, pipes):
    late = line.request(1, b"", 4)
    with pytest.raises(TransferError):
        line.collect(late, 0.0)
    for _ in range(127):
        line.request(2, b"", acknowledged=False)
    again = line.request(3, b"", 4)
    assert again.sequence == late.sequence
    pipes.answer(pipes.written[0], b"old.")
    pipes.answer(pipes.written[-1], b"new.")
    assert line.collect(again, 5.0) == b"new."


def test_unsolicited_answers_are_dropped(line, pipes):
    packets = (b"", b"\x81", b"\x81\x80data", b"\x85\x00")
    for packet in packets:
        pipes.coming.put(packet)
    latest = time.monotonic() + 5.0
    while line.unmatched < len(packets) and time.monotonic() < latest:
        time.sleep(1e-3)
    assert line.unmatched == len(packets)
    ticket = line.request(1, b"", 1)
    pipes.answer(pipes.written[0], b"x")
    assert line.collect(ticket, 5.0) == b"x"


def test_read_error_reaches_pending_and_later_requests(line, pipes):
    tickets = [line.request(number, b"", 1) for number in (1, 2)]
    pipes.coming.put(TransferError("gone", Trouble.UNPLUGGED))
    for ticket in tickets:
        with pytest.raises(TransferError, match="gone"):
            line.collect(ticket, 5.0)
    with pytest.raises(TransferError, match="gone"):
        line.request(3, b"", 1)
    line.request(4, b"stop", acknowledged=False)  # which may still arrive
    assert b"stop" in pipes.written[-1]


def test_operate_repeats_an_unanswered_request(line, pipes):
    write = pipes.write

    def forgetful(packet):
        write(packet)
        if len(pipes.written) == 3:
            pipes.answer(packet, b"at last")

    pipes.write = forgetful
    assert line.operate(7, b"", 7) == b"at last"
    assert len(pipes.written) == 3


# --- text line --------------------------------------------------------------------------------------------------------


ANSWERS = ["1.5 -0.25", "0.0 3.0", "8", "1073741824"]


def exchange(line, last=ANSWERS[-1]):
    return line.exchange(["f 0", "f 1", "r state", "r test_property"], last, 3, 0.2)


@given(st.lists(st.integers(0, 40), max_size=12), st.sampled_from(["\r\n", "\n", "\r"]))
def test_text_answers_may_be_split_anywhere(cuts, end):
    text = "".join(answer + end for answer in ANSWERS).encode()
    places = sorted({0, len(text), *(cut for cut in cuts if cut < len(text))})
    port = FakePipes(*(text[first:last] for first, last in itertools.pairwise(places)))
    assert exchange(TextLine(port)) == ANSWERS[:3]
    assert port.written == [b"f 0\nf 1\nr state\nr test_property\n"]  # in one transfer


def test_lost_answer_makes_the_round_a_timeout():
    with pytest.raises(TransferError, match="lost") as lost:
        exchange(TextLine(FakePipes("\n".join([*ANSWERS[1:], ""]).encode())))
    assert lost.value.trouble is Trouble.TIMEOUT


def test_text_after_the_last_answer_is_discarded():
    line = TextLine(port := FakePipes("\n".join([*ANSWERS, "nonsense", ""]).encode()))
    assert exchange(line) == ANSWERS[:3]
    port.coming.put("\n".join([*ANSWERS[:3], "1073741825", ""]).encode())
    assert exchange(line, "1073741825") == ANSWERS[:3]


def test_endless_text_is_bounded():
    line = TextLine(FakePipes(*[b"x" * 64] * 1000))
    with pytest.raises(TransferError):
        exchange(line)
    assert len(line._rest) <= LONGEST


# --- text rounds ------------------------------------------------------------------------------------------------------


TURNS = st.floats(-2e3, 2e3)


class TextPort:
    """Serial port of an emulated drive in closed loop that answers lines beginning with `spoilt[0]` by `spoilt[1]`."""

    def __init__(self, spoilt=("none", b"")):
        self.drive, _ = alone()
        for axis in self.drive.axes:
            axis.request(CLOSED_LOOP)
        self.protocol, self.out, self.spoilt = TextProtocol(self.drive), b"", spoilt

    def estimate(self, *values):
        """Set the encoder estimates: both positions [turn] and both speeds [turn/s]."""
        for axis, position, speed in zip(self.drive.axes, values[:2], values[2:], strict=True):
            axis.values.update({"encoder.pos_estimate": position, "encoder.vel_estimate": speed})

    def write(self, packet):
        for line in packet.decode().splitlines():
            for answer in self.protocol.handle_packet(f"{line}\n".encode()):
                self.out += self.spoilt[1] if line.startswith(self.spoilt[0]) else answer

    def read(self, timeout):
        found, self.out = self.out[:64], self.out[64:]
        return found or None


def rounds(port):
    """Return rounds over a serial port, without a native protocol."""
    table = parse_table(TEXT)
    drive = SimpleNamespace(line=None, find=table.endpoints.__getitem__)
    return TextRounds(drive, OdriveSettings(), TextLine(port))


def test_text_round_returns_estimates_and_states():
    port = TextPort()
    port.estimate(1.25, -3.0, 0.5, 0.0)
    one = rounds(port)
    answers = [one.exchange((0.0,) * 6, alive=True) for _ in range(4)]
    assert {answer.estimates for answer in answers} == {(1.25, -3.0, 0.5, 0.0)}
    assert {(answer.name, answer.value) for answer in answers} == {
        *((f"axis{axis}.current_state", 8) for axis in (0, 1)),
        *((f"axis{axis}.error", 0) for axis in (0, 1)),
    }


@given(st.tuples(TURNS, TURNS, TURNS, TURNS, TURNS, TURNS))
def test_text_commands_are_exact_in_single_precision(command):
    port = TextPort()
    rounds(port).exchange(command, alive=True)
    inputs = [f"controller.input_{name}" for name in ("pos", "vel", "torque")]
    received = [axis.values[name] for name in inputs for axis in port.drive.axes]
    assert struct.pack("<6f", *received) == struct.pack("<6f", *command)


@pytest.mark.parametrize(
    "spoilt",
    [("f", b"invalid command format\n"), ("f", b"1.0\n"), ("r axis", b"invalid property\n"), ("r axis", b"-1\n")],
)
def test_invalid_text_answer_is_a_timeout(spoilt):
    with pytest.raises(TransferError, match="in place of") as found:
        rounds(TextPort(spoilt)).exchange((0.0,) * 6, alive=True)
    assert found.value.trouble is Trouble.TIMEOUT


def test_round_after_a_lost_round_uses_its_own_answers():
    port = TextPort()
    one = rounds(port)
    read, port.read = port.read, lambda timeout: None
    with pytest.raises(TransferError) as silent:
        one.exchange((0.0,) * 6, alive=True)
    assert silent.value.trouble is Trouble.TIMEOUT
    port.read = read
    port.estimate(7.0, 8.0, 0.0, 0.0)
    one.invalidate()
    assert one.exchange((0.0,) * 6, alive=True).estimates[:2] == (7.0, 8.0)


# --- streaming --------------------------------------------------------------------------------------------------------


# Position step in 1 ms that is plausible after a command of 30 turn/s only [turn].
TELLING = 0.08


def answer(position):
    return Answer(0.0, (position, 0.0, 0.0, 0.0), "axis0.current_state", CLOSED_LOOP)


@pytest.mark.parametrize("told", [(0.0,), (30.0,), (30.0, 0.0)])
def test_encoder_jump_beyond_the_commanded_speed_is_a_fault(monkeypatch, told):
    now = [0.0]
    monkeypatch.setattr("devices.arm.motors.stage.time", SimpleNamespace(perf_counter=lambda: now[0]))
    way = SimpleNamespace(exchange=lambda command, alive: answer(TELLING))
    streaming = Streaming(cast(Rounds, way), fastest=40.0)
    streaming._publish(answer(0.0))
    for speed in told:
        streaming.commands.publish(0.0, 0.0, speed, 0.0, 0.0, 0.0, now[0])
        streaming._read_command()
    now[0] = 1e-3
    if max(told) > 0.0:
        streaming._round()
        assert streaming.samples.read()[1] == TELLING
        return
    with pytest.raises(DeviceFault, match=r"the encoder of axis 0 jumped by \+0\.08 turns"):
        streaming._round()


PATIENCE = 20.0


# --- client of the manufacturer ---------------------------------------------------------------------------------------


@pytest.fixture
def board(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    board = EmulatedOdrive()
    yield board
    board.unplug()  # which ends the client's threads


@pytest.fixture
def client(board, monkeypatch):
    """The drive as the manufacturer's client represents it."""
    monkeypatch.setattr(sys, "path", list(sys.path))  # the client extends it
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        discovery = pytest.importorskip("fibre.discovery", reason="odrive 0.5.1 and appdirs are not installed")
    backend = EmulatedOdriveBackend(board)
    monkeypatch.setattr(usb.backend.libusb1, "get_backend", lambda *_, **__: backend)
    found = discovery.find_any("usb", timeout=PATIENCE)
    assert found is not None
    return found


def test_client_reads_writes_and_calls(client, board):
    assert (client.serial_number, client.vbus_voltage) == (0x2065339F304B, 24.0)
    client.axis1.controller.input_torque = 0.25
    assert client.axis1.controller.input_torque == 0.25
    assert [client.test_function(3), client.test_function(4)] == [3, 7]
    client.axis0.encoder.set_linear_count(4096)
    assert board.inside.axes[0].values["encoder.config.cpr"] == client.axis0.encoder.config.cpr == 8192
    assert client.axis0.encoder.pos_estimate == pytest.approx(0.5, abs=1e-3)
    assert client.axis0.motor.is_calibrated is True


def told_by_client(client, board):
    channel = client.__channel__
    client.axis0.encoder.pos_estimate  # noqa: B018
    client.axis0.controller.input_torque = 0.05
    channel.remote_endpoint_operation(IDS["axis1.controller.input_vel"], struct.pack("<f", -1.5), False, 0)
    client.axis1.watchdog_feed()
    client.axis0.config.enable_watchdog = False
    client.axis0.encoder.set_linear_count(-1000)
    client.test_function(5)
    client.axis0.motor.error  # noqa: B018
    client.axis1.requested_state = CLOSED_LOOP
    client.axis1.current_state  # noqa: B018
    return list(board.inside.received)


def told_by_driver(drive, board):
    velocity = drive.find("axis1.controller.input_vel")
    for _ in range(2):  # which the client does by itself
        drive.get("serial_number")
    drive.get("axis0.encoder.pos_estimate")
    drive.set("axis0.controller.input_torque", 0.05)
    drive.post(velocity, -1.5)
    drive.call("axis1.watchdog_feed")
    drive.set("axis0.config.enable_watchdog", False)
    drive.call("axis0.encoder.set_linear_count", -1000)
    assert drive.call("test_function", 5) == 5
    drive.get("axis0.motor.error")
    drive.set("axis1.requested_state", CLOSED_LOOP)
    drive.get("axis1.current_state")
    return list(board.inside.received)


def test_driver_and_client_send_equal_bytes(client, board, tmp_path):
    other = EmulatedOdrive()
    line = Line(open_drive(backend=EmulatedOdriveBackend(other)))
    try:
        driver_s = told_by_driver(connect(line, tmp_path / "none kept"), other)
    finally:
        line.close()
    client_s = told_by_client(client, board)
    assert len(client_s) > 150
    assert driver_s == client_s
