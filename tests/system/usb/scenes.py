"""Scenes: actions with an emulated stick that an operating system shows to the driver, and their results as JSON.

``python -m tests.system.usb.scenes TRANSPORT`` is another program that pushes with a stick until it is killed.
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
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import numpy as np

from devices.common.bus import TransferError
from devices.emulators.pid.stick import EmulatedStick
from devices.joystick.device import PidJoystick, playing
from devices.joystick.hid.descriptor import Report, ReportType
from devices.joystick.parameters import build_parameters, write_parameters
from devices.joystick.streaming import ENDED
from devices.joystick.usb import hidraw, libusb, reattaching
from devices.joystick.usb.finding import connect
from haptics.errors import DeviceFault, DeviceNotFoundError, DeviceOpenError
from tests.processes import program, until

# Timeout of a scene [s].
PATIENCE = 40.0
# Duration of a constant effect [s].
KEPT_DURATION = 0.2
# Push of the other program, as parts of full scale of the two effects.
LEVELS = 0.25, -0.125
# Tolerance of forces [N]: motors have steps, and directions have 8 bits.
NEAR = 0.1
# Least distance of a moved handle from its centre [m].
FAR = 0.005
# X and Y of an input report.
AXES: dict[str, Callable[[bytes], tuple[int, ...]]] = {
    "openffboard": lambda report: struct.unpack_from("<2h", report, 9),
    "sidewinder-ff2": lambda report: tuple((word + 512 & 1023) - 512 for word in struct.unpack_from("<2H", report, 1)),
}
AXES_REPORT = 1
# Number of input reports that the kernel keeps for a program that does not read them.
MOST_WAITING = 64
# Full gain, on both sticks.
GAIN_REPORT = b"\x0d\xff"


class LightJoystick:
    """A mass with viscous friction between four walls, without a hand; a read advances it by a frame.

    It replaces the virtual joystick, whose kernels a guest kernel would have to compile first.
    """

    def __init__(self, settings, *, clock):
        self._mass, self._damping, self._period = settings["mass"], settings["damping"], clock.period
        self._half = settings["half_width"], settings["half_height"]
        self._place, self._speed, self._force = [0.0, 0.0], [0.0, 0.0], (0.0, 0.0)
        self.hand, self.hand_force = None, np.zeros(2)
        self.open = self.constrain_to_x_axis = lambda: None

    handle = property(lambda self: np.array(self._place))
    handle_velocity = property(lambda self: np.array(self._speed))

    def write(self, force):
        self._force = float(force[0]), float(force[1])

    def read(self):
        for axis in range(2):
            push = self._force[axis] - self._damping * self._speed[axis]
            self._speed[axis] += push / self._mass * self._period
            wanted = self._place[axis] + self._speed[axis] * self._period
            self._place[axis] = max(-self._half[axis], min(self._half[axis], wanted))
            if self._place[axis] != wanted:
                self._speed[axis] = 0.0
        return SimpleNamespace(buttons=0)


@contextlib.contextmanager
def packaged_libusb():
    """Hide the libusb of the system, so that the driver takes the one of the Python package."""
    with patch("ctypes.util.find_library", return_value=None):
        yield


@dataclass
class Stage:
    """A stick, its plug (a `UsbDeviceFiles` or `VhciPlug`), and the file with its parameters."""

    stick: EmulatedStick
    plug: Any
    parameters: Path
    transport: str = "usb"

    def device(self):
        settings = {"parameters": str(self.parameters), "transport": self.transport, "force_duration": KEPT_DURATION}
        return PidJoystick(settings)

    def connected(self):
        """Return the open transport of the stick as a context."""
        return contextlib.closing(connect("", "", self.transport))

    def bound_again(self):
        """Wait until the kernel's driver has the stick; return whether it has."""
        with contextlib.suppress(AssertionError):
            until(lambda: self.plug.bound, "the kernel's driver did not come back", 10.0)
        return bool(self.plug.bound)

    def wait_for_no_guardian(self):
        """Wait until the guardians that were started on this stage have ended."""
        until(lambda: not self._guardians(), "a guardian did not end", 20.0)

    def _guardians(self):
        found, folder = [], bytes(self.parameters.parent)
        for process in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):  # the process has ended
                guards = bytes(Path(reattaching.__file__)) in (process / "cmdline").read_bytes()
                if guards and folder in (process / "environ").read_bytes():
                    found.append(process)
        return found

    @contextlib.contextmanager
    def fault(self, name):
        """Set a fault of the wire for the block."""
        self.stick.faults.set(name)
        try:
            yield
        finally:
            self.stick.faults.clear(name)


