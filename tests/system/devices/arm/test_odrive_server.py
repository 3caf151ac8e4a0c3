"""An emulated drive in another process: who may do what there, and what strange clients cannot do to others."""

import errno
import os
import random
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import usb.core
import usb.util

from devices.emulators.odrive.board import ENDPOINT_IN, NATIVE, TEXT, TEXT_IN, TEXT_OUT
from devices.emulators.odrive.child import spawn
from devices.emulators.odrive.remote import RemoteBackend
from devices.emulators.odrive.serving import packets
from devices.emulators.odrive.serving.connection import MOST

PATIENCE = 30.0
SOON, LATE = 50, 20_000
"""Time limits of transfers that may not come, and that will [ms]."""

CLAIMING = """
import sys, usb.core, usb.util
from devices.emulators.odrive.remote import RemoteBackend
device = usb.core.find(backend=RemoteBackend(sys.argv[1]))
usb.util.claim_interface(device, 2)
print("claimed", flush=True)
sys.stdin.read()
"""


@pytest.fixture(scope="module")
def far() -> Iterator[RemoteBackend]:
    with spawn({}) as address:
        yield RemoteBackend(address)


@pytest.fixture
def port(far: RemoteBackend) -> Iterator[usb.core.Device]:
    """The drive, and its serial port claimed."""
    device = usb.core.find(backend=far)
    if device.is_kernel_driver_active(TEXT):
        device.detach_kernel_driver(TEXT)
    usb.util.claim_interface(device, TEXT)
    yield device
    usb.util.dispose_resources(device)


def raw(far: RemoteBackend) -> socket.socket:
    wire = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    wire.settimeout(PATIENCE)
    wire.connect(far._address)
    return wire


def works(device: usb.core.Device) -> None:
    assert device.write(TEXT_OUT, b"r fw_version_minor\n", LATE) == 19
    assert bytes(device.read(TEXT_IN, 64, LATE)) == b"5\r\n"


def test_it_looks_from_here_as_it_does_there(far: RemoteBackend) -> None:
    device = usb.core.find(backend=far)
    assert (device.idVendor, device.idProduct, device.bus) == (0x1209, 0x0D32, 1)
    assert usb.util.get_string(device, device.iSerialNumber) == "2065339F304B"
    interfaces = [(i.bInterfaceNumber, [e.bEndpointAddress for e in i]) for i in device.get_active_configuration()]
    assert interfaces == [(0, [0x82]), (1, [0x01, 0x81]), (2, [0x03, 0x83])]
    with pytest.raises(usb.core.USBError) as caught:
        device.ctrl_transfer(0x80, 0x06, 0x03FF, 0, 64)
    assert caught.value.errno == errno.EPIPE
    usb.util.dispose_resources(device)


def test_what_goes_wrong_with_a_write_is_told_by_the_next_transfer_at_the_latest(
    far: RemoteBackend, port: usb.core.Device
) -> None:
    far.fault("write-error")
    with pytest.raises(usb.core.USBError) as caught:
        port.write(TEXT_OUT, b"f 0\n", SOON)
        port.read(TEXT_IN, 64, SOON)
    assert caught.value.errno == errno.EIO
    far.clear()
    works(port)


def test_a_read_ends_at_its_time_limit_and_takes_what_comes_before(far: RemoteBackend, port: usb.core.Device) -> None:
    start = time.monotonic()
    with pytest.raises(usb.core.USBTimeoutError):
        port.read(TEXT_IN, 64, SOON)
    assert time.monotonic() - start >= 0.9e-3 * SOON
    far.fault("nak")
    port.write(TEXT_OUT, b"r fw_version_minor\n", LATE)  # waits there
    far.clear()
    assert bytes(port.read(TEXT_IN, 64, LATE)) == b"5\r\n"


def test_a_late_transfer_is_late(far: RemoteBackend, port: usb.core.Device) -> None:
    far.fault("delay-20ms")
    start = time.monotonic()
    works(port)
    far.clear()
    assert time.monotonic() - start >= 0.04


def test_when_a_process_dies_what_it_had_is_free(far: RemoteBackend) -> None:
    device = usb.core.find(backend=far)
    root = str(Path(__file__).parents[4])
    command = [sys.executable, "-c", CLAIMING, far._address]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=root) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "claimed\n"
        with pytest.raises(usb.core.USBError) as caught:
            usb.util.claim_interface(device, NATIVE)
        assert caught.value.errno == errno.EBUSY
        process.kill()
    latest = time.monotonic() + PATIENCE
    while True:
        try:
            usb.util.claim_interface(device, NATIVE)
            break
        except usb.core.USBError:
            assert time.monotonic() < latest
            time.sleep(0.01)
    usb.util.dispose_resources(device)


