"""Checks of USB: the library, the udev rules, and permissions to open the supported devices."""

from __future__ import annotations

import contextlib
import fnmatch
import itertools
import os
import re
import shlex
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from apps.doctor.child import NoAnswer, call_in_child
from apps.doctor.machine import LOG_IN_AGAIN, Finding, Machine, container, note, ok, problem, program
from apps.doctor.software import install_line
from devices.arm import ODRIVES, OPTOFORCE
from devices.common.bus import GROUP, RULES_FILE, Node, device_rules, libusb_backend, printable
from devices.falcon.wire import IDENTITY as FALCON
from devices.forcedimension.library import IDENTITIES as OMEGAS
from devices.joystick.families import FAMILIES as STICKS
from devices.pantograph.mechanisms import IDENTITIES as HAPI_BOARDS
from devices.touch.hdapi import IDENTITIES as TOUCHES


@dataclass(frozen=True)
class Family:
    """USB devices that need the same permissions.

    Attributes
    ----------
    name : str
        Short name.
    title : str
        One-line description.
    backend : str
        Backend (``--device``) that uses it.
    identities : tuple of str
        ``vendor:product`` in lower-case hexadecimal.
    nodes : tuple of Node
        Device files that the driver opens.
    """

    name: str
    title: str
    backend: str
    identities: tuple[str, ...]
    nodes: tuple[Node, ...]


_HID = (Node.USB, Node.HIDRAW)
_SERIAL = (Node.TTY,)
_IDENTITY = re.compile(r"[0-9a-f]{4}:[0-9a-f]{4}")

FAMILIES = (
    *(Family(stick.name, stick.title, "pid-joystick", stick.identities, _HID) for stick in STICKS),
    Family("haply", "Haply board (Arduino Zero, M0 or Due)", "pantograph", HAPI_BOARDS, _SERIAL),
    Family("touch", "3D Systems Touch on USB", "touch", TOUCHES, (Node.TTY, Node.HIDRAW)),
    Family("falcon", "Novint Falcon", "falcon", (FALCON,), (Node.USB,)),
    Family("odrive", "ODrive 3 motor stage", "arm", ODRIVES, (Node.USB, Node.TTY)),
    Family("force-dimension", "Force Dimension omega, delta, sigma or lambda", "forcedimension", OMEGAS, (Node.USB,)),
    Family("optoforce", "OptoForce / OnRobot force sensor", "arm", OPTOFORCE, _SERIAL),
)


def stick_family(identity: str, title: str = "") -> Family:
    """Return a family for a force-feedback stick that is not in `FAMILIES`, named by its identity."""
    return Family(identity, title or "a force-feedback stick", "pid-joystick", (identity,), _HID)


def names() -> list[str]:
    """Return all names of families and backends that `named` accepts."""
    return list(dict.fromkeys([*(family.name for family in FAMILIES), *(family.backend for family in FAMILIES)]))


def named(name: str) -> tuple[Family, ...]:
    """Return the family called `name`, or all families of the backend `name`.

    A name of the form ``vendor:product`` denotes a stick that is not in `FAMILIES`.
    """
    found = tuple(family for family in FAMILIES if name in {family.name, family.backend} or name in family.identities)
    return found or ((stick_family(name),) if _IDENTITY.fullmatch(name) else ())


DEVICES = "/sys/bus/usb/devices"


def load_libusb() -> dict[str, Any]:
    """Load libusb like the drivers, and return its source."""
    from haptics.errors import DeviceOpenError

    try:
        file = libusb_backend().lib._name
    except DeviceOpenError:
        return {"source": None}
    return {"source": "libusb-package" if "libusb_package" in Path(file).parts else "the system"}


_load_libusb = partial(call_in_child, "apps.doctor.usb:load_libusb")


def libusb(machine: Machine, load: Callable[[], dict[str, Any]] = _load_libusb) -> Finding:
    """Check that pyusb finds libusb."""
    pip = f"{shlex.quote(sys.executable)} -m pip install pyusb libusb-package"
    try:
        source = load()["source"]
    except NoAnswer as error:
        return problem(f"pyusb cannot be loaded ({error})", pip)
    if source is None:
        lines = [install_line(["libusb-1.0-0"], machine.sudo)] if machine.system == "linux" else [pip]
        return problem("pyusb finds no libusb: no USB device can be opened", *lines)
    return ok(f"libusb loads (from {source})")


@dataclass(frozen=True)
class Plugged:
    """Connected device of a known family: identity, device files, serial number (empty if it has none)."""

    family: Family
    identity: str
    files: tuple[Path, ...]
    serial: str = ""