def staged(profile, folder, plug):
    """Plug a stick in, with the parameters of a perfect calibration."""
    with patch("devices.emulators.handle.VirtualJoystick", LightJoystick):
        stick = EmulatedStick(profile)
    parameters = folder / "stick.toml"
    write_parameters(parameters, build_parameters(stick.truths))
    return Stage(stick, plug(stick), parameters)


Scene = Callable[[Stage], Any]


def play(stage, scenes):
    """Play the scenes in order, each even if another fails, and print the result of each as a line of JSON."""
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


def named(name, scene, **changes):
    """Return a scene under another name, played on a changed stage."""

    def changed(stage):
        return scene(replace(stage, **changes) if changes else stage)

    changed.__name__ = name
    return changed


def results(text):
    """Return the results of the scenes in the output of `play`, whose last line may be incomplete."""
    return {found["scene"]: found for found in map(json.loads, text[: text.rfind("\n") + 1].splitlines())}


def outcome(action):
    """Return the trouble of a failed transfer; empty if it did not fail."""
    try:
        action()
    except TransferError as error:
        return str(error.trouble)
    return ""


# --- the scenes ------------------------------------------------------------------------------------------------------


def identity(stage):
    """Open the transport and return the identity of the stick."""
    before = stage.plug.bound
    with stage.connected() as transport:
        link, during = transport.link, stage.plug.bound
    return {
        **{name: getattr(link, name) for name in ("vendor_id", "product_id", "bcd_device", "serial", "name")},
        "report_descriptor_sha256": link.digest,
        "in_interval_s": link.in_interval,
        "out_interval_s": link.out_interval,
        "out_endpoint": link.out_endpoint,
        "bound": (before, during, stage.bound_again()),
    }


def drive(stage):
    """Command a force through the whole driver; return the force of the motors and the position of the handle."""
    wanted = 0.3 * stage.stick.truths["force"]["max_force_n"] * np.array((0.8, -0.6))
    profile, bus, axes = stage.stick.profile, stage.plug.bus, stage.stick.truths["axes"]
    with stage.device() as device:
        felt = push(stage, device, wanted)
        during = stage.plug.bound
        until(lambda: np.linalg.norm(_pushed(device, wanted)) > FAR, "the handle never moved", 10.0, 1e-3)
        with stage.fault("dropout"):  # the last report is the position that the driver must know
            data = [report for report in bus.sent(profile.in_endpoint) if report[0] == AXES_REPORT][-1]
            wire = np.array(axes["counts_to_m"]) @ (np.array(AXES[profile.name](data)) - axes["centre_counts"])
            until(lambda: np.allclose(device.read().position, wire, atol=1e-9), "wrong position", 5.0)
        begin = len(bus.sent(profile.out_endpoint))
    ending = [report.hex() for report in bus.sent(profile.out_endpoint)[begin:]]
    facts = {"wanted": wanted.tolist(), "felt": felt, "place": wire.tolist(), "ending": ending}
    return facts | {"during": during, "after": stage.bound_again()}


def _pushed(device, force):
    device.write(force)
    return device.read().position


def push(stage, device, wanted):
    """Command a force until the motors apply it; return their force [N]."""

    def felt():
        _pushed(device, np.array(wanted))
        force = stage.stick.force
        return (force.tolist(),) if np.linalg.norm(force - wanted) < NEAR else None

    found: list[float] = until(felt, f"{wanted} N never came", 10.0, 1e-3)[0]
    return found


def other_program(stage):
    """Open a stick of another program, kill that program, and open the stick again.

    Opening is tried with the other program's transport and with libusb, which could take it from hidraw.
    """
    theirs = stage.stick.plant.force_of(LEVELS)
    with program("-m", "tests.system.usb.scenes", stage.transport) as process:
        until(lambda: np.linalg.norm(stage.stick.force - theirs) < NEAR, "the other program pushed nothing", 30.0)
        refusals = [_refusal(replace(stage, transport=way)) for way in sorted({stage.transport, "usb"})]
        facts = {"refusals": refusals, "theirs": theirs.tolist(), "unharmed": stage.stick.force.tolist()}
        assert process.poll() is None, "the other program ended by itself (see its output)"
        begin = _frame(stage)
        process.send_signal(signal.SIGKILL)
        process.wait(10.0)
        until(lambda: not np.any(stage.stick.force), "the force stayed", 10.0, 1e-3)
        facts |= {"frames": _frame(stage) - begin, "back": stage.bound_again()}
        stage.wait_for_no_guardian()
    return facts | {"then": _refusal(stage), "after": stage.bound_again()}


