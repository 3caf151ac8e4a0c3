"""Command ``haptics calibrate falcon``: determine the force scale of a Novint Falcon with a weight."""

from __future__ import annotations

import argparse
import contextlib
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from apps.calibrate.options import (
    add_out,
    new_recording,
    orderly_end,
    print_message,
    require_place,
    warn_if_unfit,
)
from apps.shared.command import Answer, repeatable
from haptics.errors import ConfigurationError, HapticError
from haptics.files import format_toml, write_atomically
from haptics.settings import unknown_name

NAME, PLANE = "falcon", "xy"

_HANGS = 8.0  # time at which the emulated person hangs the weight [s]
_OWN_WEIGHT = 0.05  # mass of the emulated handle that is not balanced [kg]


def falcon_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command to its parser."""
    add_out(parser, "settings file to write, for haptics run --config")
    parser.add_argument("--weight", metavar="KG", type=float, required=True, help="mass of the weight, 0.05 to 0.4 kg")
    text = "a setting of the device, for instance device.firmware=novint.bin or device.emulated=true (repeatable)"
    repeatable(parser, "--set", "assignments", "device.NAME=VALUE", text)
    parser.add_argument("--record", metavar="FOLDER", type=Path, default=Path("recordings"), help="where to record")


def run_falcon(options: argparse.Namespace) -> Answer:
    """Weigh with the Falcon and write its force scale."""
    from apps.session.record import made_by
    from apps.settings.config import gather
    from calibration.falcon import Weighing
    from calibration.motions import Mover, drive

    tables = gather(None, options.assignments)
    for other in tables:
        if other != "device":
            raise unknown_name("table of settings", other, ["device"])
    table = dict(tables.get("device", {}))
    if table.pop("name", NAME) != NAME:
        raise ConfigurationError(f"device.name: this calibrates the device {NAME} only.")
    for name in ("plane", "plane_points", "hand"):
        if name in table:
            raise ConfigurationError(f"device.{name}: this command chooses it; leave it out.")
    table["plane"] = PLANE
    require_place(options.out)
    with orderly_end(), _person(table, options.weight) as (more, ask):
        mover = Mover.of(NAME, {**table, **more})
        present: float = mover.make().settings.motor_scale  # type: ignore[attr-defined]
        weighing = Weighing(ask, options.weight, mover.spec.max_force, mover.period)
        folder = new_recording(options.record, f"{NAME}_weight")
        try:
            drive(mover, weighing.carry(), folder, made_by())
        except (HapticError, KeyboardInterrupt):
            if folder.exists():
                print_message(f"The recording is in {folder}.")
            raise
    warn_if_unfit([folder])
    scale = float(f"{weighing.motor_scale(present):.3g}")
    write_atomically(options.out, format_toml({"device": {"name": NAME, "motor_scale": scale}}))
    forces = [force.tolist() for force in weighing.forces]
    result = {"out": str(options.out), "motor_scale": scale, "forces": forces, "recording": str(folder)}
    lines = (
        f"motor number per torque: {scale:g} 1/(N m), so far {present:g}",
        f"  the handle weighs {forces[0][1] * present / scale:.2f} N",
        f"Settings: {options.out}, for haptics run --config {options.out}",
    )
    return Answer(result, "\n".join(lines))


_WORDS = {
    "release": "The motors hold the handle. Let go of it slowly, keep your hand near, and press Enter.",
    "hang": "Hang the weight on the handle, gently, and press Enter when it is at rest.",
    "take off": "Hold the handle, take the weight off, and press Enter. The motors will be switched off.",
}


@contextlib.contextmanager
def _person(table: dict[str, Any], weight: float) -> Iterator[tuple[dict[str, Any], Callable[[str], None]]]:
    """Yield additional settings of the device, and the function that asks the person for a step.

    An emulated Falcon has an emulated person, who hangs the weight at a fixed time.
    """
    from apps.calibrate.joystick import TerminalInput
    from calibration.falcon import HANG, RELEASE
    from calibration.joystick.person import GRAVITY

    if table.get("emulated") is not True:
        answers = TerminalInput()

        def ask(step: str) -> None:
            print_message(_WORDS[step])
            while answers.next(0.2) is None:
                pass

        yield {}, ask
        return
    load = -_OWN_WEIGHT * GRAVITY
    script = [[0.0, 0.0, load], [_HANGS, 0.0, load], [_HANGS + 0.5, 0.0, load - weight * GRAVITY]]
    released = 0.0

    def wait(step: str) -> None:
        nonlocal released
        print_message(f"The emulated person: {step}.")
        if step == RELEASE:
            released = time.monotonic()
        elif step == HANG:
            time.sleep(max(released + _HANGS + 2.0 - time.monotonic(), 0.0))

    yield {"hand": {"name": "scripted-force", "script": script}}, wait
