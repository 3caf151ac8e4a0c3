"""The emulated drive in another process: its clients, killed drivers, and queues of transfers."""

import contextlib
import ctypes
import errno
import json
import os
import random
import signal
import socket
import subprocess
import time
from collections import deque
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest
import usb.core
import usb.util

from devices.arm.motors import OdriveStage
from devices.arm.motors import can_bus as codec
from devices.arm.motors.native import Line, wait_all
from devices.arm.motors.settings import OdriveSettings
from devices.arm.motors.usb import QueuedPipes, Unsent, open_drive
from devices.common.bus import TransferError
from devices.common.usb_queue import Done, Functions, NoQueue
from devices.emulators import usb_packets as packets
from devices.emulators.odrive.axis import CLOSED_LOOP, IDLE
from devices.emulators.odrive.board import NATIVE, TEXT, TEXT_IN, TEXT_OUT, EmulatedOdrive, EmulatedOdriveBackend
from devices.emulators.odrive.packets import can_of
from devices.emulators.odrive.remote import RemotePort, spawn
from devices.emulators.usb_remote import RemoteBackend
from haptics.errors import ConfigurationError, DeviceFault
from tests.devices.arm.odrive_rig import HOME, run
from tests.processes import program, until

PATIENCE = 30.0
# Time limits of transfers that fail and that succeed [ms].
SOON, LATE = 50, 20_000


