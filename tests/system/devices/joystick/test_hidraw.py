"""hidraw without a kernel: a tree of files as the kernel lays it out, and a socket in place of the device file."""

import errno
import fcntl
import os
import socket
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from devices.common.bus.transfers import TransferError, Trouble
from devices.emulators.pid.profiles.profile import read_hex
from devices.joystick.usb import hidraw
from devices.joystick.usb.finding import HIDRAW, choose, find_sticks, hidraw_sticks
from devices.joystick.usb.hidraw import HidrawNode, HidrawTransport, hidraw_nodes, node_of_interface
from haptics.errors import DeviceOpenError
from tests.processes import program

DESCRIPTOR = read_hex("sidewinder_ff2.hex")


def plug(root: Path, number: int = 0, serial: str = "42", descriptor: bytes = DESCRIPTOR, bus: str = "0003") -> Path:
    """Lay out what the kernel shows of a SideWinder."""
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
    node = root / "dev" / f"hidraw{number}"
    node.touch()
    return node


def test_a_stick_is_known_by_what_the_kernel_shows(tmp_path: Path) -> None:
    plug(tmp_path)
    (node,) = hidraw_nodes(tmp_path)
    link = node.link
    assert (link.vendor_id, link.product_id, link.serial, link.name) == (0x045E, 0x001B, "42", "SideWinder")
    assert (link.in_interval, link.out_interval, link.out_endpoint) == (1e-3, 4e-3, True)
    assert link.descriptor == DESCRIPTOR


def test_sticks_are_found_and_told_apart(tmp_path: Path) -> None:
    plug(tmp_path, 0, "A")
    plug(tmp_path, 1, "B")
    plug(tmp_path, 2, "C", descriptor=bytes.fromhex("05010902a101c0"))  # a mouse without buttons
    plug(tmp_path, 3, "D", bus="0005")  # by radio
    found = hidraw_sticks(tmp_path)
    assert [(stick.serial, stick.speaks_pid, stick.transport) for stick in found] == [
        ("A", True, HIDRAW),
        ("B", True, HIDRAW),
        ("C", False, HIDRAW),
    ]
    assert choose(found, "045e:001b", "B").node.endswith("hidraw1")


def test_where_there_is_no_libusb_sticks_are_found_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nothing() -> None:
        raise DeviceOpenError("no libusb")

    monkeypatch.setattr("devices.joystick.usb.listing.libusb", nothing)
    plug(tmp_path)
    assert [stick.name for stick in find_sticks(root=tmp_path)] == ["SideWinder"]


def test_a_folder_that_vanishes_is_left_out(tmp_path: Path) -> None:
    plug(tmp_path)
    (tmp_path / hidraw.CLASS / "hidraw0/device").unlink()
    assert list(hidraw_nodes(tmp_path)) == []


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (errno.EACCES, r'ATTRS\{idVendor\}=="045e", ATTRS\{idProduct\}=="001b"'),
        (errno.EBUSY, "fuser -v"),
        (errno.ENODEV, "plug it in"),
    ],
)
def test_a_file_that_cannot_be_opened_comes_with_its_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, words: str
) -> None:
    plug(tmp_path)
    (node,) = hidraw_nodes(tmp_path)

    def refuse(*_: object) -> int:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(hidraw.os, "open", refuse)
    with pytest.raises(DeviceOpenError, match=words):
        HidrawTransport(node)


class Wire:
    def __init__(self, node: HidrawNode, monkeypatch: pytest.MonkeyPatch) -> None:
        self.far, near = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.requests: list[tuple[int, bytes]] = []
        self.file = near.detach()
        monkeypatch.setattr(hidraw.os, "open", lambda *_: self.file)
        monkeypatch.setattr(fcntl, "ioctl", self.ioctl)
        self.transport = HidrawTransport(node)

    def ioctl(self, _: int, request: int, buffer: bytearray) -> int:
        self.requests.append((request, bytes(buffer)))
        buffer[1] = 0xAB
        return len(buffer)

    @property
    def open(self) -> bool:
        return Path(f"/proc/self/fd/{self.file}").exists()


@pytest.fixture
def wire(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Wire]:
    plug(tmp_path)
    (node,) = hidraw_nodes(tmp_path)
    made = Wire(node, monkeypatch)
    yield made
    made.transport.close()
    made.far.close()


def test_reports_go_out_and_come_in_whole(wire: Wire) -> None:
    wire.transport.write(bytes.fromhex("0501ff00"))
    assert wire.far.recv(64).hex() == "0501ff00"
    wire.far.send(bytes.fromhex("0102030405"))
    wire.far.send(bytes.fromhex("0203"))
    assert wire.transport.read(1.0) == bytes.fromhex("0102030405")
    assert wire.transport.read(1.0) == bytes.fromhex("0203")
    assert wire.transport.read(0.001) is None


def test_feature_reports_are_the_requests_of_the_kernels_header(wire: Wire) -> None:
    assert wire.transport.get_feature(2, 5).hex() == "02ab000000"
    wire.transport.set_feature(bytes.fromhex("01010000"))
    assert wire.transport.get_input(1, 13)[0] == 1
    # HIDIOCGFEATURE(5), HIDIOCSFEATURE(4), HIDIOCGINPUT(13) of linux/hidraw.h
    assert [hex(request) for request, _ in wire.requests] == ["0xc0054807", "0xc0044806", "0xc00d480a"]


