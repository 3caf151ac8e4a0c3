"""What is done with an emulated stick that some operating system shows to the driver, and what comes of it.

Each scene takes a `Stage` and returns facts for a test to judge, as JSON can hold them. A program that has a stage
calls `play`; the tests get what it prints.
"""

from __future__ import annotations

import contextlib
import faulthandler
import json
import signal
import struct
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from devices.emulators.pid.machine import START
from devices.emulators.pid.stick import EmulatedStick
from devices.joystick.device import PidJoystick
from devices.joystick.finding import connect
from devices.joystick.parameters import build_parameters, write_parameters
from devices.joystick.transport import TransferError, Transport
from haptics.errors import DeviceFault, DeviceNotFoundError, DeviceOpenError
from tests.processes import program, until
from tests.usb.bus import Bus
from tests.usb.driven import KEPT_DURATION, LEVELS
from tests.usb.light import light_handles

PATIENCE = 40.0
"""After this long a scene that hangs says where [s]."""

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

GAIN_REPORT = b"\x0d\xff"
"""Full gain, on both sticks."""


class Plug(Protocol):
    """How the stick is plugged in."""

    bus: Bus

    @property
    def bound(self) -> bool:
        """Whether the kernel's driver has it."""
        ...

    def plug(self) -> None: ...
    def unplug(self) -> None: ...


@dataclass
class Stage:
    """A stick, its plug, and the file with its parameters."""

    stick: EmulatedStick
    plug: Plug
    parameters: Path
    transport: str = "usb"

    def device(self) -> PidJoystick:
        """Return the stick as a device for the servo."""
        settings = {"parameters": str(self.parameters), "transport": self.transport, "force_duration": KEPT_DURATION}
        return PidJoystick(settings)

    @contextlib.contextmanager
    def connected(self) -> Iterator[Transport]:
        """Open and close the stick's transport."""
        transport = connect("", "", self.transport)
        try:
            yield transport
        finally:
            transport.close()

    @contextlib.contextmanager
    def fault(self, name: str) -> Iterator[None]:
        """Let a fault of the wire be there for a while."""
        self.stick.faults.set(name)
        try:
            yield
        finally:
            self.stick.faults.clear(name)


def staged(profile: str, folder: Path, plug: Callable[[EmulatedStick], Plug]) -> Stage:
    """Plug a stick in; its parameters are what a perfect calibration would find."""
    with light_handles():
        stick = EmulatedStick(profile)
    parameters = folder / "stick.toml"
    write_parameters(parameters, build_parameters(stick.truths))
    return Stage(stick, plug(stick), parameters)


def play(stage: Stage, scenes: Iterable[Callable[[Stage], Any]]) -> None:
    """Play the scenes one after the other, each even if another fails, and print a line of what came of each."""
    for scene in scenes:
        faulthandler.dump_traceback_later(PATIENCE, exit=True)
        start = time.monotonic()
        found: dict[str, Any] = {"scene": scene.__name__}
        try:
            found["facts"] = scene(stage)
        except Exception:
            found["error"] = traceback.format_exc()
        stage.stick.faults.clear()
        found["seconds"] = round(time.monotonic() - start, 2)
        sys.stdout.write(json.dumps(found) + "\n")
        sys.stdout.flush()
    faulthandler.cancel_dump_traceback_later()


def again(scene: Callable[[Stage], Any], name: str, **changes: Any) -> Callable[[Stage], Any]:
    """Return a scene under another name, to be played on a stage that is changed."""

    def changed(stage: Stage) -> Any:
        return scene(replace(stage, **changes))

    changed.__name__ = name
    return changed


def played(text: str) -> dict[str, Any]:
    """Return what came of each scene, out of what `play` printed."""
    return {found["scene"]: found for found in map(json.loads, text.splitlines())}


# --- the scenes ------------------------------------------------------------------------------------------------------


def identity(stage: Stage) -> Any:
    """Open the transport, ask who is there, and close it again."""
    before = stage.plug.bound
    with stage.connected() as transport:
        link, during = transport.link, stage.plug.bound
    return {
        "vendor_id": link.vendor_id,
        "product_id": link.product_id,
        "serial": link.serial,
        "name": link.name,
        "report_descriptor_sha256": link.digest,
        "in_interval_s": link.in_interval,
        "out_interval_s": link.out_interval,
        "out_endpoint": link.out_endpoint,
        "bound": (before, during, _bound_again(stage)),
    }


def _bound_again(stage: Stage) -> bool:
    with contextlib.suppress(AssertionError):
        until(lambda: stage.plug.bound, "the kernel's driver did not come back", 10.0)
    return stage.plug.bound


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
        "after": _bound_again(stage),
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


def other_program(stage: Stage) -> Any:
    """Open a stick that another program has, kill that program, see to the force, and open the stick again."""
    theirs = stage.stick.plant.force_of(LEVELS)
    with program("-m", "tests.usb.driven", stage.transport) as process:
        until(lambda: np.linalg.norm(stage.stick.force - theirs) < NEAR, "the other program pushed nothing", 30.0)
        refusal = _refusal(stage)
        unharmed = stage.stick.force.tolist()
        process.send_signal(signal.SIGKILL)
        process.wait(10.0)
        lasted = _lasting(stage)
        left = stage.plug.bound
    then = _refusal(stage)
    return {
        "refusal": refusal,
        "theirs": theirs.tolist(),
        "unharmed": unharmed,
        "frames": lasted,
        "left": left,
        "then": then,
        "after": _bound_again(stage),
    }


def _lasting(stage: Stage) -> int:
    """Wait until there is no force; return how long after the last start of an effect there was one [frame]."""
    forced = 0

    def over() -> bool:
        nonlocal forced
        with stage.stick.lock:
            if np.any(stage.stick.force):
                forced = stage.stick.firmware.frame
                return False
        return True

    until(over, "the force stayed", 10.0, 1e-3)
    log = stage.stick.firmware.log
    starts = [frame for frame, kind, fields in log if kind == "operation" and fields["operation"] == START]
    return forced - starts[-1]


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
    """Push the handle and return an input report about it, nothing if none comes; an older one is left out."""
    transport.read(0.05)
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
    return {"said": said, "force": force, "felt": felt.tolist(), "after": _bound_again(stage)}


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


SCENES = (identity, drive, mute, deaf, other_program, unplugged)
