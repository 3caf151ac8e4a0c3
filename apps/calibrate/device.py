"""Measuring on a device for ``haptics calibrate friction --device``: its motors move the handle, which nobody holds."""

from __future__ import annotations

import argparse
import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from apps.calibrate.orderly import orderly_end
from apps.progress import Line, bar
from haptics.errors import ConfigurationError, HapticError
from haptics.settings import build, unknown

if TYPE_CHECKING:
    from calibration.measurements import Measurement
    from haptics.clock import Clock
    from haptics.device import Device

_RATE = 1000.0
_NOBODY = {"name": "scripted-force", "script": [[0.0, 0.0, 0.0]]}
"""The hand of a virtual or emulated device that is left alone."""

_TABLES = ("device", "excitation")


def add_device_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that say on which device to measure, and how."""
    parser.add_argument(
        "--device", metavar="NAME", help="measure on this device: its motors move the handle, which nobody may hold"
    )
    parser.add_argument(
        "--set",
        dest="assignments",
        metavar="TABLE.NAME=VALUE",
        action="append",
        default=[],
        help="a setting of the device or of the motions, such as device.emulated=true or excitation.fastest=0.08 "
        "(repeatable)",
    )
    parser.add_argument(
        "--record", metavar="FOLDER", type=Path, default=Path("recordings"), help="where the recording goes"
    )


def measure(options: argparse.Namespace) -> dict[str, list[Measurement]]:
    """Move the handle of the device that was asked for, and return what was measured of its axes, x and y.

    Raises
    ------
    HapticError
        If the device or a setting cannot be used, or the device fails; what was recorded stays.
    """
    from apps.calibrate.terminal import say
    from calibration.excitation import Excitation, plan
    from calibration.excited import excite
    from calibration.excited_measurements import measurements_of

    device, clock, table = _device(options)
    excitation = build(Excitation, table, "excitation")
    motion = plan(excitation, device.spec, clock.period)
    folder = _folder(options.record, options.device)
    say(
        f"{device.spec.name} is going to move by itself for {len(motion) * clock.period:.0f} s, with up to "
        f"{excitation.fastest:g} m/s and {device.spec.max_force:g} N: let go of the handle and keep clear of it. "
        f"Ctrl-C ends it at any time, and there is no force then. Recording to {folder}."
    )
    with orderly_end(), Line() as line:
        try:
            excite(device, excitation, folder, clock, lambda share: line.show(f"{bar(share)} {share:.0%}"))
        except (HapticError, KeyboardInterrupt):
            if folder.exists():
                say(f"What was recorded is in {folder}.")
            raise
    return measurements_of(folder)


def _device(options: argparse.Namespace) -> tuple[Device, Clock, dict[str, Any]]:
    """Return the device, not yet open, its clock, and the table of the motions."""
    from devices import BACKENDS, create_device, has_simulated_hand, is_virtual
    from haptics.clock import Clock, WallClock

    if options.device not in BACKENDS:
        raise unknown("device", options.device, BACKENDS)
    tables = _tables(options.assignments)
    settings = tables.get("device", {})
    name = settings.pop("name", options.device)
    if name != options.device:
        raise ConfigurationError(f"device.name = {name!r}: --device says {options.device!r}.")
    if "hand" in settings:
        raise ConfigurationError("device.hand: nobody holds a device whose own friction is measured.")
    if settings.get("friction_parameters"):
        raise ConfigurationError("device.friction_parameters: that is the file to be made; name it with --out.")
    if has_simulated_hand(name, settings):
        settings["hand"] = _NOBODY
    clock = Clock(1.0 / _RATE) if is_virtual(name) else WallClock(1.0 / _RATE)
    return create_device(name, settings, clock=clock), clock, tables.get("excitation", {})


def _tables(assignments: list[str]) -> dict[str, dict[str, Any]]:
    from apps.session.config import assign, parse_assignment

    tables: dict[str, dict[str, Any]] = {}
    for text in assignments:
        table, name, value = parse_assignment(text, _TABLES)
        assign(tables, table, name, value)
    return tables


def _folder(parent: Path, device: str) -> Path:
    return parent / f"{datetime.datetime.now():%Y-%m-%dT%H-%M-%S}_{device}_excitation"
