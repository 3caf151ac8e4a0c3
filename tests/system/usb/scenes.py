"""What is done with an emulated stick that some operating system shows to the driver, and what comes of it.

Each scene takes a `Stage` and returns facts for a test to judge, as JSON can hold them.
"""

from __future__ import annotations

import signal
import struct
import subprocess
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from devices.common.bus.transfers import TransferError
from devices.joystick.device import PidJoystick
from devices.joystick.usb.transport import Transport
from haptics.errors import DeviceFault, DeviceNotFoundError, DeviceOpenError
from tests.processes import program, until
from tests.system.usb.driven import LEVELS
from tests.system.usb.stage import Stage

NEAR = 0.1
"""A force this close to another one is the same [N]: motors have steps, and directions of 8 bits are a little off."""

FAR = 0.005
"""A handle that is so far from its centre has been moved [m]."""

AXES: dict[str, Callable[[bytes], tuple[int, ...]]] = {
    "openffboard": lambda report: struct.unpack_from("<2h", report, 9),
    "sidewinder-ff2": lambda report: tuple((word + 512 & 1023) - 512 for word in struct.unpack_from("<2H", report, 1)),
}
"""Where X and Y are in an input report."""
AXES_REPORT = 1

MOST_WAITING = 64
"""So many input reports the kernel keeps for a program that does not read them."""

GAIN_REPORT = b"\x0d\xff"
"""Full gain, on both sticks."""


# --- the scenes ------------------------------------------------------------------------------------------------------


def identity(stage: Stage) -> Any:
    """Open the transport, ask who is there, and close it again."""
    before = stage.plug.bound
    with stage.connected() as transport:
        link, during = transport.link, stage.plug.bound
    return {
        "vendor_id": link.vendor_id,
        "product_id": link.product_id,
        "bcd_device": link.bcd_device,
        "serial": link.serial,
        "name": link.name,
        "report_descriptor_sha256": link.digest,
        "in_interval_s": link.in_interval,
        "out_interval_s": link.out_interval,
        "out_endpoint": link.out_endpoint,
        "bound": (before, during, stage.bound_again()),
    }


def drive(stage: Stage) -> Any:
    """Command a force through the whole driver, look at what the motors do and where the handle is said to be."""
    wanted = 0.3 * stage.stick.truths["force"]["max_force_n"] * np.array((0.8, -0.6))
    with stage.device() as device:
        felt = push(stage, device, wanted)
        during = stage.plug.bound
        until(lambda: np.linalg.norm(_pushed(device, wanted)) > FAR, "the handle never moved", 10.0, 1e-3)
        with stage.fault("dropout"):  # no more reports are under way: what was said last is what the driver must know
            wire = _last_place(stage)
            until(lambda: np.allclose(device.read().position, wire, atol=1e-9), "the driver says another place", 5.0)
        begin = len(stage.plug.bus.sent(stage.stick.profile.out_endpoint))
    ending = stage.plug.bus.sent(stage.stick.profile.out_endpoint)[begin:]
    return {
        "wanted": wanted.tolist(),
        "felt": felt.tolist(),
        "place": wire.tolist(),
        "ending": [report.hex() for report in ending],
        "during": during,
        "after": stage.bound_again(),
    }


def _pushed(device: PidJoystick, force: Any) -> Any:
    """Command a force and return where the handle is said to be, (2,) [m]."""
    device.write(force)
    return device.read().position


def _last_place(stage: Stage) -> Any:
    """Return where the last input report on the wire says the handle is, (2,) [m], by what is true of the stick."""
    profile, axes = stage.stick.profile, stage.stick.truths["axes"]
    data = [report for report in stage.plug.bus.sent(profile.in_endpoint) if report[0] == AXES_REPORT][-1]
    return np.array(axes["counts_to_m"]) @ (np.array(AXES[profile.name](data)) - axes["centre_counts"])


def push(stage: Stage, device: PidJoystick, wanted: Any, seconds: float = 10.0) -> Any:
    """Command a force until the motors give it; return what they give."""

    def felt() -> Any:
        _pushed(device, wanted)
        force = stage.stick.force
        return force if np.linalg.norm(force - wanted) < NEAR else None

    return until(lambda: (found := felt()) is not None and (found,), f"{wanted} N never came", seconds, 1e-3)[0]


def other_program(stage: Stage, after_kill: Callable[[Stage], Any] = lambda stage: None) -> Any:
    """Open a stick that another program has, kill that program, see to force and driver, and open the stick again.

    It is tried the other program's way and by libusb, which would take the stick from a program that has it by hidraw.
    """
    theirs = stage.stick.plant.force_of(LEVELS)
    with program("-m", "tests.system.usb.driven", stage.transport) as process:
        until(lambda: np.linalg.norm(stage.stick.force - theirs) < NEAR, "the other program pushed nothing", 30.0)
        refusals = [_refusal(replace(stage, transport=way)) for way in sorted({stage.transport, "usb"})]
        facts = {"refusals": refusals, "theirs": theirs.tolist(), "unharmed": stage.stick.force.tolist()}
        assert process.poll() is None, "the other program ended by itself (see what it said)"
        facts |= _killed(stage, process)
        facts["back"] = stage.bound_again()
        until(lambda: not stage.guardians(), "its guardian stayed", 20.0)
        facts["after_kill"] = after_kill(stage)
    return facts | {"then": _refusal(stage), "after": stage.bound_again()}


