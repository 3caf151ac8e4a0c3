"""Command ``haptics calibrate joystick``: calibrate a force-feedback stick in a dialogue at a terminal."""

from __future__ import annotations

import argparse
import contextlib
import os
import select
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from apps.calibrate.options import (
    add_out,
    new_recording,
    orderly_end,
    print_message,
    require_place,
    warn_if_unfit,
)
from apps.shared.command import Answer, repeatable
from apps.shared.terminal import Line
from haptics.errors import ConfigurationError, HapticError
from haptics.settings import unknown_name

if TYPE_CHECKING:
    from calibration.joystick.person import CountReader, Pair, Person, Place, Request
    from calibration.joystick.procedure import Bench, Calibration
    from calibration.motions import Mover
    from devices.emulated.joystick import EmulatedStickSettings
    from devices.joystick.parameters import StickParameters

NAME = "pid-joystick"


def joystick_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command to its parser."""
    add = parser.add_argument
    add_out(parser, "parameter file to write")
    for flag, metavar, default, text in (
        ("--travel-x", "M", None, "travel of the handle from left to right, stop to stop"),
        ("--travel-y", "M", None, "travel towards you and away, stop to stop"),
        ("--rim-radius", "M", None, "radius of the rim, for a wheel"),
        ("--turn", "DEG", 90.0, "angle to which a wheel is turned in both directions (90)"),
        ("--weight", "KG", None, "determine the scale with a weight of this mass"),
        ("--stated-max-force", "N", None, "largest force in every direction, as the manufacturer states it"),
        ("--push-level", "PART", 0.3, "strongest push, as a fraction of full force (0.3)"),
    ):
        add(flag, metavar=metavar, type=float, default=default, help=text)
    add("--gate", metavar="SHAPE", default="square", help="shape of the gate that bounds the handle: square or round")
    add("--yes", action="store_true", help="skip the question whether the handle moved in the displayed direction")
    text = "a setting of the device, for instance device.serial=2F003A or device.emulated=true (repeatable)"
    repeatable(parser, "--set", "assignments", "device.NAME=VALUE", text)
    add("--record", metavar="FOLDER", type=Path, default=Path("recordings"), help="folder of the recordings")
    text = "inject a fault while the stick is pushed, as haptics run does (repeatable)"
    repeatable(parser, "--fault", "faults", "NAME@SECONDS[+DURATION]", text)


def run_joystick(options: argparse.Namespace) -> Answer:
    """Calibrate a stick."""
    from apps.settings.config import gather

    tables = gather(None, options.assignments)
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
    require_place(options.out)
    from apps.session.record import made_by
    from calibration.joystick.person import Request
    from calibration.joystick.procedure import calibrate
    from devices.emulated.joystick import EmulatedStickSettings
    from haptics.settings import build

    settings = build(EmulatedStickSettings, table, "device")
    request = Request(**{known.name: getattr(options, known.name) for known in fields(Request)})
    place = new_recording(options.record, NAME)
    with orderly_end(), _bench_and_person(options, settings, table, request) as (bench, person):
        try:
            found = calibrate(bench, person, request, place, made_by())
        except (HapticError, KeyboardInterrupt):
            for left in _recordings(place):
                print_message(f"The recordings are in {left}.")
            raise
    warn_if_unfit(_recordings(place))
    write_or_print(options.out, found.parameters)
    result = {"out": str(options.out), "parameters": asdict(found.parameters), **found.facts}
    return Answer(result, _describe(options.out, found, settings))


def _recordings(place: Path) -> list[Path]:
    """Return the recordings of a calibration, whose names begin with that of `place`."""
    return [one for one in sorted(place.parent.glob(f"{place.name}_*")) if one.is_dir()]


def write_or_print(out: Path, parameters: StickParameters) -> None:
    """Write the parameter file. If this fails, print its contents to standard error."""
    from devices.joystick.parameters import format_parameters, write_parameters

    try:
        write_parameters(out, parameters)
    except ConfigurationError:
        print_message(f"{out} could not be written. These are its contents:\n\n{format_parameters(parameters)}")
        raise


@contextlib.contextmanager
def _bench_and_person(
    options: argparse.Namespace, settings: EmulatedStickSettings, table: dict[str, Any], request: Request
) -> Iterator[tuple[Bench, Person]]:
    """Yield the test bench of the stick and the interface of its user.

    An emulated stick has an emulated user.
    """
    from calibration.joystick.person import EmulatedPerson, operated
    from calibration.joystick.procedure import Bench
    from calibration.motions import Mover
    from devices.faults import parse_fault

    faults = [parse_fault(text) for text in options.faults]

    def moved_with(more: dict[str, Any]) -> Callable[[Path], Mover]:
        return lambda file: Mover.of(NAME, {**table, **more, "parameters": str(file)}, faults)

    if not settings.emulated:
        yield Bench(settings, moved_with({})), TerminalPerson(options.yes)
        return
    with operated() as (hand, mailbox):
        backend = settings.plug_in(hand)
        handle = backend.units[0].profile.handle
        person = EmulatedPerson(mailbox, request.reach(handle.half_width, handle.half_height))
        person.show_message = print_message  # type: ignore[method-assign]
        yield Bench(settings, moved_with({"hand": hand}), backend), person


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


# --- dialogue ---------------------------------------------------------------------------------------------------------

_LOOK = 0.1
"""Polling period of the answer and update period of the counts [s]."""
_PREPARE = 0.8
"""Delay between the announcement of a push and the push [s]."""


class TerminalInput:
    """Lines read from a file descriptor with a timeout."""

    def __init__(self, descriptor: int = 0) -> None:
        self._descriptor = descriptor
        self._rest = b""

    def next(self, timeout: float) -> str | None:
        """Return the next line, or None if none arrived within `timeout` [s].

        Raises
        ------
        ConfigurationError
            If the input is closed.
        """
        if b"\n" not in self._rest:
            if not select.select([self._descriptor], [], [], timeout)[0]:
                return None
            data = os.read(self._descriptor, 4096)
            if not data:
                raise ConfigurationError(
                    "standard input is closed, but this calibration asks questions: run it in a terminal."
                )
            self._rest += data
        line, newline, rest = self._rest.partition(b"\n")
        if not newline:
            return None
        self._rest = rest
        return line.decode(errors="replace").strip()


class TerminalPerson:
    """User interface of the calibration of a real stick.

    Parameters
    ----------
    yes : bool
        Skip the question whether the handle moved as measured.
    answers : TerminalInput, optional
        Source of the answers. Default: standard input.
    """

    def __init__(self, yes: bool, answers: TerminalInput | None = None) -> None:
        self._yes = yes
        self._answers = answers or TerminalInput()

    def show_message(self, words: str) -> None:
        """Print a message."""
        print_message(words)

    def bring(self, place: Place, read_counts: CountReader) -> None:
        """Ask the user to hold the handle at a given position, and wait."""
        self._wait(f"Bring the handle to {place.words}, hold it there, and press Enter.", read_counts)

    def release_handle(self, read_counts: CountReader) -> None:
        """Ask the user to release the handle, and wait."""
        self._wait(
            "Let go of the handle, keep your hand near it, and press Enter. It will be pushed, gently.", read_counts
        )

    def watch(self, words: str) -> None:
        """Announce a push and wait briefly."""
        print_message(words)
        time.sleep(_PREPARE)

    def saw(self, motion: Pair) -> bool:
        """Ask the user whether the handle moved by `motion` [m]."""
        from calibration.joystick.person import in_words

        moved = f"{1e3 * (motion[0] ** 2 + motion[1] ** 2) ** 0.5:.0f} mm {in_words(motion)}"
        if self._yes:
            print_message(f"By its counts the handle moved {moved}.")
            return True
        print_message(f"Did the handle just move about {moved}? [y/n]")
        while True:
            answer = (self._answers.next(_LOOK) or "").lower()
            if answer in {"y", "yes"}:
                return True
            if answer in {"n", "no"}:
                return False

    def hang(self, mass: float, read_counts: CountReader) -> None:
        """Ask the user to attach a weight of `mass` [kg], and wait."""
        self._wait(
            f"Hang {mass:g} kg on a thread over the edge of the table, so that it pulls the handle horizontally and "
            "straight towards you. Keep clear of it, and press Enter. The stick will take it up, slowly.",
            read_counts,
        )

    def take_off(self, mass: float, read_counts: CountReader) -> None:
        """Ask the user to remove the weight, and wait."""
        self._wait("Take the weight off, and press Enter. The stick does not carry it any more.", read_counts)

    def _wait(self, words: str, read_counts: CountReader) -> None:
        print_message(words)
        with Line() as line:
            while self._answers.next(_LOOK) is None:
                x, y = read_counts()
                line.show(f"counts {x}, {y}")
