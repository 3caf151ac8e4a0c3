"""Checks of USB: the library, and permissions to open the supported devices."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from apps.doctor.checks.families import FAMILIES, Family, stick_family
from apps.doctor.checks.libraries import install_line
from apps.doctor.checks.processor import container
from apps.doctor.checks.udev import Token, access, read_rules
from apps.doctor.child import NoAnswer, call_in_child
from apps.doctor.finding import Finding, note, ok, problem
from apps.doctor.machine import LOG_IN_AGAIN, Machine, program
from devices.common.bus import GROUP, RULES_FILE, Node, libusb_backend, printable

DEVICES = "/sys/bus/usb/devices"


def load_libusb() -> dict[str, Any]:
    """Load libusb like the drivers, and return its source."""
    from haptics.errors import DeviceOpenError

    try:
        file = libusb_backend().lib._name
    except DeviceOpenError:
        return {"source": None}
    return {"source": "libusb-package" if "libusb_package" in Path(file).parts else "the system"}


def _load() -> dict[str, Any]:
    answer: dict[str, Any] = call_in_child("apps.doctor.checks.usb:load_libusb")
    return answer


def libusb(machine: Machine, load: Callable[[], dict[str, Any]] = _load) -> Finding:
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
        identity = f"{_text(folder / 'idVendor')}:{_text(folder / 'idProduct')}"
        families = [family for family in FAMILIES if identity in family.identities]
        if identity in sticks:
            families = [sticks[identity]]
        serial = _text(folder / "serial")
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


def _text(path: Path) -> str:
    try:
        return printable(path.read_text(errors="replace"))
    except OSError:
        return ""


def _files(machine: Machine, folder: Path, family: Family) -> list[Path]:
    """Return the device files of a connected device that its driver opens."""
    files = []
    bus, number = _text(folder / "busnum"), _text(folder / "devnum")
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
        return problem(f"plugged in but without device files: {_listed(without)}", *_files_fix(machine))
    closed = [device for device in present if not all(map(openable, device.files))]
    if closed:
        return problem(f"plugged in but you may not open it: {_listed(closed)}", *_rules_fix(machine))
    if machine.is_root:
        return ok(f"root may open every device; plugged in: {_listed(present) or 'none of those we know'}")
    if not machine.path(DEVICES).exists():
        return ok("there is no USB here")
    lacking = without_rule(machine)
    if not lacking:
        return ok(f"rules open all {len(FAMILIES)} families of devices; plugged in: {_listed(present) or 'none'}")
    names = "any of our devices" if len(lacking) == len(FAMILIES) else ", ".join(family.name for family in lacking)
    return note(f"no udev rule would give access to {names}{_in_capitals(machine, lacking)}", *_rules_fix(machine))


def _listed(devices: list[Plugged]) -> str:
    return ", ".join(f"{device.family.name} ({device.identity})" for device in devices)


def without_rule(machine: Machine) -> list[Family]:
    """Return the families with a device file to which no rule gives this user access."""
    files, groups = read_rules(machine), _names(machine)
    return [family for family in FAMILIES if not _opened(files, family, groups)]


def _names(machine: Machine) -> list[str]:
    return [name for name, number in machine.groups_of_names().items() if number in machine.groups]


def _opened(files: dict[str, list[list[Token]]], family: Family, groups: list[str]) -> bool:
    return all(access(files, identity, node).open_to(groups) for identity in family.identities for node in family.nodes)


def _in_capitals(machine: Machine, lacking: list[Family]) -> str:
    """Return a hint if a rule fails only because its identity has capital letters, which never match."""
    files = read_rules(machine)
    for family in lacking:
        for identity in family.identities:
            loud = identity.upper()
            if loud != identity and any(access(files, loud, node).open_to(()) for node in family.nodes):
                return f" (a rule for {identity} has capital letters, which never match)"
    return ""


def _rules_fix(machine: Machine) -> tuple[str, ...]:
    write = f"{program()} doctor --udev | {machine.sudo}tee {RULES_FILE}"
    reload = f"{machine.sudo}udevadm control --reload && {machine.sudo}udevadm trigger"
    where = ("# udev runs on the host of this container; there:",) if container(machine) else ()
    return (*where, machine.join_group(GROUP), write, reload, LOG_IN_AGAIN)


def _files_fix(machine: Machine) -> tuple[str, ...]:
    if container(machine):
        return ("# start the container with: -v /dev:/dev --device-cgroup-rule='c *:* rmw'",)
    return (f"{machine.sudo}modprobe -a cdc_acm usbhid", "# then unplug the device and plug it in again")
