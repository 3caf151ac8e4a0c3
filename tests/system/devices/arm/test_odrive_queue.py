"""Packets that are queued: what is made of those that fail, and a drive in another process (libusb: tests/usb)."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import select
import socket
import time
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from devices.arm.motors import OdriveStage
from devices.arm.motors.native.line import Line, wait_all
from devices.arm.motors.usb.finding import open_drive
from devices.arm.motors.usb.libusb_queue import Functions
from devices.arm.motors.usb.pipes import Unsent
from devices.arm.motors.usb.queue import Done, NoQueue
from devices.arm.motors.usb.queued import QueuedPipes
from devices.common.bus.transfers import TransferError, Trouble
from devices.emulators.odrive import emulated_odrive
from devices.emulators.odrive.child import spawn
from devices.emulators.odrive.remote import RemoteBackend
from devices.emulators.odrive.serving import packets
from devices.emulators.odrive.serving.remote_queue import WAITING, RemoteQueue
from haptics.errors import DeviceFault
from tests.devices.arm.odrive_rig import HOME, PATIENCE, run

OUT, IN = 0x03, 0x83


class FakeQueue:
    """Keeps what is submitted; gives what is put."""

    def __init__(self, *_: int) -> None:
        self.sent: list[bytes] = []
        self.coming: deque[Done] = deque()
        self.restarted: list[bool] = []

    def submit(self, *data: bytes) -> None:
        self.sent.extend(data)

    def wait(self, timeout: float) -> Done | None:
        if not self.coming:
            time.sleep(min(timeout, 1e-3))
        return self.coming.popleft() if self.coming else None

    def restart(self, outward: bool, clear: Callable[[], None]) -> None:
        self.restarted.append(outward)
        clear()

    def close(self) -> None:
        self.coming.clear()

    def answer(self, data: bytes) -> None:
        """Answer the packet that was sent last."""
        sequence = int.from_bytes(self.sent[-1][:2], "little") | 0x8000
        self.coming.append(Done(False, 0, sequence.to_bytes(2, "little") + data))


class FakeDevice:
    def __init__(self) -> None:
        self.iSerialNumber = 0
        self.cleared: list[int] = []

    def clear_halt(self, address: int) -> None:
        self.cleared.append(address)


@pytest.fixture
def queue() -> FakeQueue:
    return FakeQueue()


@pytest.fixture
def pipes(queue: FakeQueue) -> QueuedPipes:
    class Interface(list[Any]):
        pass

    ends = Interface(SimpleNamespace(bEndpointAddress=address) for address in (OUT, IN))
    vars(ends)["bInterfaceNumber"] = 2
    return QueuedPipes(FakeDevice(), ends, lambda *_: queue)


@pytest.mark.parametrize("outward", [True, False])
def test_a_pipe_that_stalls_is_cleared_once_until_something_comes_in(
    outward: bool, pipes: QueuedPipes, queue: FakeQueue
) -> None:
    def stall() -> TransferError | None:
        queue.coming.append(Done(outward, errno.EPIPE, b""))
        try:
            pipes.read(0.0)
        except TransferError as error:
            return error
        return None

    for _ in range(2):
        first = stall()
        assert (first is None) == (not outward)  # what was to go out is lost
        assert first is None or first.trouble is Trouble.TIMEOUT
        queue.coming.append(Done(False, 0, b"something"))
        assert pipes.read(0.0) == b"something"
    stall()
    second = stall()
    assert second is not None
    assert second.trouble is Trouble.STALL
    assert isinstance(second, Unsent) == outward
    assert pipes.device.cleared == 3 * [OUT if outward else IN]


@pytest.mark.parametrize(
    ("number", "trouble", "words"),
    [
        (errno.ENODEV, Trouble.UNPLUGGED, "the drive was unplugged, or lost its power"),
        (errno.ETIMEDOUT, Trouble.TIMEOUT, "the drive did not take a packet in time"),
        (errno.EIO, Trouble.BROKEN, "a packet was lost .*: check cable and hub"),
    ],
)
def test_what_did_not_go_out_ends_a_round_at_once_and_not_the_conversation(
    number: int, trouble: Trouble, words: str, pipes: QueuedPipes, queue: FakeQueue
) -> None:
    line = Line(pipes)
    try:
        ticket = line.ask(1, b"", 1)
        start = time.monotonic()
        queue.coming.append(Done(True, number, b""))
        with pytest.raises(TransferError, match=words) as caught:
            wait_all(line, [ticket], 30.0)
        assert caught.value.trouble is trouble
        assert time.monotonic() - start < PATIENCE
        ticket = line.ask(1, b"", 1)
        queue.answer(b"x")
        assert wait_all(line, [ticket], PATIENCE) == [b"x"]
    finally:
        line._closing = True


def test_what_was_posted_and_did_not_go_out_is_noticed_though_all_is_answered(
    pipes: QueuedPipes, queue: FakeQueue
) -> None:
    line = Line(pipes)
    try:
        line.post(1, b"x")
        queue.coming.append(Done(True, errno.ETIMEDOUT, b""))
        latest = time.monotonic() + PATIENCE
        while line._unsent is None and time.monotonic() < latest:
            time.sleep(1e-3)
        ticket = line.ask(1, b"", 1)
        queue.answer(b"x")
        with pytest.raises(Unsent, match="did not take a packet in time"):
            wait_all(line, [ticket], PATIENCE)
    finally:
        line._closing = True


def test_a_libusb_without_them_is_named() -> None:
    with pytest.raises(NoQueue, match="this libusb has no libusb_alloc_transfer"):
        Functions(ctypes.CDLL(None))


def test_where_there_is_no_queue_the_facts_say_why() -> None:
    with OdriveStage(backend=emulated_odrive()) as stage:
        assert stage.facts["transfers"] == "one at a time: the device is not reached by libusb 1.0"


# --- how another process is reached ----------------------------------------------------------------------------------


class FarEnd:
    """The other side of a queue: its connections for packets in and out."""

    def __init__(self, listener: socket.socket) -> None:
        self.inward, self.outward = (listener.accept()[0] for _ in range(2))
        for wire in (self.inward, self.outward):
            wire.settimeout(PATIENCE)

    def asked(self) -> int:
        """Return how many packets in the queue asks for in the next packet."""
        requests = packets.apart(self.inward.recv(packets.LONGEST))
        assert {request[0] for request in requests} == {packets.IN}
        return len(requests)

    def answer(self, *answers: tuple[int, bytes]) -> None:
        """Answer requests for packets in at once: the system's number of an error, and data."""
        (packet,) = packets.together([packets.ANSWER.pack(packets.IN, number) + data for number, data in answers])
        self.inward.send(packet)