def test_nonsense_is_refused_and_hurts_nobody(far: RemoteBackend, port: usb.core.Device) -> None:
    chance = random.Random(1)
    names = [b'["open_device"]', b'["open_device", 99]', b'["devices", 1]', b'["__class__"]', b'[["observe"]]', b"5"]
    names += [b'["fault", "nonsense"]', b'["close_device", {}]', b'["claim_interface", null, 2]', b"[", b"\xff", b"[]"]
    with raw(far) as wire:
        for request in [bytes((packets.CALL,)) + name for name in names]:
            wire.send(request)
            kind, number = packets.ANSWER.unpack_from(wire.recv(packets.LONGEST))
            assert (kind, number > 0) == (packets.CALL, True)
        for length in range(1, 60):
            wire.send(bytes(chance.randrange(256) for _ in range(length)))
        wire.send(packets.IN_REQUEST.pack(packets.IN, 12345, 0x83, 2, 0, 1 << 31))
    works(port)


def test_several_requests_in_one_packet_are_answered_in_one_packet(far: RemoteBackend, port: usb.core.Device) -> None:
    to_drive = packets.OUT_HEAD.pack(packets.OUT, port._ctx.handle, TEXT_OUT, TEXT, SOON) + b"r fw_version_minor\n"
    from_drive = packets.IN_REQUEST.pack(packets.IN, port._ctx.handle, TEXT_IN, TEXT, LATE, 64)
    with raw(far) as wire:
        wire.send(*packets.together(2 * [to_drive, from_drive]))
        answers = packets.apart(wire.recv(packets.LONGEST))
    assert answers == 2 * [packets.ANSWER.pack(packets.IN, 0) + b"5\r\n"]


@pytest.mark.parametrize("packet", ["04", "04 01", "04 0000", "04 0500 00", "04 0100 00 0200 00", "04 0100 04"])
def test_what_is_not_several_requests_is_refused(far: RemoteBackend, port: usb.core.Device, packet: str) -> None:
    with raw(far) as wire:
        wire.send(bytes.fromhex(packet))
        wire.send(bytes((packets.CALL,)) + b'["stalled"]')
        answers: list[bytes] = []
        while not answers or answers[-1][0] != packets.CALL:
            answers += packets.apart(wire.recv(packets.LONGEST))
        assert all(packets.ANSWER.unpack_from(answer)[1] for answer in answers[:-1])
    works(port)


def test_a_client_that_reads_nothing_loses_its_connection_only(far: RemoteBackend, port: usb.core.Device) -> None:
    with raw(far) as wire, pytest.raises(OSError, match=r"[Bb]roken|reset"):
        wire.settimeout(PATIENCE)
        for _ in range(100_000):
            wire.send(bytes((packets.CALL,)) + b'["observe"]')
    works(port)


def test_a_client_that_asks_for_more_than_can_be_done_waits_and_others_do_not(
    far: RemoteBackend, port: usb.core.Device
) -> None:
    usb.util.claim_interface(port, NATIVE)
    waiting = packets.IN_REQUEST.pack(packets.IN, port._ctx.handle, ENDPOINT_IN, NATIVE, SOON, 64)
    with raw(far) as wire:
        wire.setblocking(False)
        sent = 0
        latest = time.monotonic() + PATIENCE
        while time.monotonic() < latest:
            try:
                wire.send(waiting)
                sent += 1
            except BlockingIOError:
                break
        assert MOST < sent < 100_000
        assert usb.util.get_string(port, port.iSerialNumber) == "2065339F304B"
    works(port)


def test_it_knows_that_it_was_kept_from_running(far: RemoteBackend) -> None:
    with raw(far) as wire:
        process = struct.unpack("3i", wire.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0]
    os.kill(process, signal.SIGSTOP)
    time.sleep(0.2)
    os.kill(process, signal.SIGCONT)
    assert 0.1 < far.stalled() < PATIENCE


def test_without_the_other_process_there_is_no_drive() -> None:
    with spawn({}) as address:
        backend = RemoteBackend(address)
        device = usb.core.find(backend=backend)
        device.get_active_configuration()
    with pytest.raises(usb.core.USBError) as caught:
        usb.util.claim_interface(device, NATIVE)
    assert caught.value.errno == errno.ENODEV