@pytest.mark.parametrize("number", [errno.ENODEV, errno.ESHUTDOWN, errno.EIO])
def test_a_stick_that_is_gone_is_said_so(wire: Wire, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    def gone(*_: object) -> int:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(hidraw.os, "write", gone)
    monkeypatch.setattr(hidraw.os, "read", gone)
    monkeypatch.setattr(fcntl, "ioctl", gone)
    wire.far.send(b"\1")
    for action in (
        lambda: wire.transport.write(b"\1"),
        lambda: wire.transport.read(1.0),
        lambda: wire.transport.get_feature(2, 5),
    ):
        with pytest.raises(TransferError, match="unplugged") as error:
            action()
        assert error.value.trouble is Trouble.UNPLUGGED


def refused(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    def fail(*_: object) -> int:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(hidraw.os, "write", fail)
    monkeypatch.setattr(fcntl, "ioctl", fail)


def test_a_halted_pipe_is_a_stall_that_only_the_plug_ends(wire: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    refused(monkeypatch, errno.EPIPE)
    with pytest.raises(TransferError, match=r"refused an output report \(stall\): unplug it, plug it in") as error:
        wire.transport.write(b"\1")
    assert error.value.trouble is Trouble.STALL
    with pytest.raises(TransferError, match=r"refused a request for a report \(stall\)\.$"):
        wire.transport.get_feature(2, 5)


def test_a_report_the_kernel_gave_up_is_a_timeout(wire: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    refused(monkeypatch, errno.ETIMEDOUT)
    with pytest.raises(TransferError, match="did not answer an output report in time") as error:
        wire.transport.write(b"\1")
    assert error.value.trouble is Trouble.TIMEOUT


def test_a_kernel_that_holds_a_write_holds_nobody_up(wire: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    go_on, written, write = threading.Event(), list[bytes](), os.write

    def hang(file: int, report: bytes) -> int:
        go_on.wait(10.0)
        written.append(report)
        return write(file, report)

    monkeypatch.setattr(hidraw.os, "write", hang)
    for report in (b"\1", b"\2"):
        with pytest.raises(TransferError, match="in time") as error:
            wire.transport.write(report)
        assert error.value.trouble is Trouble.TIMEOUT
    wire.transport.close()
    assert wire.open, "the kernel has it still"
    go_on.set()
    assert wire.far.recv(64) == b"\1"
    assert wire.far.recv(64) == b"", "closed after the report that was under way"
    assert written == [b"\1"]


def test_a_late_report_does_not_keep_the_next_one_from_going_out(wire: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    go_on, write = threading.Event(), os.write

    def slow(file: int, report: bytes) -> int:
        go_on.wait(10.0)
        return write(file, report)

    monkeypatch.setattr(hidraw.os, "write", slow)
    with pytest.raises(TransferError, match="in time"):
        wire.transport.write(b"\1")
    go_on.set()
    assert wire.far.recv(64) == b"\1"
    wire.transport.write(b"\2")
    assert wire.far.recv(64) == b"\2"


def test_a_second_run_is_refused_until_the_first_has_ended(tmp_path: Path) -> None:
    plug(tmp_path)
    (node,) = hidraw_nodes(tmp_path)
    first = HidrawTransport(node)
    with pytest.raises(DeviceOpenError, match=rf"held by another program.*fuser -v {node.path}"):
        HidrawTransport(node)
    first.close()
    HidrawTransport(node).close()


def test_a_run_that_is_killed_lets_go(tmp_path: Path) -> None:
    plug(tmp_path)
    (node,) = hidraw_nodes(tmp_path)
    code = (
        f"import time; from devices.joystick.usb.hidraw import open_locked; open_locked({str(node.path)!r}); print(1)"
    )
    with program("-u", "-c", f"{code}; time.sleep(60)", stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "1\n"
        with pytest.raises(DeviceOpenError, match="held by another program"):
            HidrawTransport(node)
        process.kill()
        process.wait(10.0)
        HidrawTransport(node).close()


def test_the_node_of_an_interface_is_found_by_its_place_on_the_bus(tmp_path: Path) -> None:
    plug(tmp_path, 0)
    node = plug(tmp_path, 1)
    for number in range(2):
        device = tmp_path / f"sys/devices/pci0/usb1/1-{number + 1}"
        (device / "busnum").write_text("1\n")
        (device / "devnum").write_text(f"{number + 7}\n")
        (device / f"1-{number + 1}:1.0/bInterfaceNumber").write_text("0a\n")
    assert node_of_interface(1, 8, 10, tmp_path) == node
    assert node_of_interface(1, 8, 0, tmp_path) is None
    assert node_of_interface(2, 8, 10, tmp_path) is None


def test_a_stick_without_a_pipe_for_output_is_written_to_all_the_same(tmp_path: Path) -> None:
    plug(tmp_path)
    for entry in (tmp_path / "sys/devices/pci0/usb1/1-1/1-1:1.0/ep_02").iterdir():
        entry.unlink()
    (tmp_path / "sys/devices/pci0/usb1/1-1/1-1:1.0/ep_02").rmdir()
    (node,) = hidraw_nodes(tmp_path)
    assert (node.link.out_endpoint, node.link.out_interval) == (False, 1e-3)
    transport = HidrawTransport(node)
    transport.write(bytes.fromhex("0501ff00"))  # the kernel makes a request of it
    transport.close()
    assert node.path.read_bytes().hex() == "0501ff00"


def test_closing_twice_is_closing_once(wire: Wire) -> None:
    wire.transport.close()
    assert not wire.open
    wire.transport.close()
