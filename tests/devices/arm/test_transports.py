"""Connections of the arm without threads or with one: failures of a motor stage, of USB pipes, CAN and a sensor."""

import errno
import queue
import socket
from types import SimpleNamespace

import pytest

from devices.arm.motors import can_bus as codec
from devices.arm.motors.can_bus import CanLine, Frame
from devices.arm.motors.usb import QueuedPipes
from devices.arm.sensors import optoforce
from devices.arm.sensors.optoforce import OptoForceSettings, OptoForceWire
from devices.common.bus import TransferError
from devices.common.usb_queue import Done
from tests.devices.arm.odrive_rig import make_on_can

OUT, IN = 0x03, 0x83

# A published frame with the counts (-9, -5, 7), and the answer to a configuration.
FRAME = bytes.fromhex("aa07080a 2d6a 0000 fff7 fffb 0007 0551")
ACCEPTED = bytes.fromhex("aa0050010000fb")


def test_stage_without_armed_motors_has_no_failure_and_no_samples():
    stage, _, _ = make_on_can()
    assert stage.failure == ""
    assert stage.sampled == float("-inf")


class LostQueue:
    """A queue of a device whose stalled pipe cannot be cleared."""

    def __init__(self, outward):
        self.outward = outward

    def wait(self, timeout):
        return Done(self.outward, errno.EPIPE, b"")

    def restart(self, outward, clear):
        raise OSError(errno.ENODEV, "No such device")


@pytest.mark.parametrize("outward", [True, False])
def test_pipe_that_cannot_be_cleared_is_a_failure(outward):
    class Interface(list):
        bInterfaceNumber = 2  # noqa: N815 (the name in pyusb)

    ends = Interface(SimpleNamespace(bEndpointAddress=address) for address in (OUT, IN))
    pipes = QueuedPipes(SimpleNamespace(iSerialNumber=0), ends, lambda *_: LostQueue(outward))
    with pytest.raises(TransferError, match="was unplugged"):
        pipes.read(0.0)


class MemoryPort:
    """A CAN interface in memory."""

    def __init__(self):
        self.frames = queue.Queue()

    def receive(self, timeout):
        try:
            return self.frames.get(timeout=max(timeout, 1e-6))
        except queue.Empty:
            return None

    def close(self):
        pass


def test_can_line_wakes_once_for_new_estimates_of_both_axes():
    port, wakes = MemoryPort(), []
    line = CanLine(port, "can0", (0, 1))
    line.wake = lambda: wakes.append(line.latest(1, codec.ESTIMATES).total)
    try:
        for node, command in [
            *((0, codec.ESTIMATES), (0, codec.HEARTBEAT), (1, codec.ESTIMATES), (1, codec.HEARTBEAT)),
            *((1, codec.ESTIMATES), (0, codec.ESTIMATES), (0, codec.HEARTBEAT), (1, codec.HEARTBEAT)),
        ]:
            before = line.latest(node, command).total
            port.frames.put(codec.pack(Frame(node, command, bytes(8))))
            assert line.wait(lambda n=node, c=command, before=before: line.latest(n, c).total > before, 10.0)
    finally:
        line.close()
    assert wakes == [1, 2]


def test_optoforce_counts_are_loads_of_the_sensitivity_report(monkeypatch):
    near, far = socket.socketpair()
    with near, far:
        monkeypatch.setattr(optoforce, "open_port", lambda *_: near.fileno())
        settings = OptoForceSettings(port="/dev/ttyACM0", sensitivity=[[7925, 300], [8641, 300], [6049, 2000]])
        wire = OptoForceWire(settings)
        far.sendall(ACCEPTED)
        wire.open()
        far.sendall(FRAME)
        sample = wire.poll(5.0)
        assert sample.wrench == pytest.approx((-9 * 300 / 7925, -5 * 300 / 8641, 7 * 2000 / 6049, 0.0, 0.0, 0.0))
        far.sendall(ACCEPTED)
        monkeypatch.setattr(optoforce.os, "close", lambda port: None)
        wire.close()