@pytest.fixture
def far_end(tmp_path: Path) -> Iterator[tuple[RemoteQueue, FarEnd]]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(str(tmp_path / "far"))
        listener.listen()
        remote = RemoteQueue(str(tmp_path / "far"), 1, 2, OUT, IN)
        end = FarEnd(listener)
        yield remote, end
        end.inward.close()
        end.outward.close()
        remote.close()


def test_packets_that_belong_together_wake_the_other_process_once(far_end: tuple[RemoteQueue, FarEnd]) -> None:
    remote, end = far_end
    remote.submit(b"one", b"two")
    remote.submit(b"three")
    sent = [packets.apart(end.outward.recv(packets.LONGEST)) for _ in range(2)]
    assert [[request[packets.OUT_HEAD.size :] for request in each] for each in sent] == [[b"one", b"two"], [b"three"]]


def test_packets_are_asked_for_when_half_of_those_asked_for_have_come(far_end: tuple[RemoteQueue, FarEnd]) -> None:
    remote, end = far_end
    assert end.asked() == WAITING
    half = [bytes((number,)) for number in range(WAITING // 2)]
    end.answer(*((0, data) for data in half[1:]))
    assert [remote.wait(PATIENCE) for _ in half[1:]] == [Done(False, 0, data) for data in half[1:]]
    assert remote.wait(0.0) is None
    assert not select.select([end.inward], (), (), 0.0)[0]
    end.answer((0, half[0]))
    assert remote.wait(PATIENCE) == Done(False, 0, half[0])
    assert end.asked() == WAITING // 2


def test_for_what_failed_nothing_is_asked_until_the_endpoint_is_cleared(far_end: tuple[RemoteQueue, FarEnd]) -> None:
    remote, end = far_end
    assert end.asked() == WAITING
    end.answer(*(WAITING * [(errno.EPIPE, b"")]))
    assert [remote.wait(PATIENCE) for _ in range(WAITING)] == WAITING * [Done(False, errno.EPIPE, b"")]
    assert not select.select([end.inward], (), (), 0.0)[0]
    remote.restart(False, lambda: None)
    assert end.asked() == WAITING
    end.answer((0, b"two"))
    assert remote.wait(PATIENCE) == Done(False, 0, b"two")


# --- in another process ----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def far() -> Iterator[RemoteBackend]:
    with spawn({}) as address:
        yield RemoteBackend(address)


def come_to_rest(stage: OdriveStage) -> None:
    """Wait until the motors stand: nobody holds them, and they coast from where a fault has let go of them."""
    latest = time.monotonic() + PATIENCE
    while any(abs(stage.drive.get(f"axis{axis}.encoder.vel_estimate")) > 0.02 for axis in (0, 1)):
        assert time.monotonic() < latest
        time.sleep(2e-3)


def test_a_drive_in_another_process_has_a_queue_and_follows(far: RemoteBackend) -> None:
    with OdriveStage({"protocol": "native", "watchdog": 0.5, "reply_timeout": 0.3}, backend=far) as stage:
        assert stage.facts["transfers"] == "queued"
        stage.home(HOME)
        stage.arm()
        run(stage, 0.3, lambda now: HOME + 0.02 * now)
        assert far.observe()["states"] == [8, 8]
        assert stage.look() == pytest.approx(HOME + 0.006, abs=0.004)
    assert far.observe()["states"] == [1, 1]


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("stall", r"the drive refused .* \(stall\)"),
        ("read-error", "an answer was lost .*: check cable and hub"),
        ("write-error", "a packet was lost .*: check cable and hub"),
        ("nak", "the drive did not take a packet in time|the drive does not answer"),
        ("lost-answer", "the drive does not answer"),
    ],
)
def test_faults_there_are_told_in_the_same_words_and_leave_no_motor_driven(
    far: RemoteBackend, fault: str, words: str
) -> None:
    stage = OdriveStage({"protocol": "native", "watchdog": 0.1}, backend=far)
    with stage:
        come_to_rest(stage)
        stage.home(HOME)
        stage.arm()
        run(stage, 0.02)
        far.fault(fault)
        with pytest.raises(DeviceFault, match=words):
            run(stage, PATIENCE)
        latest = time.monotonic() + PATIENCE
        while far.observe()["states"] != [1, 1]:
            assert time.monotonic() < latest
            time.sleep(2e-3)
        far.clear()
        with contextlib.suppress(DeviceFault):  # where nothing is read any more it cannot be sure
            stage.disarm()
        assert far.observe()["states"] == [1, 1]


def test_packets_that_wait_when_the_queue_is_closed_go_out(far: RemoteBackend) -> None:
    pipes = open_drive(backend=far)
    far.fault("delay-1ms")
    for _ in range(10):
        pipes.write(b"not understood")
    start = time.monotonic()
    pipes.close()
    far.clear()
    assert time.monotonic() - start > 8e-3
