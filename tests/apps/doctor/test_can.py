"""CAN interfaces: found by their type, whether they are up, and what to type if they are not."""

from __future__ import annotations

from pathlib import Path

import pytest

from apps.doctor.checks.can import can_bus, can_interfaces
from apps.doctor.finding import Severity
from apps.plugged import describe, survey
from tests.apps.doctor.machines import expect, machine

NET = "/sys/class/net/"


def interfaces(root: Path, **given: tuple[int, int]) -> Path:
    """Make interfaces of these types and flags; names with a v are virtual ones."""
    files = {}
    for name, (kind, flags) in given.items():
        files |= {f"{NET}{name}/type": f"{kind}\n", f"{NET}{name}/flags": f"{flags:#x}\n"}
        if not name.startswith("v"):
            files[f"{NET}{name}/device/uevent"] = ""
    machine(root, files)
    return root


def test_only_can_interfaces_are_found(tmp_path: Path) -> None:
    root = interfaces(tmp_path, eth0=(1, 0x1003), can1=(280, 0x40081), vcan0=(280, 0x80), lo=(772, 0x9))
    (root / NET[1:] / "odd").mkdir()
    found = [(one.name, one.up, one.real) for one in can_interfaces(machine(root))]
    assert found == [("can1", True, True), ("vcan0", False, False)]


def test_one_that_is_down_is_brought_up_with_the_right_bit_rate(tmp_path: Path) -> None:
    root = interfaces(tmp_path, can0=(280, 0x80), vcan0=(280, 0x80))
    found = expect(can_bus(machine(root)), Severity.NOTE, "can0, vcan0", "can0 up type can bitrate 1000000")
    assert found.fix.splitlines()[1].endswith("ip link set vcan0 up")


@pytest.mark.parametrize(("given", "words"), [({}, "no CAN interface"), ({"can0": (280, 0x81)}, "are up: can0")])
def test_all_is_well(tmp_path: Path, given: dict[str, tuple[int, int]], words: str) -> None:
    expect(can_bus(machine(interfaces(tmp_path, **given))), Severity.OK, words)


def test_devices_names_them_and_what_to_type(tmp_path: Path) -> None:
    told = describe(survey(interfaces(tmp_path, can0=(280, 0x80)), backend=None))
    assert "CAN interface (can0): arm" in told
    assert "missing: it is down: " in told and "ip link set can0 up type can bitrate 1000000" in told
    found = survey(interfaces(tmp_path, can0=(280, 0x81)), backend=None)
    assert not found.missing("arm")
    assert "--set device.motors.protocol=can --set device.motors.interface=can0" in describe(found)
