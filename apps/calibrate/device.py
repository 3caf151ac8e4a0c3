"""Measuring on a device for ``haptics calibrate friction --device``: its motors move the handle, which nobody holds."""

from __future__ import annotations

import argparse
import contextlib
import datetime
import os
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from apps.calibrate.orderly import orderly_end
from apps.progress import Line, bar
from haptics.device import Causality
from haptics.errors import ConfigurationError, HapticError
from haptics.settings import build, unknown

if TYPE_CHECKING:
    from calibration.excitation import Excitation
    from calibration.measurements import Measurement
    from haptics.clock import Clock
    from haptics.device import Device

    Measured = dict[str, list[Measurement]]

_RATE = 1000.0
_PRIORITY = 80
_NOBODY = {"name": "scripted-force", "script": [[0.0, 0.0, 0.0]]}
"""The hand of a virtual or emulated device that is left alone."""

EXCITATION = "excitation"
"""Table of settings of the motions."""


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


def measure(options: argparse.Namespace) -> Measured:
    """Move the device that was asked for, and return what was measured of its axes, x and y, or its joints, 1 and 2.

    Raises
    ------
    HapticError
        If the device or a setting cannot be used, or the device fails; what was recorded stays.
    """
    device, clock, tables = device_for(options, EXCITATION)
    table = tables.get(EXCITATION, {})
    if device.spec.causality is Causality.ADMITTANCE:
        return measure_joints(device, clock, table, place_of(options, f"{EXCITATION}.csv"))
    return _handle(device, clock, table, place_of(options, EXCITATION))


def _handle(device: Device, clock: Clock, table: dict[str, Any], folder: Path) -> Measured:
    """Measure on a device that takes forces."""
    from calibration.excitation import Excitation, plan
    from calibration.excited import excite
    from calibration.excited_measurements import measurements_of

    excitation = build(Excitation, table, "excitation")
    duration = len(plan(excitation, device.spec, clock.period)) * clock.period
    limits = f"with up to {excitation.fastest:g} m/s and {device.spec.max_force:g} N"
    with moving(device, duration, limits, folder) as progress, _punctually(clock):
        excite(device, excitation, folder, clock, progress)
    return measurements_of(folder)


def measure_joints(device: Device, clock: Clock, table: dict[str, Any], file: Path) -> Measured:
    """Move the joints of an arm by its servo, and return what was measured of them."""
    from calibration.excited_arm import excite_arm, plan_joints, require_joints

    require_joints(device)
    excitation = joint_excitation(table)
    angles, _ = plan_joints(device.body, excitation, device.spec, clock.period)  # type: ignore[attr-defined]
    limits = f"its joints with up to {excitation.fastest:g} rad/s"
    with moving(device, len(angles) * clock.period, limits, file) as progress:
        return excite_arm(device, excitation, file, clock, progress)


def joint_excitation(table: dict[str, Any]) -> Excitation:
    """Return the motions of joints that the table of settings asks for.

    Raises
    ------
    ConfigurationError
        If a setting makes no sense.
    """
    from calibration.excitation import Excitation
    from calibration.excited_arm import DEFAULT

    return build(Excitation, {**asdict(DEFAULT), **table}, EXCITATION)


@contextlib.contextmanager
def _punctually(clock: Clock) -> Iterator[None]:
    """Go before the other programs while a clock is kept step with, where that is permitted; threads begun do too."""
    from haptics.clock import WallClock

    granted = False
    if isinstance(clock, WallClock):
        with contextlib.suppress(AttributeError, OSError):  # not on this system, or not for this user
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(_PRIORITY))
            granted = True
    try:
        yield
    finally:
        if granted:
            os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))


@contextlib.contextmanager
def moving(device: Device, duration: float, limits: str, place: Path) -> Iterator[Callable[[float], None]]:
    """Say what is going to happen, show how far it is, and say what is left if it does not come to its end."""
    from apps.calibrate.terminal import say

    try:
        place.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigurationError(
            f"--record = {str(place.parent)!r}: no recording can be made there ({error.strerror or error})."
        ) from error
    say(
        f"{device.spec.name} is going to move by itself for {duration:.0f} s, {limits}: let go of the handle and keep "
        f"clear of it. Ctrl-C ends it at any time. Recording to {place}."
    )
    with orderly_end(), Line() as line:
        try:
            yield lambda share: line.show(f"{bar(share)} {share:.0%}")
        except (HapticError, KeyboardInterrupt):
            if place.exists():
                say(f"What was recorded is in {place}.")
            raise


def device_for(options: argparse.Namespace, *motions: str) -> tuple[Device, Clock, dict[str, dict[str, Any]]]:
    """Return the device, not yet open, its clock, and the tables of settings, of which those of `motions` are known.

    Raises
    ------
    ConfigurationError
        If the device is not known or a setting makes no sense.
    """
    from devices import BACKENDS, create_device, has_simulated_hand, is_virtual
    from haptics.clock import Clock, WallClock

    if options.device not in BACKENDS:
        raise unknown("device", options.device, BACKENDS)
    tables = _tables(options.assignments, motions)
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
    return create_device(name, settings, clock=clock), clock, tables


def _tables(assignments: list[str], motions: tuple[str, ...]) -> dict[str, dict[str, Any]]:
    from apps.session.config import assign, parse_assignment

    tables: dict[str, dict[str, Any]] = {}
    for text in assignments:
        table, name, value = parse_assignment(text, ("device", *motions))
        assign(tables, table, name, value)
    return tables


def place_of(options: argparse.Namespace, what: str) -> Path:
    """Return where the recording of what was done goes."""
    now = datetime.datetime.now().strftime("%Y-%m-%dT%H-%M-%S")
    return Path(options.record) / f"{now}_{options.device}_{what}"
