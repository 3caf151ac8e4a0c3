"""Who writes to a device: the servo alone. Everybody else hands it a program, or is a device himself."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.processes import ROOT

FLOORS = ("haptics", "devices", "calibration", "apps", "examples")

MAY_WRITE = {
    "haptics/servo/loop.py": "the loop of the servo",
    "haptics/servo/servo.py": "the safe output at its end",
    "devices/faults/device.py": "a device around another one",
    "devices/virtual/device.py": "its own safe output, when it is closed",
    "devices/emulators/pid/plant.py": "the plant behind an emulated stick",
    "devices/emulators/inverse3/handle.py": "the plant behind an emulated service",
    "devices/emulators/hapi/arms.py": "the plant behind an emulated board",
    "apps/reproduce/blockage.py": "a device around another one, which watches it",
    "examples/choosing_parameters.py": "an example that steps a virtual arm by hand",
    "examples/walls.py": "an example that steps a virtual joystick by hand",
}
"""Where a device's ``write`` is called, and why that may be."""

NO_DEVICES = {"stdout", "stderr", "out", "file", "wfile", "stream", "mapping"}
"""What else is written to, by the name it has."""

NOT_THE_CONTRACT = {
    "devices/joystick/session.py": "reports, to a transport",
    "devices/joystick/streaming.py": "reports, to a session",
    "devices/joystick/usb/usb_transport.py": "reports, to a device of pyusb",
    "devices/arm/motors/native/line.py": "packets, to the pipes of a drive",
    "devices/arm/motors/usb/text.py": "lines, to the serial port of a drive",
    "devices/arm/motors/usb/pipes.py": "packets, to a device of pyusb",
}
"""Methods of the same name that belong to something else."""


def written(path: Path) -> Iterator[str]:
    """Yield what has a method ``write`` called with one argument in a file, as it is named there."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "write":
            owner = ast.unparse(node.func.value)
            if owner.split(".")[-1].strip("_") not in NO_DEVICES and len(node.args) == 1:
                yield owner


def test_only_the_servo_writes_to_a_device() -> None:
    found: dict[str, set[str]] = {}
    for floor in FLOORS:
        for path in sorted((ROOT / floor).rglob("*.py")):
            owners = set(written(path))
            if owners:
                found[path.relative_to(ROOT).as_posix()] = owners
    strangers = {name: owners for name, owners in found.items() if name not in MAY_WRITE | NOT_THE_CONTRACT}
    assert not strangers, f"hand the servo a program instead (haptics.rendering.motion): {strangers}"
    assert set(MAY_WRITE) <= set(found), "a place that writes no more may not stay on the list"


def test_nobody_goes_round_the_driver_of_a_stick() -> None:
    """Its streams take levels; whoever looks at a stick may only look."""
    for floor in ("calibration", "apps", "examples"):
        for path in (ROOT / floor).rglob("*.py"):
            source = path.read_text(encoding="utf-8")
            assert ".levels.publish" not in source and ".wake.call" not in source, path