def _frame(stage):
    with stage.stick.lock:
        stage.stick.catch_up()
        return stage.stick.firmware.frame


def _refusal(stage):
    try:
        with stage.connected():
            return ""
    except (DeviceNotFoundError, DeviceOpenError) as error:
        return str(error)


def mute(stage):
    """Request a report that does not exist; read whole reports, halves of reports, and none."""
    with stage.connected() as transport:
        facts: dict[str, Any] = {
            "unknown": outcome(lambda: transport.get_report(Report(ReportType.FEATURE, 0x7F, (), 8)))
        }
        facts["whole"] = _length_of_report(stage, transport)
        with stage.fault("short"):
            facts["short"] = _length_of_report(stage, transport)
        with stage.fault("dropout"):
            while transport.read(0.1):  # reports from before
                pass
            _nudge(stage, 1.0)
            facts["silent"] = transport.read(0.1)
    return facts


def _length_of_report(stage, transport):
    """Push the handle and return the length of an input report about it; older ones are skipped."""
    for _ in range(MOST_WAITING):
        if not transport.read(1e-3):
            break
    for attempt in range(20):
        _nudge(stage, 1.0 if attempt % 2 else -1.0)
        report = transport.read(0.05)
        if report and report[0] == AXES_REPORT:
            return len(report)
    return 0


def _nudge(stage, level):
    """Move the handle a little by its motors, so that there is something to report."""
    with stage.stick.lock:
        for _ in range(20):
            stage.stick.plant.advance((level, level))


def deaf(stage):
    """Write to a stick that takes nothing, and to one whose pipe is halted."""
    facts: dict[str, Any] = {}
    with stage.connected() as transport:
        with stage.fault("nak"):
            facts["report"] = outcome(lambda: transport.write(GAIN_REPORT))
            facts["feature"] = outcome(lambda: transport.set_feature(b"\x7f\x00"))
        facts["then"] = outcome(lambda: transport.write(GAIN_REPORT))
        with stage.fault("stall"):
            facts["halted"] = outcome(lambda: transport.write(GAIN_REPORT))
        facts["cleared"] = outcome(lambda: transport.write(GAIN_REPORT))
    return facts


def dead(stage):
    """Let a stick neither answer nor take anything while a force is on; return how soon that is noticed [s]."""
    device = stage.device()
    device.open()
    push(stage, device, (1.0, 0.0))
    with stage.fault("nak"):
        begin = time.monotonic()
        said = until(lambda: _fault(device), "the device never noticed", 30.0, 1e-3)
        noticed = time.monotonic()
        device.close()
        closed = time.monotonic()
    facts = {"said": said, "noticed": noticed - begin, "closed": closed - noticed, "after": stage.bound_again()}
    stage.wait_for_no_guardian()
    with stage.device() as device:
        return facts | {"felt": push(stage, device, (0.0, 1.0))}


def unplugged(stage):
    """Pull the plug while a force is on, and put it back."""
    with stage.device() as device:
        push(stage, device, (1.0, 0.0))
        stage.plug.unplug()
        said = until(lambda: _fault(device), "the device never noticed", 10.0, 1e-3)
        force = stage.stick.force.tolist()
    stage.plug.plug()
    until(lambda: stage.plug.bound, "the kernel's driver did not take it again", 20.0)
    end = time.monotonic() + 10.0
    while (refusal := _refusal(stage)) and time.monotonic() < end:
        time.sleep(0.05)
    assert not refusal, refusal
    with stage.device() as device:
        felt = push(stage, device, (0.0, 1.0))
    return {"said": said, "force": force, "felt": felt, "after": stage.bound_again()}


def _fault(device):
    try:
        _pushed(device, np.array((1.0, 0.0)))
    except DeviceFault as error:
        return str(error)
    return ""


SCENES: tuple[Scene, ...] = (identity, drive, mute, deaf, dead, unplugged)


def main():
    patience = 10.0
    with contextlib.ExitStack() as patient:
        for module in (libusb, hidraw):  # the emulator may have to wait for a processor
            patient.enter_context(patch.object(module, "WRITE_TIMEOUT", patience))
        with packaged_libusb():
            stick = connect("", "", sys.argv[1])
        with playing(stick, KEPT_DURATION, KEPT_DURATION / 4, patience=patience) as threads:
            while not threads.trouble[ENDED]:
                threads.levels.publish(*LEVELS, time.perf_counter())
                threads.wake.call()
                time.sleep(5e-3)
            sys.exit(f"the other program ended: {threads.fault}")


if __name__ == "__main__":
    main()
