"""Measurements for ``haptics calibrate ... --device``, in which the motors move a free handle."""

from __future__ import annotations

import argparse
import contextlib
import datetime
import signal
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, NoReturn

from apps.shared.progress import Line, bar
from haptics.device import Causality
from haptics.errors import ConfigurationError, HapticError
from haptics.settings import build

if TYPE_CHECKING:
    from calibration.data.joint_recording import JointRecording
    from calibration.motions import Mover
    from calibration.motions.excitation import Excitation
    from haptics.device import DeviceSpec

    Measured = dict[str, list[JointRecording]]

_NOBODY = {"name": "scripted-force", "script": [[0.0, 0.0, 0.0]]}
"""Zero hand force for a virtual or emulated device."""

EXCITATION = "excitation"
"""Name of the settings table of the motions."""


def add_device_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that choose the device and its settings."""
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
    parser.add_argument(
        "--clock",
        choices=("wall", "off"),
        help="wall: in real time, in a servo process; off: as fast as the machine can (default of virtual devices)",
    )
    parser.add_argument(
        "--fault",
        dest="faults",
        metavar="NAME@SECONDS[+DURATION]",
        action="append",
        default=[],
        help="inject a fault into the device, as haptics run does (repeatable)",
    )


def measure(options: argparse.Namespace) -> Measured:
    """Move the chosen device and return the recordings of its axes (x, y) or joints (1, 2).

    Raises
    ------
    HapticError
        If the device or a setting cannot be used, or if the device fails. The recording is kept.
    """
    mover, tables = mover_for(options, EXCITATION)
    table = tables.get(EXCITATION, {})
    if mover.spec.causality is Causality.ADMITTANCE:
        return measure_joints(mover, table, place_of(options, EXCITATION))
    return _handle(mover, table, place_of(options, EXCITATION))


def _handle(mover: Mover, table: dict[str, Any], folder: Path) -> Measured:
    """Measure on an impedance device."""
    from apps.session.record import made_by
    from calibration.motions.axis_recordings import recorded_axes
    from calibration.motions.excitation import Excitation, plan
    from calibration.motions.handle_motion import excite

    excitation, spec = build(Excitation, table, "excitation"), mover.spec
    duration = len(plan(excitation, spec, mover.period)) * mover.period
    limits = f"with up to {excitation.fastest:g} m/s and {spec.max_force:g} N"
    with moving(spec, duration, limits, folder) as progress:
        excite(mover, excitation, folder, made_by(), progress)
    return recorded_axes(folder)


def measure_joints(mover: Mover, table: dict[str, Any], folder: Path) -> Measured:
    """Move the joints of an arm with its servo and return their recordings."""
    from apps.session.record import made_by
    from calibration.motions.joint_motion import body_of, excite_arm, plan_joints

    spec, excitation = mover.spec, joint_excitation(table)
    angles, _ = plan_joints(body_of(mover), excitation, spec, mover.period)
    limits = f"its joints with up to {excitation.fastest:g} rad/s"
    with moving(spec, len(angles) * mover.period, limits, folder) as progress:
        return excite_arm(mover, excitation, folder, made_by(), progress)


def joint_excitation(table: dict[str, Any]) -> Excitation:
    """Return the joint excitation described by a settings table.

    Raises
    ------
    ConfigurationError
        If a setting is invalid.
    """
    from calibration.motions.excitation import Excitation
    from calibration.motions.joint_motion import DEFAULT

    return build(Excitation, {**asdict(DEFAULT), **table}, EXCITATION)


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


@contextlib.contextmanager
def moving(spec: DeviceSpec, duration: float, limits: str, place: Path) -> Iterator[Callable[[float], None]]:
    """Announce the motion, show its progress, and print the recording's path if it is interrupted.

    Yields a function that takes the elapsed time [s] and updates the progress bar.
    """
    from apps.calibrate.reports.terminal import print_message

    try:
        place.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigurationError(
            f"--record = {str(place.parent)!r}: no recording can be made there ({error.strerror or error})."
        ) from error
    print_message(
        f"{spec.name} is going to move by itself for {duration:.0f} s, {limits}: let go of the handle and keep "
        f"clear of it. Ctrl-C ends it at any time. Recording to {place}."
    )
    with orderly_end(), Line() as line:
        try:
            yield lambda seconds: line.show(_share(seconds / duration))
        except (HapticError, KeyboardInterrupt):
            if place.exists():
                print_message(f"The recording is in {place}.")
            raise


def _share(part: float) -> str:
    done = min(part, 1.0)
    return f"{bar(done)} {done:.0%}"


def mover_for(options: argparse.Namespace, *motions: str) -> tuple[Mover, dict[str, dict[str, Any]]]:
    """Return the mover of the device and the settings tables: ``device`` and those named in `motions`.

    Raises
    ------
    ConfigurationError
        If the device is unknown or a setting is invalid.
    """
    from calibration.motions import Mover
    from devices import is_virtual
    from devices.faults import parse_fault

    settings, tables = _settings(options, motions)
    if options.clock == "off" and not is_virtual(options.device):
        raise ConfigurationError(f"--clock = 'off': {options.device} is no virtual device and runs in real time only.")
    live = None if options.clock is None else options.clock == "wall"
    mover = Mover.of(options.device, settings, [parse_fault(text) for text in options.faults], live=live)
    mover.spec  # noqa: B018 - validates the settings before anything moves
    return mover, tables


def _settings(
    options: argparse.Namespace, motions: tuple[str, ...]
) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """Return the device settings, with zero hand force, and all settings tables."""
    from devices import find_backend, has_simulated_hand

    find_backend(options.device)
    tables = _tables(options.assignments, motions)
    settings = tables.get("device", {})
    name = settings.pop("name", options.device)
    if name != options.device:
        raise ConfigurationError(f"device.name = {name!r}: --device says {options.device!r}.")
    if "hand" in settings:
        raise ConfigurationError("device.hand: nobody may hold a device whose own friction is measured; leave it out.")
    if settings.get("friction_parameters"):
        raise ConfigurationError("device.friction_parameters: this command writes that file; name it with --out.")
    if has_simulated_hand(name, settings):
        settings["hand"] = _NOBODY
    return settings, tables


def _tables(assignments: list[str], motions: tuple[str, ...]) -> dict[str, dict[str, Any]]:
    from apps.settings.config import assign, parse_assignment

    tables: dict[str, dict[str, Any]] = {}
    for text in assignments:
        table, name, value = parse_assignment(text, ("device", *motions))
        assign(tables, table, name, value)
    return tables


def place_of(options: argparse.Namespace, what: str) -> Path:
    """Return the path of a new recording, named by time, device and kind of measurement."""
    now = datetime.datetime.now().strftime("%Y-%m-%dT%H-%M-%S")
    return Path(options.record) / f"{now}_{options.device}_{what}"
