"""Reports of a joystick: hidraw on a folder and a socket, the streaming threads and the watch over the stick."""

import errno
import fcntl
import os
import socket
import subprocess
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from devices.common.bus import TransferError, Trouble
from devices.emulators.pid.profiles import read_hex
from devices.joystick.hid import usages as use
from devices.joystick.hid.descriptor import Report, ReportType
from devices.joystick.reports import InputLayout
from devices.joystick.streaming import Streaming
from devices.joystick.usb import hidraw
from devices.joystick.usb.finding import HIDRAW, choose, hidraw_sticks
from devices.joystick.usb.hidraw import HidrawTransport, hidraw_nodes, node_of_interface
from haptics.errors import DeviceOpenError
from tests.devices.joystick.doubles import FakeTransport, described, session, timeout
from tests.devices.joystick.test_watching import position
from tests.processes import program, until

# --- hidraw: finding sticks ------------------------------------------------------------------------------------------

DESCRIPTOR = read_hex("sidewinder_ff2.hex")
INTERFACE = "sys/devices/pci0/usb1/1-1/1-1:1.0"


def plug(root, number=0, serial="42", descriptor=DESCRIPTOR, bus="0003"):
    """Write the files that the kernel shows of a SideWinder; return its device file."""
    interface = root / f"sys/devices/pci0/usb1/1-{number + 1}/1-{number + 1}:1.0"
    device = interface / f"{bus}:045E:001B.{number:04}"
    device.mkdir(parents=True)
    (device / "report_descriptor").write_bytes(descriptor)
    (device / "uevent").write_text(
        f"DRIVER=hid-generic\nHID_ID={bus}:0000045E:0000001B\nHID_NAME=SideWinder\nHID_UNIQ={serial}\n"
    )
    for name, direction, interval in (("ep_81", "in", "1ms"), ("ep_02", "out", "4ms")):
        (interface / name).mkdir()
        for key, value in (("direction", direction), ("type", "Interrupt"), ("interval", interval)):
            (interface / name / key).write_text(value + "\n")
    entry = root / hidraw.CLASS / f"hidraw{number}"
    entry.mkdir(parents=True)
    (entry / "device").symlink_to(device)
    (root / "dev").mkdir(exist_ok=True)
    path = root / "dev" / f"hidraw{number}"
    path.touch()
    return path


@pytest.fixture
def node(tmp_path):
    plug(tmp_path)
    (node,) = hidraw_nodes(tmp_path)
    return node


def test_hidraw_stick_is_identified_by_the_files_of_the_kernel(node):
    link = node.link
    assert (link.vendor_id, link.product_id, link.serial, link.name) == (0x045E, 0x001B, "42", "SideWinder")
    assert (link.in_interval, link.out_interval, link.out_endpoint) == (1e-3, 4e-3, True)
    assert link.descriptor == DESCRIPTOR


def test_hidraw_lists_usb_devices_only_and_chooses_by_serial_number(tmp_path):
    plug(tmp_path, 0, "A")
    plug(tmp_path, 1, "B")
    plug(tmp_path, 2, "C", descriptor=bytes.fromhex("05010902a101c0"))  # a mouse without buttons
    plug(tmp_path, 3, "D", bus="0005")  # Bluetooth
    found = hidraw_sticks(tmp_path)
    sticks = [(stick.serial, stick.speaks_pid, stick.transport) for stick in found]
    assert sticks == [("A", True, HIDRAW), ("B", True, HIDRAW), ("C", False, HIDRAW)]
    assert choose(found, "045e:001b", "B").node.endswith("hidraw1")


def test_hidraw_leaves_out_a_device_that_vanishes(tmp_path):
    plug(tmp_path)
    (tmp_path / hidraw.CLASS / "hidraw0/device").unlink()
    assert list(hidraw_nodes(tmp_path)) == []


def test_hidraw_node_of_a_usb_interface_is_found_by_its_address(tmp_path):
    plug(tmp_path, 0)
    path = plug(tmp_path, 1)
    for number in range(2):
        device = tmp_path / f"sys/devices/pci0/usb1/1-{number + 1}"
        (device / "busnum").write_text("1\n")
        (device / "devnum").write_text(f"{number + 7}\n")
        (device / f"1-{number + 1}:1.0/bInterfaceNumber").write_text("0a\n")
    assert node_of_interface(1, 8, 10, tmp_path) == path
    assert node_of_interface(1, 8, 0, tmp_path) is None
    assert node_of_interface(2, 8, 10, tmp_path) is None