@pytest.fixture(scope="module")
def far(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch, spawn({}) as address:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield RemoteBackend(address)


@pytest.fixture
def port(far):
    """The drive, and its serial port claimed."""
    device = usb.core.find(backend=far)
    if device.is_kernel_driver_active(TEXT):
        device.detach_kernel_driver(TEXT)
    usb.util.claim_interface(device, TEXT)
    yield device
    usb.util.dispose_resources(device)


def wait_for(condition):
    until(condition, "it did not happen", PATIENCE, 5e-3)


def raw(far, on_can=False):
    """Return a socket to the emulator, or to its CAN bus."""
    wire = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    wire.settimeout(PATIENCE)
    wire.connect(can_of(far._address) if on_can else far._address)
    return wire


def works(device):
    assert device.write(TEXT_OUT, b"r fw_version_minor\n", LATE) == 19
    assert bytes(device.read(TEXT_IN, 64, LATE)) == b"5\r\n"


def test_remote_drive_has_the_descriptors_of_the_drive(far):
    device = usb.core.find(backend=far)
    assert (device.idVendor, device.idProduct, device.bus) == (0x1209, 0x0D32, 1)
    assert usb.util.get_string(device, device.iSerialNumber) == "2065339F304B"
    interfaces = [(i.bInterfaceNumber, [e.bEndpointAddress for e in i]) for i in device.get_active_configuration()]
    assert interfaces == [(0, [0x82]), (1, [0x01, 0x81]), (2, [0x03, 0x83])]
    with pytest.raises(usb.core.USBError) as caught:
        device.ctrl_transfer(0x80, 0x06, 0x03FF, 0, 64)
    assert caught.value.errno == errno.EPIPE
    usb.util.dispose_resources(device)


def test_failed_write_is_reported_by_the_next_transfer(far, port):
    far.fault("write-error")
    with pytest.raises(usb.core.USBError) as caught:
        port.write(TEXT_OUT, b"f 0\n", SOON)
        port.read(TEXT_IN, 64, SOON)
    assert caught.value.errno == errno.EIO
    far.clear()
    works(port)


def test_read_ends_at_its_time_limit_or_with_data(far, port):
    start = time.monotonic()
    with pytest.raises(usb.core.USBTimeoutError):
        port.read(TEXT_IN, 64, SOON)
    assert time.monotonic() - start >= 0.9e-3 * SOON
    far.fault("nak")
    port.write(TEXT_OUT, b"r fw_version_minor\n", LATE)  # waits there
    far.clear()
    assert bytes(port.read(TEXT_IN, 64, LATE)) == b"5\r\n"


# Combined requests whose lengths do not add up.
COMBINED = ["04", "04 01", "04 0000", "04 0500 00", "04 0100 00 0200 00", "04 0100 04"]


def test_invalid_requests_are_refused(far, port):
    chance = random.Random(1)
    names = [b'["open_device"]', b'["open_device", 99]', b'["devices", 1]', b'["__class__"]', b'[["observe"]]', b"5"]
    names += [b'["fault", "nonsense"]', b'["close_device", {}]', b'["claim_interface", null, 2]', b"[", b"\xff", b"[]"]
    with raw(far) as wire:
        for request in [bytes((packets.CALL,)) + name for name in names]:
            wire.send(request)
            kind, number = packets.ANSWER.unpack_from(wire.recv(packets.LONGEST))
            assert (kind, number > 0) == (packets.CALL, True)
        for packet in COMBINED:
            wire.send(bytes.fromhex(packet))
            wire.send(bytes((packets.CALL,)) + b'["stalled"]')
            answers = []
            while not answers or answers[-1][0] != packets.CALL:
                answers += packets.apart(wire.recv(packets.LONGEST))
            assert all(packets.ANSWER.unpack_from(answer)[1] for answer in answers[:-1])
        for length in range(1, 60):
            wire.send(bytes(chance.randrange(256) for _ in range(length)))
        wire.send(packets.IN_REQUEST.pack(packets.IN, 12345, 0x83, 2, 0, 1 << 31))
    works(port)


def test_ended_emulator_is_an_absent_drive():
    with spawn({}) as address:
        backend = RemoteBackend(address)
        device = usb.core.find(backend=backend)
        device.get_active_configuration()
    with pytest.raises(usb.core.USBError) as caught:
        usb.util.claim_interface(device, NATIVE)
    assert caught.value.errno == errno.ENODEV


@pytest.fixture
def can_port(far):
    with contextlib.closing(RemotePort(can_of(far._address))) as port:
        yield port


def receive(can_port, command):
    """Return the next frame with the command from the CAN bus."""
    latest = time.monotonic() + PATIENCE
    while time.monotonic() < latest:
        frame = codec.unpack(can_port.receive(1.0) or b"")
        if frame is not None and frame.command == command:
            return frame
    raise AssertionError("no such frame")


def test_invalid_can_frame_ends_its_connection_only(far, can_port):
    for rubbish in (b"x", bytes(17), bytes(500)):
        with raw(far, on_can=True) as wire:
            wire.send(rubbish)
            with contextlib.suppress(ConnectionResetError):
                while wire.recv(64):
                    pass
    assert receive(can_port, codec.HEARTBEAT).node in (0, 1)


def test_can_client_that_does_not_read_delays_no_other(far, can_port):
    with raw(far, on_can=True):
        begin = time.monotonic()
        for _ in range(600):  # more than a socket holds
            receive(can_port, codec.ESTIMATES)
        assert time.monotonic() - begin < PATIENCE


# --- killed and stopped drivers --------------------------------------------------------------------------------------

DRIVER = """
import contextlib, sys, time
import numpy as np
from devices.arm.motors import OdriveStage
from devices.arm.motors.settings import OdriveSettings
from devices.emulators.odrive.remote import spawn
from devices.emulators.usb_remote import RemoteBackend
from tests.devices.arm.odrive_rig import tick

where = sys.argv[1]
with spawn({"log": where}) if where.endswith(".json") else contextlib.nullcontext(where) as address:
    with OdriveStage(OdriveSettings(watchdog=0.2, reply_timeout=0.3), far_end=RemoteBackend(address)) as stage:
        stage.home(np.zeros(2))
        stage.arm()
        ticks = 0
        while True:
            tick(stage, np.zeros(2))
            ticks += 1
            if ticks == 50:
                print("driven", flush=True)
            time.sleep(1e-3)
"""


@contextmanager
def driver(where):
    """Run a driver in another process; yield it when it drives."""
    with program("-c", DRIVER, where, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout.readline() == "driven\n"
        yield process


def test_killed_driver_loses_the_motors_and_the_next_one_gets_them(far):
    with driver(far._address) as process:
        assert far.observe()["states"] == [CLOSED_LOOP, CLOSED_LOOP]
        process.send_signal(signal.SIGKILL)
        process.wait()
        wait_for(lambda: far.observe()["states"] == [IDLE, IDLE])
        assert far.observe()["errors"] == [0x800, 0x800]
        assert far.observe()["torques"] == [0.0, 0.0]
    with OdriveStage(OdriveSettings(watchdog=0.5, reply_timeout=0.1), far_end=far) as stage:
        stage.home(HOME)
        stage.arm()
        run(stage, 0.05)
        assert far.observe()["states"] == [CLOSED_LOOP, CLOSED_LOOP]
    assert far.observe()["states"] == [IDLE, IDLE]


def test_stopped_driver_loses_the_motors_and_fails_afterwards(far):
    with driver(far._address) as process:
        os.kill(process.pid, signal.SIGSTOP)
        wait_for(lambda: far.observe()["states"] == [IDLE, IDLE])
        assert far.observe()["errors"] == [0x800, 0x800]
        os.kill(process.pid, signal.SIGCONT)
        _, errors = process.communicate(timeout=PATIENCE)
        assert process.returncode == 1, errors
        assert errors.splitlines()[-1].startswith("haptics.errors.DeviceFault: "), errors
        assert "the watchdog expired" in errors, errors
    assert far.observe()["states"] == [IDLE, IDLE]


def test_emulated_drive_outlives_its_driver_and_logs_the_motors(tmp_path):
    log = tmp_path / "log.json"
    with driver(str(log)) as process:
        process.send_signal(signal.SIGKILL)
        process.wait()
        wait_for(lambda: log.exists() and bool(log.read_text()))
    end = json.loads(log.read_text())
    assert (end["states"], end["errors"], end["torques"]) == ([IDLE, IDLE], [0x800, 0x800], [0.0, 0.0])


def test_invalid_fault_of_the_emulator_is_named():
    with pytest.raises(ConfigurationError, match="unknown fault"), spawn({"faults": ["nonsense@1"]}):
        pass


# --- the queue of transfers ------------------------------------------------------------------------------------------


class FakeQueue:
    """A queue that keeps submitted packets and returns those that a test puts in."""

    def __init__(self, *_):
        self.sent = []
        self.coming = deque()

    def submit(self, *data):
        self.sent.extend(data)

    def wait(self, timeout):
        if not self.coming:
            time.sleep(min(timeout, 1e-3))
        return self.coming.popleft() if self.coming else None

    def close(self):
        self.coming.clear()

    def answer(self, data):
        """Answer the packet that was sent last."""
        sequence = int.from_bytes(self.sent[-1][:2], "little") | 0x8000
        self.coming.append(Done(False, 0, sequence.to_bytes(2, "little") + data))


@pytest.fixture
def queue():
    return FakeQueue()


@pytest.fixture
def line(queue):
    class Interface(list[Any]):
        pass

    ends = Interface(SimpleNamespace(bEndpointAddress=address) for address in (0x03, 0x83))
    vars(ends)["bInterfaceNumber"] = 2
    line = Line(QueuedPipes(SimpleNamespace(iSerialNumber=0), ends, lambda *_: queue))
    yield line
    line._closing = True


def test_unsent_packet_ends_its_round_only(line, queue):
    ticket = line.request(1, b"", 1)
    start = time.monotonic()
    queue.coming.append(Done(True, errno.EIO, b""))
    with pytest.raises(TransferError, match="a packet was lost"):
        wait_all(line, [ticket], PATIENCE)
    assert time.monotonic() - start < 10.0
    ticket = line.request(1, b"", 1)
    queue.answer(b"x")
    assert wait_all(line, [ticket], PATIENCE) == [b"x"]


def test_unsent_posted_packet_fails_the_next_round(line, queue):
    line.request(1, b"x", acknowledged=False)
    queue.coming.append(Done(True, errno.ETIMEDOUT, b""))
    wait_for(lambda: line._unsent is not None)
    ticket = line.request(1, b"", 1)
    queue.answer(b"x")
    with pytest.raises(Unsent, match="did not take a packet in time"):
        wait_all(line, [ticket], PATIENCE)


def test_libusb_without_transfers_is_named():
    with pytest.raises(NoQueue, match="this libusb has no libusb_alloc_transfer"):
        Functions(ctypes.CDLL(None))


def test_facts_give_the_reason_for_single_transfers():
    with OdriveStage(far_end=EmulatedOdriveBackend(EmulatedOdrive())) as stage:
        assert stage.facts["transfers"] == "one at a time: the device is not reached by libusb 1.0"


# --- a queue and its drive in another process ------------------------------------------------------------------------


def arm_at_rest(stage):
    """Home and arm the motors once they have coasted to rest after an earlier test."""
    speeds = [f"axis{axis}.encoder.vel_estimate" for axis in (0, 1)]
    wait_for(lambda: all(abs(stage.drive.get(speed)) <= 0.02 for speed in speeds))
    stage.home(HOME)
    stage.arm()


def test_remote_drive_follows_by_its_queue(far):
    with OdriveStage(OdriveSettings(protocol="native", watchdog=0.5, reply_timeout=0.3), far_end=far) as stage:
        assert stage.facts["transfers"] == "queued"
        arm_at_rest(stage)
        run(stage, 0.3, lambda now: HOME + 0.02 * now)
        assert far.observe()["states"] == [8, 8]
        assert stage.read_angles() == pytest.approx(HOME + 0.006, abs=0.004)
    assert far.observe()["states"] == [1, 1]


@pytest.mark.parametrize(
    ("fault", "words"), [("stall", r"the drive refused .* \(stall\)"), ("read-error", "an answer was lost")]
)
def test_fault_of_the_remote_drive_leaves_no_motor_driven(far, fault, words):
    with OdriveStage(OdriveSettings(protocol="native", watchdog=0.1), far_end=far) as stage:
        arm_at_rest(stage)
        run(stage, 0.02)
        far.fault(fault)
        with pytest.raises(DeviceFault, match=words):
            run(stage, PATIENCE)
        wait_for(lambda: far.observe()["states"] == [IDLE, IDLE])
        far.clear()
        with contextlib.suppress(DeviceFault):  # it may not be able to confirm it
            stage.disarm()
        assert far.observe()["states"] == [IDLE, IDLE]


def test_waiting_packets_are_sent_when_the_queue_is_closed(far):
    pipes = open_drive(backend=far)
    far.fault("delay-1ms")
    for _ in range(10):
        pipes.write(b"not understood")
    start = time.monotonic()
    pipes.close()
    far.clear()
    assert time.monotonic() - start > 8e-3
