"""Find connected devices that a driver can use, and their missing requirements.

The survey does not disturb devices: it claims no interface and opens no serial port.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from apps.doctor.machine import Machine, program
from apps.doctor.ports import BACKEND, LIBRARIES, can_interfaces, listens
from apps.doctor.usb import Plugged, openable, plugged
from devices import BACKENDS
from devices.arm import ODRIVES
from devices.common.bus import GROUP, RULES_FILE, Node, device_rules, setting
from devices.forcedimension.library import NAME as FORCE_DIMENSION
from devices.inverse3.service import PORT
from devices.touch.hdapi import NAME as TOUCH
from haptics.errors import DeviceOpenError

if TYPE_CHECKING:
    from devices.joystick.usb.finding import FoundStick

STICK, FALCON, ARM = "pid-joystick", "falcon", "arm"
APPLY = f"then run: sudo groupadd -f {GROUP}; sudo udevadm control --reload; sudo udevadm trigger; plug it in anew."

_NEEDED = {
    STICK: "no force-feedback stick is plugged in",
    "pantograph": "no hAPI board is plugged in",
    BACKEND: f"no Haply service was seen at port {PORT}",
    TOUCH: "no Touch is plugged in at USB; one on Ethernet or FireWire cannot be seen here",
    FALCON: "no Falcon is plugged in",
    ARM: "no ODrive is plugged in",
    FORCE_DIMENSION: "no Force Dimension device is plugged in",
}
"""Message per backend if the required hardware is missing.