def _killed(stage: Stage, process: subprocess.Popen[str]) -> dict[str, int]:
    """Kill who pushes; return for how long the force was there afterwards [frame]."""

    def frame() -> int:
        with stage.stick.lock:
            stage.stick.catch_up()
            return stage.stick.firmware.frame

    begin = frame()
    process.send_signal(signal.SIGKILL)
    process.wait(10.0)
    until(lambda: not np.any(stage.stick.force), "the force stayed", 10.0, 1e-3)
    return {"frames": frame() - begin}


def _refusal(stage: Stage) -> str:
    try:
        with stage.connected():
            return ""
    except (DeviceNotFoundError, DeviceOpenError) as error:
        return str(error)


def mute(stage: Stage) -> Any:
    """Ask for a report that does not exist; listen while the stick says nothing, and while it says half of it."""
    with stage.connected() as transport:
        facts: dict[str, Any] = {"unknown": _failure(lambda: transport.get_feature(0x7F, 8))}
        facts["whole"] = len(_report(stage, transport))
        with stage.fault("short"):
            facts["short"] = len(_report(stage, transport))
        with stage.fault("dropout"):
            while transport.read(0.1):  # what was under way before
                pass
            _nudge(stage, 1.0)
            facts["silent"] = transport.read(0.1)
    return facts


def deaf(stage: Stage) -> Any:
    """Tell the stick something while it does not listen, and while its pipe is halted."""
    facts: dict[str, Any] = {}
    with stage.connected() as transport:
        with stage.fault("nak"):
            facts["report"] = _failure(lambda: transport.write(GAIN_REPORT))
            facts["feature"] = _failure(lambda: transport.set_feature(b"\x7f\x00"))
        facts["then"] = _failure(lambda: transport.write(GAIN_REPORT))
        with stage.fault("stall"):
            facts["halted"] = _failure(lambda: transport.write(GAIN_REPORT))
        facts["cleared"] = _failure(lambda: transport.write(GAIN_REPORT))
    return facts


def _failure(action: Callable[[], Any]) -> str:
    """Return in what way `action` failed, empty if it did not."""
    try:
        action()
    except TransferError as error:
        return str(error.trouble)
    return ""


def _report(stage: Stage, transport: Transport) -> bytes:
    """Push the handle and return an input report about it, nothing if none comes; older ones are left out."""
    for _ in range(MOST_WAITING):
        if not transport.read(1e-3):
            break
    for attempt in range(20):
        _nudge(stage, 1.0 if attempt % 2 else -1.0)
        report = transport.read(0.05)
        if report and report[0] == AXES_REPORT:
            return report
    return b""


def _nudge(stage: Stage, level: float) -> None:
    """Move the handle a little by its motors, so that there is something to report."""
    with stage.stick.lock:
        for _ in range(20):
            stage.stick.plant.advance((level, level))


def dead(stage: Stage) -> Any:
    """Let a stick fall dumb and deaf while a force is on; see how soon that is noticed and the caller is free."""
    device = stage.device()
    device.open()
    push(stage, device, np.array((1.0, 0.0)))
    with stage.fault("nak"):
        begin = time.monotonic()
        said = until(lambda: _fault(device), "the device never noticed", 30.0, 1e-3)
        noticed = time.monotonic()
        device.close()
        closed = time.monotonic()
    facts = {"said": said, "noticed": noticed - begin, "closed": closed - noticed, "after": stage.bound_again()}
    until(lambda: not stage.guardians(), "a guardian stayed", 20.0)
    with stage.device() as device:
        return facts | {"felt": push(stage, device, np.array((0.0, 1.0))).tolist()}


def unplugged(stage: Stage) -> Any:
    """Pull the plug while a force is on, and put it back."""
    with stage.device() as device:
        push(stage, device, np.array((1.0, 0.0)))
        stage.plug.unplug()
        said = until(lambda: _fault(device), "the device never noticed", 10.0, 1e-3)
        force = stage.stick.force.tolist()
    stage.plug.plug()
    until(lambda: stage.plug.bound, "the kernel's driver did not take it again", 20.0)
    _open_again(stage)
    with stage.device() as device:
        felt = push(stage, device, np.array((0.0, 1.0)))
    return {"said": said, "force": force, "felt": felt.tolist(), "after": stage.bound_again()}


def _open_again(stage: Stage) -> None:
    """Open the stick as soon as it is found again; says why if it is not."""
    end = time.monotonic() + 10.0
    while (refusal := _refusal(stage)) and time.monotonic() < end:
        time.sleep(0.05)
    assert not refusal, refusal


def _fault(device: PidJoystick) -> str:
    try:
        device.read()
        device.write(np.array((1.0, 0.0)))
    except DeviceFault as error:
        return str(error)
    return ""


SCENES = (identity, drive, mute, deaf, dead, unplugged)