# --- hidraw: opening and reports -------------------------------------------------------------------------------------


def refuse_with(number):
    def refuse(*_):
        raise OSError(number, os.strerror(number))

    return refuse


@pytest.mark.parametrize(("number", "words"), [
    (errno.EACCES, "stick 045e:001b .*permission denied.: haptics doctor udev prints"), (errno.EBUSY, "fuser -v"),
    (errno.ENODEV, "plug it in"),
])  # fmt: skip
def test_hidraw_file_that_cannot_be_opened_comes_with_its_remedy(node, monkeypatch, number, words):
    monkeypatch.setattr(hidraw.os, "open", refuse_with(number))
    with pytest.raises(DeviceOpenError, match=words):
        HidrawTransport(node)


class Wire:
    """A transport whose file is a socket, and the other end of the socket."""

    def __init__(self, node, monkeypatch):
        self.far, near = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.requests = []
        self.file = near.detach()
        monkeypatch.setattr(hidraw.os, "open", lambda *_: self.file)
        monkeypatch.setattr(fcntl, "ioctl", self.ioctl)
        self.transport = HidrawTransport(node)

    def ioctl(self, _, request, buffer):
        self.requests.append((request, bytes(buffer)))
        buffer[1] = 0xAB
        return len(buffer)

    @property
    def open(self):
        return Path(f"/proc/self/fd/{self.file}").exists()


@pytest.fixture
def wire(node, monkeypatch):
    made = Wire(node, monkeypatch)
    yield made
    made.transport.close()
    made.far.close()


def test_hidraw_transfers_whole_reports_and_closes_once(wire):
    wire.transport.write(bytes.fromhex("0501ff00"))
    assert wire.far.recv(64).hex() == "0501ff00"
    wire.far.send(bytes.fromhex("0102030405"))
    wire.far.send(bytes.fromhex("0203"))
    assert wire.transport.read(1.0) == bytes.fromhex("0102030405")
    assert wire.transport.read(1.0) == bytes.fromhex("0203")
    assert wire.transport.read(0.001) is None
    wire.transport.close()
    assert not wire.open
    wire.transport.close()


FEATURE = Report(ReportType.FEATURE, 2, (), 5)


def test_hidraw_feature_reports_are_the_requests_of_the_kernels_header(wire):
    assert wire.transport.get_report(FEATURE).hex() == "02ab000000"
    wire.transport.set_feature(bytes.fromhex("01010000"))
    assert wire.transport.get_report(Report(ReportType.INPUT, 1, (), 13))[0] == 1
    # HIDIOCGFEATURE(5), HIDIOCSFEATURE(4), HIDIOCGINPUT(13) of linux/hidraw.h
    assert [hex(request) for request, _ in wire.requests] == ["0xc0054807", "0xc0044806", "0xc00d480a"]


@pytest.mark.parametrize(
    ("number", "trouble", "words"),
    [
        *((number, Trouble.UNPLUGGED, ("unplugged",) * 2) for number in (errno.ENODEV, errno.ESHUTDOWN, errno.EIO)),
        (errno.EPIPE, Trouble.STALL, (r"output report \(stall\): unplug it, plug it in", r"for a report \(stall\)\.$")),
        (errno.ETIMEDOUT, Trouble.TIMEOUT, ("did not answer an output report in time", "in time")),
    ],
)
def test_hidraw_error_is_a_transfer_error(wire, monkeypatch, number, trouble, words):
    monkeypatch.setattr(hidraw.os, "write", refuse_with(number))
    monkeypatch.setattr(fcntl, "ioctl", refuse_with(number))
    actions = [lambda: wire.transport.write(b"\1"), lambda: wire.transport.get_report(FEATURE)]
    if trouble is Trouble.UNPLUGGED:
        monkeypatch.setattr(hidraw.os, "read", refuse_with(number))
        wire.far.send(b"\1")
        actions.append(lambda: wire.transport.read(1.0))
    for action, message in zip(actions, (*words, "unplugged"), strict=False):
        with pytest.raises(TransferError, match=message) as error:
            action()
        assert error.value.trouble is trouble


def hold_writes(monkeypatch):
    """Hold every write in the kernel until the event is set; return the event and the reports written then."""
    released, written, write = threading.Event(), [], os.write

    def hang(file, report):
        released.wait(10.0)
        written.append(report)
        return write(file, report)

    monkeypatch.setattr(hidraw.os, "write", hang)
    return released, written