def plugged(machine: Machine) -> list[Plugged]:
    """Return the connected devices of known families, and other force-feedback sticks."""
    found, sticks = [], {family.identities[0]: family for family in unknown_sticks(machine)}
    for folder in sorted(machine.path(DEVICES).glob("*")):
        identity = f"{_file_text(folder / 'idVendor')}:{_file_text(folder / 'idProduct')}"
        families = [family for family in FAMILIES if identity in family.identities]
        if identity in sticks:
            families = [sticks[identity]]
        serial = _file_text(folder / "serial")
        found += [Plugged(family, identity, tuple(_files(machine, folder, family)), serial) for family in families]
    return found


def unknown_sticks(machine: Machine) -> list[Family]:
    """Return a family for each kind of connected force-feedback stick that is not in `FAMILIES`.

    A stick is recognized by its report descriptor, which any user can read in sysfs.
    """
    from devices.joystick.usb.hidraw import hidraw_nodes
    from devices.joystick.usb.libusb import has_forces

    known = {identity for family in FAMILIES for identity in family.identities}
    found: dict[str, Family] = {}
    for node in hidraw_nodes(machine.root):
        identity = node.link.vid_pid
        if identity not in known and has_forces(node.link.descriptor):
            found[identity] = stick_family(identity, node.link.name)
    return list(found.values())


def _file_text(path: Path) -> str:
    try:
        return printable(path.read_text(errors="replace"))
    except OSError:
        return ""


def _files(machine: Machine, folder: Path, family: Family) -> list[Path]:
    """Return the device files of a connected device that its driver opens."""
    files = []
    bus, number = _file_text(folder / "busnum"), _file_text(folder / "devnum")
    if Node.USB in family.nodes and bus.isdecimal() and number.isdecimal():
        files.append(machine.path(f"/dev/bus/usb/{int(bus):03}/{int(number):03}"))
    if Node.HIDRAW in family.nodes:
        files += [machine.path(f"/dev/{entry.name}") for entry in sorted(folder.glob("*:*/*/hidraw/hidraw*"))]
    if Node.TTY in family.nodes:
        files += [machine.path(f"/dev/{entry.name}") for entry in sorted(folder.glob("*:*/tty/tty*"))]
    return files


def openable(path: Path) -> bool:
    """Return True if the device file `path` may be read and written."""
    return os.access(path, os.R_OK | os.W_OK)


def udev(machine: Machine, openable: Callable[[Path], bool] = openable) -> Finding:
    """Check that connected devices can be opened, and that the udev rules cover the other known devices."""
    present = plugged(machine)
    without = [device for device in present if not device.files or not all(path.exists() for path in device.files)]
    if without:
        fix = (
            ("# start the container with: -v /dev:/dev --device-cgroup-rule='c *:* rmw'",)
            if container(machine)
            else (f"{machine.sudo}modprobe -a cdc_acm usbhid", "# then unplug the device and plug it in again")
        )
        return problem(f"plugged in but without device files: {_listed(without)}", *fix)
    closed = [device for device in present if not all(map(openable, device.files))]
    if closed:
        return problem(f"plugged in but you may not open it: {_listed(closed)}", *_rules_fix(machine))
    if machine.is_root:
        return ok(f"root may open every device; plugged in: {_listed(present) or 'none of those we know'}")
    if not machine.path(DEVICES).exists():
        return ok("there is no USB here")
    files = read_rules(machine)
    groups = [name for name, number in machine.groups_of_names().items() if number in machine.groups]
    lacking = [
        family
        for family in FAMILIES
        if not all(
            access(files, identity, node).open_to(groups)
            for identity, node in itertools.product(family.identities, family.nodes)
        )
    ]
    if not lacking:
        return ok(f"rules open all {len(FAMILIES)} families of devices; plugged in: {_listed(present) or 'none'}")
    names = "any of our devices" if len(lacking) == len(FAMILIES) else ", ".join(family.name for family in lacking)
    loud = [
        identity
        for family in lacking
        for identity in family.identities
        if identity.upper() != identity
        and any(access(files, identity.upper(), node).open_to(()) for node in family.nodes)
    ]
    hint = f" (a rule for {loud[0]} has capital letters, which never match)" if loud else ""
    return note(f"no udev rule would give access to {names}{hint}", *_rules_fix(machine))


def _listed(devices: list[Plugged]) -> str:
    return ", ".join(f"{device.family.name} ({device.identity})" for device in devices)


def _rules_fix(machine: Machine) -> tuple[str, ...]:
    write = f"{program()} doctor --udev | {machine.sudo}tee {RULES_FILE}"
    reload = f"{machine.sudo}udevadm control --reload && {machine.sudo}udevadm trigger"
    where = ("# udev runs on the host of this container; there:",) if container(machine) else ()
    return (*where, machine.join_group(GROUP), write, reload, LOG_IN_AGAIN)


