"""``haptics calibrate joystick``: options in, a parameter file out."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from apps.answer import Answer
from apps.calibrate.orderly import orderly_end
from apps.calibrate.places import require_place
from haptics.errors import ConfigurationError
from haptics.settings import unknown

if TYPE_CHECKING:
    from calibration.joystick.person import Person
    from calibration.joystick.procedure import Calibration
    from devices.joystick.parameters import StickParameters
    from devices.joystick.settings import StickSettings

NAME = "pid-joystick"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command to its parser."""
    parser.add_argument("--out", metavar="FILE.toml", type=Path, required=True, help="parameter file to write")
    parser.add_argument(
        "--travel-x",
        metavar="M",
        type=float,
        required=True,
        help="travel of the handle from left to right, stop to stop",
    )
    parser.add_argument(
        "--travel-y", metavar="M", type=float, required=True, help="travel towards you and away, stop to stop"
    )
    parser.add_argument("--gate", metavar="SHAPE", default="square", help="what bounds the handle: square or round")
    parser.add_argument("--weight", metavar="KG", type=float, help="find the scale with a weight of this mass")
    parser.add_argument(
        "--stated-max-force", metavar="N", type=float, help="largest force in every direction, as the maker states it"
    )
    parser.add_argument(
        "--push-level",
        metavar="PART",
        type=float,
        default=0.3,
        help="no push is stronger, in parts of full force (0.3)",
    )
    parser.add_argument("--yes", action="store_true", help="do not ask whether the handle moved as its counts say")
    parser.add_argument(
        "--set",
        dest="assignments",
        metavar="device.NAME=VALUE",
        action="append",
        default=[],
        help="a setting of the device, for instance device.serial=2F003A or device.emulated=true (repeatable)",
    )


def run(options: argparse.Namespace) -> Answer:
    """Calibrate a stick."""
    table = _device_table(options.assignments)
    require_place(options.out)
    from calibration.joystick.procedure import Request, calibrate
    from calibration.joystick.stick import RawStick
    from devices.joystick.settings import StickSettings
    from haptics.settings import build

    settings = build(StickSettings, table, "device")
    given = {name: getattr(options, name) for name in ("travel_x", "travel_y", "gate", "push_level")}
    request = Request(**given, weight=options.weight, stated_max_force=options.stated_max_force)
    backend, person = _who(settings, options.yes)
    with orderly_end(), RawStick(settings, backend) as stick:
        found = calibrate(stick, person, request)
    _keep(options.out, found.parameters)
    return Answer(_result(options.out, found), _describe(options.out, found, settings))


def _device_table(assignments: list[str]) -> dict[str, Any]:
    """Return the table ``device`` that ``--set`` makes."""
    from apps.session.config import gather

    tables = gather(None, assignments)
    for other in tables:
        if other != "device":
            raise unknown("table of settings", other, ["device"])
    table = dict(tables.get("device", {}))
    if table.pop("name", NAME) != NAME:
        raise ConfigurationError(f"device.name: this calibrates the device {NAME} only.")
    if "parameters" in table:
        raise ConfigurationError("device.parameters: that is the file to be made; name it with --out.")
    if "hand" in table:
        raise ConfigurationError("device.hand: whoever calibrates an emulated stick has a hand of their own.")
    return table


def _keep(out: Path, parameters: StickParameters) -> None:
    """Write the file; if that fails after all, what should be in it goes to standard error."""
    from apps.calibrate.terminal import say
    from devices.joystick.parameters import format_parameters, write_parameters

    try:
        write_parameters(out, parameters)
    except ConfigurationError:
        say(f"{out} could not be written. This is what belongs into it:\n\n{format_parameters(parameters)}")
        raise


def _who(settings: StickSettings, yes: bool) -> tuple[Any, Person]:
    """Return how USB is reached, None for libusb, and who holds the handle."""
    from apps.calibrate.terminal import TerminalPerson

    if not settings.emulated:
        return None, TerminalPerson(yes)
    from apps.calibrate.terminal import say
    from calibration.joystick.emulated import emulate

    backend, person = emulate(settings)
    person.tell = say  # type: ignore[method-assign]
    return backend, person


def _result(out: Path, found: Calibration) -> dict[str, Any]:
    return {"out": str(out), "parameters": asdict(found.parameters), **found.facts}


def _describe(out: Path, found: Calibration, settings: StickSettings) -> str:
    known, facts = found.parameters, found.facts
    emulated = f" --set device.emulated=true --set device.emulator={settings.emulator}" if settings.emulated else ""
    force, axes, handle = known.force, known.axes, known.handle
    return "\n".join(
        (
            f"{known.device} is calibrated.",
            f"  largest force   {force.max_force_n:.3g} N in every direction ({force.source})",
            f"  resolution      {1e6 * axes.resolution:.3g} um",
            f"  handle          {handle.moving_mass_kg:g} kg, {handle.damping_ns_per_m:g} N s/m",
            f"  places fit to   {1e3 * facts['places_misfit_m']:.2f} mm, pushes to {facts['push_misfit']:.1%}",
            f"Use it with: haptics run --device {NAME} --set device.parameters={out}{emulated}",
        )
    )