The force sensor of an arm may be on the network instead. For a backend of another package the survey cannot detect the
hardware; its driver reports the problem when it is opened.
"""

_FIRST_SESSIONS = {
    FALCON: " --set device.firmware=FILE   # docs/falcon.md",
    FORCE_DIMENSION: "   # docs/force_dimension.md",
    TOUCH: "   # docs/lab_devices.md",
}
"""Rest of the command of a first session, by backend."""

_CAN = "CAN interface"
"""Name of a CAN interface in the survey. Its ``identity`` is the interface name."""

_EMULATED = "--set device.emulated=true does without"


_RUNNING_ARM = (
    "{} run --device arm --model A --set device.at_home=true{} --set device.sensor.name=ati "
    "--set device.sensor.address=ADDRESS   # docs/arm.md; a sensor on the network is known by its address only"
)


@dataclass(frozen=True)
class Found:
    """Connected device.

    Attributes
    ----------
    backend : str
        Backend (``--device``) that can use it; empty if none can.
    name : str
        Product name, or the title of its device family.
    identity : str
        ``vendor:product`` in lower-case hexadecimal.
    serial : str or None
        Serial number; empty if the device has none, None if permissions do not allow reading it.
    nodes : tuple of str
        Device files.
    missing : tuple of str
        Steps that are required before it can be used; empty if none.
    udev_rules : str
        Lines of the udev rules that give the logged-in user access.
    speaks_pid : bool
        True if it supports USB PID force feedback.
    transport : str
        For a stick, the access path: ``usb`` or ``hidraw``.
    port : str
        For a stick, its USB port, such as ``1-2.3``; empty if unknown.
    motors : int or None
        For a stick, the number of axes with a motor (1 for a wheel); None if it cannot be read without disturbing the
        device.
    in_rate_hz, out_rate_hz, vector_rate_hz : float or None
        For a stick, the maximum rates of input reports, output reports and force vectors [Hz]. A force vector takes two
        output reports, or one for a wheel.
    next : str
        Next command to run: the calibration of a stick, or a session with the drive of an arm.
    """

    backend: str
    name: str
    identity: str
    serial: str | None
    nodes: tuple[str, ...]
    missing: tuple[str, ...] = ()
    udev_rules: str = ""
    speaks_pid: bool = False
    transport: str = ""
    port: str = ""
    motors: int | None = None
    in_rate_hz: float | None = None
    out_rate_hz: float | None = None
    vector_rate_hz: float | None = None
    next: str = ""

    def __str__(self) -> str:
        return " ".join(filter(None, (self.name, f"({self.identity})", self.serial and f"serial {self.serial}")))


@dataclass(frozen=True)
class Survey:
    """Connected devices, and requirements common to all sticks.

    Attributes
    ----------
    found : tuple of Found
        Devices that drivers can use, and other devices of the USB class of sticks.
    without_libusb : str
        Instruction to install libusb if it is missing, else empty.
    """

    found: tuple[Found, ...] = ()
    without_libusb: str = ""

    def of(self, backend: str) -> list[Found]:
        """Return the connected devices that a backend can use."""
        return [one for one in self.found if one.backend == backend]

    def missing(self, backend: str) -> list[str]:
        """Return the missing requirements of a backend; empty if it needs no hardware or the need is unknown."""
        if backend not in _NEEDED:
            return []
        usable = [one for one in self.of(backend) if backend != ARM or one.identity in ODRIVES or one.name == _CAN]
        if not usable:
            lacking = [f"{_NEEDED[backend]} ({_EMULATED})"]
        elif any(not one.missing for one in usable):
            return []
        else:
            lacking = [words for one in usable for words in one.missing]
        return [*lacking, self.without_libusb] if backend == STICK and self.without_libusb else lacking

    def result(self) -> dict[str, Any]:
        """Return the survey as plain values for ``--json``."""
        return {"plugged": [asdict(one) for one in self.found], "libusb": not self.without_libusb}


def survey(root: Path = Path("/"), backend: Any = None) -> Survey:
    """Find the connected devices.

    Parameters
    ----------
    root : Path
        Root of the system's files.
    backend : usb.backend.IBackend, optional
        Replaces libusb.
    """
    from devices.joystick.usb.finding import hidraw_sticks, usb_sticks

    machine = Machine(root=root)
    by_hidraw, without = hidraw_sticks(root), ""
    try:
        seen = usb_sticks(backend, root)
    except DeviceOpenError as error:
        seen, without = by_hidraw, str(error)
    serials = Counter(stick.serial for stick in seen if stick.speaks_pid)
    alone = serials.total() == 1
    sticks = [_stick(one, by_hidraw, alone or (bool(one.serial) and serials[one.serial] == 1)) for one in seen]
    boards = [_board(one) for one in plugged(machine) if one.family.backend in BACKENDS.keys() - {STICK}]
    # Devices on a CAN bus, and those of the Haply service, are not queried.
    buses = []
    for one in can_interfaces(machine):
        missing = () if one.up else (f"it is down: {one.bring_up(machine.sudo)}",)
        options = f" --set device.motors.protocol=can --set device.motors.interface={one.name}"
        running = _RUNNING_ARM.format(program(), options)
        buses.append(Found(ARM, _CAN, one.name, "", (), missing=missing, next=running))
    services = []
    if listens(machine):
        running = f"{program()} run --device {BACKEND} --model C"
        services.append(Found(BACKEND, "Haply service", f"port {PORT}", "", (), next=running))
    return Survey((*sticks, *boards, *buses, *services), without)


def _stick(stick: FoundStick, by_hidraw: list[FoundStick], distinct: bool) -> Found:
    """Describe a stick.

    Prefer hidraw for a stick that libusb may not open but hidraw may. The calibration command includes the port unless
    the serial number is unique or there is only one stick.
    """
    rules = "\n".join(device_rules(stick.identity, (Node.USB, Node.HIDRAW)))
    if stick.missing:
        stick = next((other for other in by_hidraw if _same(other, stick) and not other.missing), stick)
    own = Found("", stick.name, stick.identity, stick.serial, (stick.node,))
    if not stick.speaks_pid:
        return own
    outward = stick.family.out_interval(stick.out_interval)
    chosen = f" {setting('device.serial', stick.serial)}" if stick.serial else ""
    port = "" if distinct else f" {setting('device.port', stick.port)}"
    size = "--rim-radius M" if stick.motors == 1 else "--travel-x M --travel-y M"
    calibrating = (
        f"{program()} calibrate joystick --out stick.toml {size} --stated-max-force N{chosen}{port}"
        f"   # once; then: run --device {STICK} --set device.parameters=stick.toml{port}"
    )
    return replace(
        own,
        backend=STICK,
        missing=_not_permitted([stick.node], rules) if stick.missing else (),
        udev_rules=rules,
        speaks_pid=True,
        transport=stick.transport,
        port=stick.port,
        motors=stick.motors,
        in_rate_hz=1.0 / stick.in_interval,
        out_rate_hz=1.0 / outward,
        vector_rate_hz=1.0 / ((1 if stick.motors == 1 else 2) * outward),
        next=calibrating,
    )


def _not_permitted(files: list[str], rules: str) -> tuple[str, ...]:
    refused = f"it may not be opened ({', '.join(files)}: permission denied)"
    return (f"{refused}. Put these lines into {RULES_FILE}:\n{rules}\n{APPLY}",)


def _same(one: FoundStick, other: FoundStick) -> bool:
    same = one.identity == other.identity and (one.serial == other.serial or None in {one.serial, other.serial})
    return same and ("" in {one.port, other.port} or one.port == other.port)


def _board(one: Plugged) -> Found:
    rules = "\n".join(device_rules(one.identity, one.family.nodes))
    closed = [str(path) for path in one.files if not openable(path)]
    if not one.files:
        missing: tuple[str, ...] = ("it has no device file: unplug it and plug it in again",)
    elif closed:
        missing = _not_permitted(closed, rules)
    elif one.family.backend in LIBRARIES and (lacking := LIBRARIES[one.family.backend].missing()):
        missing = (lacking,)
    else:
        missing = ()
    if one.identity in ODRIVES:
        running = _RUNNING_ARM.format(program(), "")
    elif one.family.backend in _FIRST_SESSIONS:
        running = f"{program()} run --device {one.family.backend} --model C{_FIRST_SESSIONS[one.family.backend]}"
    else:
        running = ""
    return Found(
        one.family.backend,
        one.family.title,
        one.identity,
        one.serial or None,
        tuple(map(str, one.files)),
        missing=missing,
        udev_rules=rules,
        next=running,
    )


def describe(found: Survey) -> str:
    """Format the survey as text."""
    usable = [one for one in found.found if one.backend]
    others = [one for one in found.found if not one.backend]
    lines = ["plugged in:"] if usable else [f"plugged in: nothing that a driver here can use ({_EMULATED})"]
    for one in usable:
        rate = f", {one.vector_rate_hz:.4g} forces per second over {one.transport}" if one.vector_rate_hz else ""
        kind = ", a wheel (one axis with a motor)" if one.motors == 1 else ""
        lines.append(f"  {one}: {one.backend}{kind}{rate}{f', at port {one.port}' if one.port else ''}")
        for words in one.missing:
            lines += [f"      {line}" for line in f"missing: {words}".splitlines()]
        lines += [f"      {one.next}"] if one.next and not one.missing else []
    if others:
        lines.append(f"without force feedback: {', '.join(map(str, others))}")
    if found.without_libusb:
        lines.append(found.without_libusb)
    return "\n".join(lines)