FOLDERS = (
    "/etc/udev/rules.d",
    "/run/udev/rules.d",
    "/usr/local/lib/udev/rules.d",
    "/usr/lib/udev/rules.d",
    "/lib/udev/rules.d",
)
"""Folders in order of precedence. A file hides files of the same name in later folders."""
SEAT = "73-seat-late.rules"
"""Rules file of systemd that converts the tag uaccess into permissions. Tags set by later files have no effect."""

_TOKEN = re.compile(r'([A-Z_]+)(?:\{([^}]*)\})?\s*(==|!=|\+=|-=|:=|=)\s*[ei]?"((?:[^"\\]|\\.)*)"')
_CONDITIONS = {"==", "!="}
"""Operators of conditions; the others assign a property."""

_READ_WRITE = 0o6


# --- udev rules ---------------------------------------------------------------------------------------------------


def rules(families: Iterable[Family] = FAMILIES) -> str:
    """Return a rules file that gives the logged-in user, and the group, access to our devices."""
    lines = [
        f"# {RULES_FILE}",
        "# Force feedback devices: for who sits at the machine (uaccess), and for members of the group.",
    ]
    for family in families:
        lines += ["", f"# {family.name}: {family.title}"]
        for identity in family.identities:
            lines += device_rules(identity, family.nodes)
    return "\n".join(lines)


class Token(NamedTuple):
    """Token of a rule, ``KEY{attribute}operator"value"``."""

    key: str
    attribute: str
    operator: str
    value: str

    def holds(self, facts: Mapping[tuple[str, str], str]) -> bool:
        """Return True if the condition holds for the `facts` of a device file.

        A condition about an unknown property does not hold.
        """
        value = facts.get((self.key, self.attribute))
        if value is None:
            return self.operator == "!="
        found = any(fnmatch.fnmatchcase(value, pattern) for pattern in self.value.split("|"))
        return found == (self.operator == "==")


@dataclass(frozen=True)
class Access:
    """Permissions that rules grant for a device file."""

    tagged: bool = False
    mode: int | None = None
    group: str | None = None

    def open_to(self, groups: Iterable[str]) -> bool:
        """Return True if the logged-in user, a member of `groups`, may read and write."""
        if self.tagged:
            return True
        mode = self.mode if self.mode is not None else (0o660 if self.group is not None else 0)
        return mode & _READ_WRITE == _READ_WRITE or (
            self.group in set(groups) and mode >> 3 & _READ_WRITE == _READ_WRITE
        )


def parse(text: str) -> list[list[Token]]:
    """Return the rules of a file as lists of tokens; lines that are not rules are ignored."""
    joined = re.sub(r"\\\n\s*", "", text)
    lines = (line.strip() for line in joined.splitlines())
    found = [[Token(*token) for token in _TOKEN.findall(line)] for line in lines if line[:1] != "#"]
    return list(filter(None, found))


def read_rules(machine: Machine) -> dict[str, list[list[Token]]]:
    """Return the active rules by file name, in the order of udev."""
    paths: dict[str, Path] = {}
    for folder in FOLDERS:
        for path in machine.path(folder).glob("*.rules"):
            paths.setdefault(path.name, path)
    found = {}
    for name in sorted(paths):
        with contextlib.suppress(OSError):
            found[name] = parse(paths[name].read_text(errors="replace"))
    return found


def access(files: dict[str, list[list[Token]]], identity: str, node: Node) -> Access:
    """Return the permissions that the rules of `files` grant for the file `node` of the device `identity`."""
    vendor, product = identity.split(":")
    facts = {
        ("ACTION", ""): "add",
        ("SUBSYSTEM", ""): str(node),
        ("SUBSYSTEMS", ""): "usb",
        ("KERNEL", ""): {Node.USB: "1-1", Node.HIDRAW: "hidraw0", Node.TTY: "ttyACM0"}[node],
        ("ATTRS", "idVendor"): vendor,
        ("ATTRS", "idProduct"): product,
    }
    if node is Node.USB:
        facts |= {("ATTR", "idVendor"): vendor, ("ATTR", "idProduct"): product, ("ENV", "DEVTYPE"): "usb_device"}
    granted = Access()
    for file, content in files.items():
        label = ""  # jumps are handled as by udev
        for rule in content:
            if label and not any(token.key == "LABEL" and token.value == label for token in rule):
                continue
            label = ""
            if not all(token.holds(facts) for token in rule if token.operator in _CONDITIONS):
                continue
            for key, _, operator, value in (token for token in rule if token.operator not in _CONDITIONS):
                if key == "TAG" and value == "uaccess" and file < SEAT:
                    granted = replace(granted, tagged=operator != "-=")
                elif key == "MODE" and re.fullmatch(r"0?[0-7]{3}", value):
                    granted = replace(granted, mode=int(value, 8))
                elif key == "GROUP":
                    granted = replace(granted, group=value)
                elif key == "GOTO":
                    label = value
    return granted
