"""Returning the interface to the kernel driver, without a kernel (`tests.system.usb` uses one)."""

import errno
import fcntl
import os
import struct
from pathlib import Path

import pytest

from devices.joystick.usb import reattaching
from devices.joystick.usb.reattaching import prepare

INTERFACE = 2


class System:
    """Answers the calls: None for success, else an error number; the last one again and again."""

    def __init__(self, *answers: int | None) -> None:
        self.answers = list(answers)
        self.calls: list[tuple[int, tuple[int, ...]]] = []

    def ioctl(self, file: int, request: int, data: bytes) -> int:
        self.calls.append((request, struct.unpack("@iiP", data)))
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if answer is not None:
            raise OSError(answer, os.strerror(answer))
        return 0


def act(system: System, node: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    node.touch()
    monkeypatch.setattr(fcntl, "ioctl", system.ioctl)
    return prepare([str(node), str(INTERFACE)])()


def test_call_is_that_of_the_kernels_header(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    system = System(None)
    assert act(system, tmp_path / "node", monkeypatch) == 0
    assert system.calls == [(0xC0105512, (INTERFACE, 0x5517, 0))]  # USBDEVFS_IOCTL on 64 bits, USBDEVFS_CONNECT


def test_an_interface_that_is_not_free_yet_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    system = System(errno.EBUSY, errno.EBUSY, None)
    assert act(system, tmp_path / "node", monkeypatch) == 0
    assert len(system.calls) == 3


def test_an_interface_that_somebody_else_keeps_is_left_to_him(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reattaching, "PATIENCE", 0.02)
    with pytest.raises(OSError, match="busy"):
        act(System(errno.EBUSY), tmp_path / "node", monkeypatch)


def test_a_stick_that_is_gone_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    system = System(errno.ENODEV)
    with pytest.raises(OSError, match="No such device"):
        act(system, tmp_path / "node", monkeypatch)
    assert len(system.calls) == 1