def test_hidraw_write_times_out_while_the_kernel_holds_it(wire, monkeypatch):
    released, written = hold_writes(monkeypatch)
    for report in (b"\1", b"\2"):
        with pytest.raises(TransferError, match="in time") as error:
            wire.transport.write(report)
        assert error.value.trouble is Trouble.TIMEOUT
    wire.transport.close()
    assert wire.open, "the kernel has it still"
    released.set()
    assert wire.far.recv(64) == b"\1"
    assert wire.far.recv(64) == b"", "closed after the report that was under way"
    assert written == [b"\1"]


def test_hidraw_sends_the_next_report_after_a_late_one(wire, monkeypatch):
    released, _ = hold_writes(monkeypatch)
    with pytest.raises(TransferError, match="in time"):
        wire.transport.write(b"\1")
    released.set()
    assert wire.far.recv(64) == b"\1"
    wire.transport.write(b"\2")
    assert wire.far.recv(64) == b"\2"


def test_hidraw_file_is_locked_until_its_program_closes_it_or_is_killed(node):
    first = HidrawTransport(node)
    with pytest.raises(DeviceOpenError, match=rf"held by another program.*fuser -v {node.path}"):
        HidrawTransport(node)
    first.close()
    HidrawTransport(node).close()
    code = f"from devices.joystick.usb.hidraw import open_locked; open_locked({str(node.path)!r}); print(1)"
    with program("-u", "-c", f"import time; {code}; time.sleep(60)", stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == "1\n"
        with pytest.raises(DeviceOpenError, match="held by another program"):
            HidrawTransport(node)
        process.kill()
        process.wait(10.0)
        HidrawTransport(node).close()


def test_hidraw_writes_to_a_stick_without_an_output_pipe(tmp_path):
    plug(tmp_path)
    for entry in (tmp_path / INTERFACE / "ep_02").iterdir():
        entry.unlink()
    (tmp_path / INTERFACE / "ep_02").rmdir()
    (node,) = hidraw_nodes(tmp_path)
    assert (node.link.out_endpoint, node.link.out_interval) == (False, 1e-3)
    transport = HidrawTransport(node)
    transport.write(bytes.fromhex("0501ff00"))  # the kernel makes a request of it
    transport.close()
    assert node.path.read_bytes().hex() == "0501ff00"


# --- streaming: commands ---------------------------------------------------------------------------------------------

KEEP_ALIVE = 0.04


def constants(sent, block):
    found = [bytes.fromhex(text) for text in sent if text.startswith(f"05{block:02x}")]
    return [int.from_bytes(report[2:4], "little", signed=True) for report in found]


class Rig:
    """Streaming over a transport in memory."""

    def __init__(self):
        self.transport = FakeTransport()
        playing = session(self.transport)
        playing.start()
        self.transport.sent.clear()
        self.transport.stamps.clear()
        layout = InputLayout(described("openffboard"), use.X, use.Y)
        self.streaming = Streaming(self.transport, playing, layout, KEEP_ALIVE)
        self.transport.reports.put(position(0, 0))

    def start(self):
        self.streaming.start(5.0)

    def command(self, level_x, level_y):
        """Publish the levels of the two effects as a tick does."""
        self.streaming.levels.publish(level_x, level_y, time.perf_counter())
        self.streaming.wake.call()


@pytest.fixture
def rig():
    made = Rig()
    yield made
    made.streaming.stop()


def test_streaming_sends_changes_only_and_the_larger_one_first(rig):
    rig.start()
    rig.command(0.1, -0.9)
    rig.transport.wait_for(lambda sent: bool(constants(sent, 1)))
    order = [text[:4] for text in rig.transport.sent if text.startswith("05")]
    assert order[:2] == ["0502", "0501"]
    rig.command(0.1, -0.9)
    rig.command(0.1, 0.25)
    rig.transport.wait_for(lambda sent: constants(sent, 2)[1:] == [8192])
    assert len(constants(rig.transport.sent, 1)) == 1


def test_streaming_skips_superseded_values(rig):
    rig.transport.before_write = lambda report: time.sleep(5e-3)
    rig.start()
    for step in range(1, 101):
        rig.command(step * 0.01, 0.0)
        time.sleep(3e-4)
    rig.transport.wait_for(lambda sent: constants(sent, 1)[-1:] == [32767])
    sent = constants(rig.transport.sent, 1)
    assert len(sent) < 50
    assert sent == sorted(sent)


def test_streaming_sends_nothing_after_it_was_stopped(rig):
    rig.start()
    ending = threading.Thread(target=rig.streaming.stop)

    def end(report):
        if not ending.ident:
            ending.start()
            until(rig.streaming._stopping.is_set, "it does not stop", 5.0, 1e-3)

    rig.transport.before_write = end
    rig.command(0.5, -0.4)
    rig.transport.wait_for(bool)
    ending.join(5.0)
    assert len(rig.transport.sent) == 1, "only the report that was under way"


@pytest.mark.parametrize(("refused", "newer"), [("0501", True), ("05010000", False)], ids=["any", "zero"])
def test_streaming_repeats_a_report_that_was_not_taken_with_the_newest_value(rig, refused, newer):
    """A refused zero is repeated although no command follows it."""
    failures = [timeout()]

    def refuse(report):
        if failures and report.hex().startswith(refused):
            if newer:
                rig.command(0.25, 0.0)
            raise failures.pop()

    rig.transport.before_write = refuse
    rig.start()
    rig.command(0.5, 0.0)
    rig.transport.wait_for(lambda sent: constants(sent, 1)[-1:] == [8192 if newer else 0])
    assert not failures
    assert rig.streaming.fault is None


@pytest.mark.parametrize(("under_way", "failed"), [(0.079, False), (0.081, True)])
def test_streaming_gives_a_report_the_time_of_two(rig, monkeypatch, under_way, failed):
    """Each has 40 ms; a force must not last longer when the stick takes no report."""
    clock = SimpleNamespace(perf_counter=lambda: 100.0)
    monkeypatch.setattr("devices.joystick.streaming.time", clock)
    seen = []

    def look(report):
        clock.perf_counter = lambda: 100.0 + under_way
        seen.append(rig.streaming.fault)

    rig.transport.before_write = look
    rig.command(0.5, 0.0)
    rig.streaming._write(next(rig.streaming._forces.reports()))
    assert (seen[0] is not None) == failed


# --- streaming: positions --------------------------------------------------------------------------------------------


def test_streaming_distinguishes_reports_by_number(rig):
    rig.start()
    rig.transport.reports.put(bytes((2, 0b10)))  # actuators enabled
    rig.transport.reports.put(bytes((0xA1, *range(24))))  # the maker's own
    rig.transport.reports.put(position(-5, 7, 0b101))
    until(lambda: rig.streaming.sample is not None and rig.streaming.sample.x == -5, "no position", 5.0, 1e-3)
    sample = rig.streaming.sample
    assert (sample.x, sample.y, sample.buttons) == (-5, 7, 0b101)


def test_streaming_counts_silence_as_the_same_position_unless_a_report_was_truncated(rig):
    rig.start()
    before = rig.streaming.heard
    until(lambda: rig.streaming.heard > before, "silence makes samples old", 5.0, 1e-3)
    assert rig.streaming.sample.time < rig.streaming.heard
    rig.transport.reports.put(position(5, 5)[:12])
    until(rig.transport.reports.empty, "the report was not read", 5.0, 1e-3)
    time.sleep(0.05)
    before = rig.streaming.heard
    time.sleep(0.05)
    assert rig.streaming.heard == before
    rig.transport.reports.put(position(6, 6))
    until(lambda: rig.streaming.heard > before, "the position was not read", 5.0, 1e-3)


def test_streaming_does_not_rely_on_the_first_report_which_may_be_old(rig):
    rig.transport.reports.put(position(9, 9))
    rig.start()
    assert rig.streaming.sample.x == 9


def test_streaming_asks_a_stick_that_sends_nothing_at_rest(rig):
    rig.transport.reports.get()
    rig.transport.answers[1] = position(3, -4)
    rig.start()
    assert (rig.streaming.sample.x, rig.streaming.sample.y) == (3, -4)


@pytest.mark.parametrize("answers", [{}, {1: bytes((2,)) + position(3, -4)[1:]}], ids=["no answer", "another report"])
def test_streaming_does_not_start_without_a_position(rig, answers):
    rig.transport.reports.get()
    rig.transport.answers = answers
    with pytest.raises(DeviceOpenError, match="sends no positions"):
        rig.streaming.start(0.05)


def test_input_layout_names_missing_axes():
    with pytest.raises(DeviceOpenError, match="0x00020001"):
        InputLayout(described("openffboard"), use.X, 0x00020001)
