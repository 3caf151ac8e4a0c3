"""Command ``haptics calibrate joystick``: calibrate a force-feedback stick."""

from __future__ import annotations

import argparse
import contextlib
import datetime
from collections.abc import Callable, Iterator
from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from apps.calibrate.moving import orderly_end
from apps.calibrate.places import require_place
from apps.shared.answer import Answer
from haptics.errors import ConfigurationError, HapticError
from haptics.settings import unknown_name

if TYPE_CHECKING:
    from calibration.joystick.person import Person
    from calibration.joystick.procedure import Bench, Calibration
    from calibration.joystick.request import Request
    from calibration.motions import Mover
    from devices.emulated.joystick import EmulatedStickSettings
    from devices.joystick.parameters import StickParameters

NAME = "pid-joystick"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command to its parser."""
    parser.add_argument("--out", metavar="FILE.toml", type=Path, required=True, help="parameter file to write")
    _add_what_is_known(parser)
    _add_pushes(parser)
    parser.add_argument(
        "--set",
        dest="assignments",
        metavar="device.NAME=VALUE",
        action="append",
        default=[],
        help="a setting of the device, for instance device.serial=2F003A or device.emulated=true (repeatable)",
    )
    parser.add_argument(
        "--record", metavar="FOLDER", type=Path, default=Path("recordings"), help="folder of the recordings"
    )
    parser.add_argument(
        "--fault",
        dest="faults",
        metavar="NAME@SECONDS[+DURATION]",
        action="append",
        default=[],
        help="inject a fault while the stick is pushed, as haptics run does (repeatable)",
    )


def _add_what_is_known(parser: argparse.ArgumentParser) -> None:
    """Add the options for values that the user measures or reads from the data sheet."""
    parser.add_argument(
        "--travel-x",
        metavar="M",
        type=float,
        help="travel of the handle from left to right, stop to stop",
    )
    parser.add_argument("--travel-y", metavar="M", type=float, help="travel towards you and away, stop to stop")
    parser.add_argument(
        "--rim-radius", metavar="M", type=float, help="radius of the rim of a wheel, instead of travels"
    )
    parser.add_argument(
        "--turn", metavar="DEG", type=float, default=90.0, help="angle to either side by which a wheel is measured (90)"
    )
    parser.add_argument(
        "--gate", metavar="SHAPE", default="square", help="shape of the gate that bounds the handle: square or round"
    )
    parser.add_argument("--weight", metavar="KG", type=float, help="find the scale with a weight of this mass")
    parser.add_argument(
        "--stated-max-force", metavar="N", type=float, help="largest force in every direction, as the maker states it"
    )


def _add_pushes(parser: argparse.ArgumentParser) -> None:
    """Add the options for the push strength and for the confirmation by the user."""
    parser.add_argument(
        "--push-level",
        metavar="PART",
        type=float,
        default=0.3,
        help="strongest push allowed, as a part of full force (0.3)",
    )
    parser.add_argument(
        "--yes", action="store_true", help="do not ask whether the handle really moved as its counts say"
    )


def run(options: argparse.Namespace) -> Answer:
    """Calibrate a stick."""
    table = _device_table(options.assignments)
    require_place(options.out)
    from apps.session.record import made_by
    from calibration.joystick.procedure import calibrate
    from calibration.joystick.request import Request
    from devices.emulated.joystick import EmulatedStickSettings
    from haptics.settings import build

    settings = build(EmulatedStickSettings, table, "device")
    request = Request(**{known.name: getattr(options, known.name) for known in fields(Request)})
    place = _place(options)
    with orderly_end(), _who(options, settings, table, request) as (bench, person):
        try:
            found = calibrate(bench, person, request, place, made_by())
        except (HapticError, KeyboardInterrupt):
            _report_remaining_steps(place)
            raise
    _write_parameters(options.out, found.parameters)
    return Answer(_result(options.out, found), _describe(options.out, found, settings))


def _place(options: argparse.Namespace) -> Path:
    """Create the folder of the recordings and return their common path prefix."""
    now = datetime.datetime.now().strftime("%Y-%m-%dT%H-%M-%S")
    try:
        options.record.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigurationError(
            f"--record = {str(options.record)!r}: no recording can be made there ({error.strerror or error})."
        ) from error
    return Path(options.record) / f"{now}_{NAME}"


def _report_remaining_steps(place: Path) -> None:
    from apps.calibrate.reports.terminal import print_message

    for left in sorted(place.parent.glob(f"{place.name}_*")):
        if left.is_dir():
            print_message(f"The recordings are in {left}.")


def _device_table(assignments: list[str]) -> dict[str, Any]:
    """Return the table ``device`` of the settings given with ``--set``."""
    from apps.settings.config import gather

    tables = gather(None, assignments)
    for other in tables:
        if other != "device":
            raise unknown_name("table of settings", other, ["device"])
    table = dict(tables.get("device", {}))
    if table.pop("name", NAME) != NAME:
        raise ConfigurationError(f"device.name: this calibrates the device {NAME} only.")
    if "parameters" in table:
        raise ConfigurationError("device.parameters: this command writes that file; name it with --out.")
    if "hand" in table:
        raise ConfigurationError("device.hand: this command moves an emulated stick itself; leave it out.")
    return table


def _write_parameters(out: Path, parameters: StickParameters) -> None:
    """Write the parameter file.

    If this fails, print its contents to standard error.
    """
    from apps.calibrate.reports.terminal import print_message
    from devices.joystick.parameters import format_parameters, write_parameters

    try:
        write_parameters(out, parameters)
    except ConfigurationError:
        print_message(f"{out} could not be written. These are its contents:\n\n{format_parameters(parameters)}")
        raise


@contextlib.contextmanager
def _who(
    options: argparse.Namespace, settings: EmulatedStickSettings, table: dict[str, Any], request: Request
) -> Iterator[tuple[Bench, Person]]:
    """Yield the test bench of the stick and the interface of its user.

    An emulated stick has an emulated user.
    """
    from apps.calibrate.reports.terminal import TerminalPerson, print_message
    from calibration.joystick.procedure import Bench
    from calibration.motions import Mover
    from devices.faults import parse_fault

    faults = [parse_fault(text) for text in options.faults]

    def moved_with(more: dict[str, Any]) -> Callable[[Path], Mover]:
        return lambda file: Mover.of(NAME, {**table, **more, "parameters": str(file)}, faults)

    if not settings.emulated:
        yield Bench(settings, moved_with({})), TerminalPerson(options.yes)
        return
    from calibration.joystick.emulated import EmulatedPerson, operated

    with operated() as (hand, lane):
        backend = settings.plug_in(hand)
        own = backend.sticks[0].profile.handle
        person = EmulatedPerson(lane, request.reach(own.half_width, own.half_height))
        person.show_message = print_message  # type: ignore[method-assign]
        yield Bench(settings, moved_with({"hand": hand}), backend), person


def _result(out: Path, found: Calibration) -> dict[str, Any]:
    return {"out": str(out), "parameters": asdict(found.parameters), **found.facts}


def _describe(out: Path, found: Calibration, settings: EmulatedStickSettings) -> str:
    known, facts = found.parameters, found.facts
    emulated = f" --set device.emulated=true --set device.emulator={settings.emulator}" if settings.emulated else ""
    force, axes, handle = known.force, known.axes, known.handle
    where = "along its rim" if axes.rim_radius_m else "in every direction"
    return "\n".join(
        (
            f"{known.device} is calibrated.",
            f"  largest force   {force.max_force_n:.3g} N {where} ({force.source})",
            f"  release         {force.release_s:.3g} s after the last renewal of a force",
            f"  resolution      {1e6 * axes.resolution:.3g} um",
            f"  handle          {handle.moving_mass_kg:g} kg, {handle.damping_ns_per_m:g} N s/m",
            f"  places fit to   {1e3 * facts['places_misfit_m']:.2f} mm, pushes to {facts['push_misfit']:.1%}",
            f"Use it with: haptics run --device {NAME} --set device.parameters={out}{emulated}",
        )
    )
