"""The driver of the arm in front of an emulated one that could not run: whose fault that is said to be."""

import contextlib
import os
import signal
import socket
import struct
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from devices import create_device
from devices.emulated.arm import EmulatedArm
from haptics import Coulomb, RigidAdmittance
from haptics.clock import WallClock
from haptics.errors import DeviceFault
from haptics.servo.servo import Servo
from haptics.trace import Trace

PATIENCE = 30.0
STILL = {"name": "scripted-force", "script": [[0.0, 0.0, 0.0]]}
PATIENT = {"motors": {"watchdog": 1.0, "reply_timeout": 0.4}, "sensor": {"patience": 0.8}}


def opened(**own: Any) -> EmulatedArm:
    arm = create_device("arm", {"emulated": True, "hand": STILL, **PATIENT, **own})
    assert isinstance(arm, EmulatedArm)
    arm.open()
    return arm


def emulator_of(arm: EmulatedArm) -> int:
    """Return the process of the emulator."""
    assert arm._emulator is not None
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as wire:
        wire.connect(arm._emulator._address)
        return int(struct.unpack("3i", wire.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0])


def failure(arm: EmulatedArm, meanwhile: Callable[[], None] = lambda: None) -> str:
    """Tick until it fails; return the words."""
    latest = time.monotonic() + PATIENCE
    with pytest.raises(DeviceFault) as caught:
        home = arm.read().position.copy()
        while time.monotonic() < latest:
            arm.read()
            arm.write(home)
            meanwhile()
            time.sleep(1e-3)
    return str(caught.value)


@pytest.mark.parametrize("lasting", [False, True])
def test_a_starved_emulator_is_the_machine_s_fault(lasting: bool) -> None:
    """It runs again when the driver notices; or it still does not."""
    arm = opened()
    process = emulator_of(arm)
    arm.read()
    os.kill(process, signal.SIGSTOP)
    try:
        if not lasting:
            time.sleep(1.5)  # so its watchdogs will have expired
            os.kill(process, signal.SIGCONT)
        words = failure(arm)
    finally:
        os.kill(process, signal.SIGCONT)
    assert words.startswith("this machine is too busy for the emulation: it kept the emulated arm from running for ")
    assert "supply" not in words
    assert "cable" not in words
    _close(arm)


@pytest.mark.wall_clock  # this process, too, has to get its samples until then
def test_samples_that_a_starved_emulator_made_old_are_the_machine_s_fault(tmp_path: Path) -> None:
    """The driver is patient here, so it is the envelope that ends the run."""
    clock = WallClock(1e-3)
    arm = create_device("arm", {"emulated": True, "hand": STILL, **PATIENT}, clock=clock)
    assert isinstance(arm, EmulatedArm)
    trace = Trace.create(tmp_path / "trace", capacity=4096)
    run = Servo(arm, RigidAdmittance(Coulomb(4.0), 2.0), trace, clock=clock)

    def tell(process: int, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):  # the run has ended
            os.kill(process, number)

    def starve() -> None:
        for later, number in ((0.2, signal.SIGSTOP), (0.5, signal.SIGCONT)):
            threading.Timer(later, tell, (emulator_of(arm), number)).start()

    with pytest.raises(
        DeviceFault, match=r"this machine is too busy for the emulation.*\(It was noticed as: "
    ) as caught:
        run.run(5.0, opened=starve)
    assert "was too old" in str(caught.value)


def _close(arm: EmulatedArm) -> None:
    try:
        arm.close()
    except DeviceFault:  # its motors had been let go
        pass


def test_a_fault_on_demand_is_told_in_the_driver_s_words() -> None:
    arm = opened(wire_faults=["sensor.mute@0.1"])
    process = emulator_of(arm)
    started = time.monotonic()

    def starve() -> None:
        if time.monotonic() - started > 0.05:
            os.kill(process, signal.SIGSTOP)
            time.sleep(0.05)
            os.kill(process, signal.SIGCONT)

    assert "has sent no usable force" in failure(arm, starve)
    _close(arm)


def test_an_emulator_that_is_gone_is_a_drive_that_is_gone() -> None:
    arm = opened()
    os.kill(emulator_of(arm), signal.SIGKILL)
    assert "too busy" not in failure(arm)
    _close(arm)
