"""Measurements for ``haptics calibrate ... --device``, in which the motors move a free handle."""

from __future__ import annotations

import argparse
import contextlib
import datetime
import signal
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from apps.shared.terminal import Line, bar
from haptics.device import Causality
from haptics.errors import ConfigurationError, HapticError
from haptics.settings import build

if TYPE_CHECKING:
    from calibration.data.joint_recording import JointRecording
    from calibration.motions import Mover
    from calibration.motions.arm import JointExcitation
    from calibration.motions.driving import Measurement

    Measured = dict[str, list[JointRecording]]

Result = TypeVar("Result")

_NOBODY = {"name": "scripted-force", "script": [[0.0, 0.0, 0.0]]}
"""Zero hand force for a virtual or emulated device."""

EXCITATION = "excitation"
"""Name of the settings table of the motions."""


def add_device_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that choose the device and its settings."""
    parser.add_argument(
        "--device", metavar="NAME", help="measure on this device: its motors move the handle; keep hands off"
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
        "--record", metavar="FOLDER", type=Path, default=Path("recordings"), help="folder of the recording"
    )
    parser.add_argument(
        "--clock",
        choices=("wall", "off"),
        help="wall: real time, in a servo process; off: as fast as possible (default of virtual devices)",
    )
    parser.add_argument(
        "--fault",
        dest="faults",
        metavar="NAME@SECONDS[+DURATION]",
        action="append",
        default=[],
        help="inject a fault into the device, as haptics run does (repeatable)",
    )


def print_message(words: str) -> None:
    """Write a message to standard error."""
    sys.stderr.write(f"{words}\n")
    sys.stderr.flush()


def measure(options: argparse.Namespace) -> Measured:
    """Move the chosen device and return the recordings of its axes (x, y) or joints (1, 2).

    Raises
    ------
    HapticError
        If the device or a setting cannot be used, or if the device fails. The recording is kept.
    """
    from calibration.motions.excitation import Excitation
    from calibration.motions.handle_motion import HandleExcitation

    mover, tables = mover_for(options, EXCITATION)
    table = tables.get(EXCITATION, {})
    if mover.spec.causality is Causality.ADMITTANCE:
        return carry_out(options, mover, joint_excitation(table))
    return carry_out(options, mover, HandleExcitation(build(Excitation, table, EXCITATION)))


def joint_excitation(table: dict[str, Any]) -> JointExcitation:
    """Return the joint excitation described by a settings table.

    Raises
    ------
    ConfigurationError
        If a setting is invalid.
    """
    from calibration.motions.arm import DEFAULT, JointExcitation
    from calibration.motions.excitation import Excitation

    return JointExcitation(build(Excitation, {**asdict(DEFAULT), **table}, EXCITATION))


def carry_out(options: argparse.Namespace, mover: Mover, measurement: Measurement[Result]) -> Result:
    """Announce a measurement, move the device and return the result, with progress.

    If the motion is interrupted, the path of the recording is printed.

    Raises
    ------
    HapticError
        If the device cannot be measured, or fails. The recording is kept.
    """
    from apps.session.record import made_by

    measurement.require(mover)
    duration, limits = measurement.extent(mover)
    folder = new_recording(options.record, f"{options.device}_{measurement.table}")
    print_message(
        f"{mover.spec.name} is going to move by itself for {duration:.0f} s, {limits}: let go of the handle and keep "
        f"clear of it. Ctrl-C ends it at any time. Recording to {folder}."
    )
    with orderly_end(), Line() as line:

        def progress(seconds: float) -> None:
            done = min(seconds / duration, 1.0)
            line.show(f"{bar(done)} {done:.0%}")

        try:
            return measurement.run(mover, folder, made_by(), progress)
        except (HapticError, KeyboardInterrupt):
            if folder.exists():
                print_message(f"The recording is in {folder}.")
            raise


def new_recording(folder: Path, name: str) -> Path:
    """Create the folder of the recordings and return the path of a new one, named by the time and `name`.

    Raises
    ------
    ConfigurationError
        If the folder cannot be created.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigurationError(
            f"--record = {str(folder)!r}: no recording can be made there ({error.strerror or error})."
        ) from error
    return folder / f"{datetime.datetime.now().strftime('%Y-%m-%dT%H-%M-%S')}_{name}"


@contextlib.contextmanager
def orderly_end() -> Iterator[None]:
    """Handle SIGTERM and SIGHUP like Ctrl-C, so that the force is removed."""

    def interrupt(number: int, frame: FrameType | None) -> NoReturn:
        raise KeyboardInterrupt

    numbers = (signal.SIGTERM, signal.SIGHUP)
    before = [signal.signal(number, interrupt) for number in numbers]
    try:
        yield
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)


def mover_for(options: argparse.Namespace, *motions: str) -> tuple[Mover, dict[str, dict[str, Any]]]:
    """Return the mover of the device and the settings tables: ``device`` and those named in `motions`.

    A virtual or emulated device gets zero hand force.

    Raises
    ------
    ConfigurationError
        If the device is unknown or a setting is invalid.
    """
    from apps.settings.config import assign, parse_assignment
    from calibration.motions import Mover
    from devices import find_backend, has_simulated_hand, is_virtual
    from devices.faults import parse_fault

    find_backend(options.device)
    tables: dict[str, dict[str, Any]] = {}
    for text in options.assignments:
        table, name, value = parse_assignment(text, ("device", *motions))
        assign(tables, table, name, value)
    settings = tables.get("device", {})
    name = settings.pop("name", options.device)
    if name != options.device:
        raise ConfigurationError(f"device.name = {name!r}: --device says {options.device!r}.")
    if "hand" in settings:
        raise ConfigurationError(
            "device.hand: the handle must be free while the friction of the device is measured; omit this table."
        )
    if settings.get("friction_parameters"):
        raise ConfigurationError("device.friction_parameters: this command writes that file; name it with --out.")
    if has_simulated_hand(name, settings):
        settings["hand"] = _NOBODY
    if options.clock == "off" and not is_virtual(options.device):
        raise ConfigurationError(f"--clock = 'off': {options.device} is no virtual device and runs in real time only.")
    live = None if options.clock is None else options.clock == "wall"
    mover = Mover.of(options.device, settings, [parse_fault(text) for text in options.faults], live=live)
    mover.spec  # noqa: B018 - validates the settings before anything moves
    return mover, tables
