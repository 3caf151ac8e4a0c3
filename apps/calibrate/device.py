"""Command ``haptics calibrate device``: identify a device and measure its stability boundary.

The command also suggests a coupling.
"""

from __future__ import annotations

import argparse
import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING

from apps.calibrate.moving import add_device_options, carry_out, mover_for
from apps.calibrate.options import require_place
from apps.shared.command import Answer
from haptics.errors import ConfigurationError
from haptics.files import write_atomically
from haptics.settings import build

if TYPE_CHECKING:
    from calibration.autotune import TunedAxis
    from haptics.device import DeviceSpec

_METHOD = "output error of pushes; boundary by released contacts of rising stiffness, bisection"
_ROWS = (
    ("moving mass", "mass", "mass", 1.0, "kg"),
    ("damping", "damping", "damping", 1.0, "N s/m"),
    ("dry friction", "friction", None, 1.0, "N"),
    ("delay", "delay", "delay", 1e3, "ms"),
)


def device_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command to its parser."""
    parser.add_argument(
        "--out", metavar="FILE.toml", type=Path, required=True, help="parameter file to write, for session.measured"
    )
    parser.add_argument(
        "--rate", metavar="HZ", type=float, default=1000.0, help="servo rate of the later sessions (1000)"
    )
    add_device_options(parser)


def run_device(options: argparse.Namespace) -> Answer:
    """Move the device, identify it and write the parameter file."""
    from apps.calibrate.results import provenance
    from calibration.autotune import TABLE, Autotune, Tuning
    from calibration.autotune.procedure import tables_of
    from calibration.parameter_files import format_toml

    if not options.device:
        raise ConfigurationError("--device is missing: name the device, for instance virtual-joystick.")
    if not 10.0 <= options.rate <= 10000.0:
        raise ConfigurationError(f"--rate = {options.rate!r}: must be a number of Hz from 10 to 10000.")
    require_place(options.out)
    mover, tables = mover_for(options, TABLE)
    mover = dataclasses.replace(mover, rate=options.rate)
    settings, spec, out = build(Autotune, tables.get(TABLE, {}), TABLE), mover.spec, options.out
    tuned = carry_out(options, mover, Tuning(settings))
    tables = tables_of(tuned, settings, options.rate, provenance(_METHOD, [tuned.source], ""))
    write_atomically(out, format_toml(tables))
    lines = [f"{spec.name} at {options.rate:g} Hz, as its handle answers to pushes:"]
    for axis in tuned.axes:
        lines += _axis_lines(axis, spec)
    suggestion = tuned.suggestion
    lines += [
        f"suggested for {settings.force:g} N of friction: element.stiffness = {tuned.stiffness:.4g} N/m, "
        f"element.damping = {suggestion.damping:.4g} N s/m",
        *(f"  {reason}" for reason in suggestion.reasons),
    ]
    if tuned.limited_by:
        lines += ["what limits the boundary:", *(f"  {words}" for words in tuned.limited_by)]
    lines += ["", f"Parameters: {out}, for haptics run --device {spec.name} --set session.measured={out}"]
    result = {"out": str(out), "device": tuned.source.device, "data": tuned.source.path, **tables}
    return Answer(result, "\n".join(lines))


def _axis_lines(axis: TunedAxis, spec: DeviceSpec) -> list[str]:
    """Return the identified values of an axis next to the data sheet values, one line each."""
    found = axis.identified
    lines = [f"  along {found.axis}:"]
    for name, parameter, stated_name, scale, unit in _ROWS:
        low, high = (scale * one for one in found.fit.interval(parameter))
        stated = getattr(spec, stated_name) if stated_name else None
        sheet = "" if stated is None else f"; data sheet: {scale * stated:.4g} {unit}"
        value = scale * getattr(found.fit.plant, parameter)
        lines.append(f"    {name:<14}{f'{value:.4g} {unit}':<14} 95 %: {low:.4g} to {high:.4g}{sheet}")
    if found.resolution > 0.0:
        lines.append(f"    {'encoder':<14}{1e6 * found.resolution:.4g} um")
    lines += [f"    doubtful: {doubt}" for doubt in axis.doubts]
    boundary = axis.boundary
    if boundary is not None and boundary.stiffness is None:
        held = f"; {boundary.stable:.4g} N/m held" if boundary.stable > 0.0 else ""
        lines.append(f"    boundary      not found at {boundary.damping:.4g} N s/m: {boundary.doubt}{held}")
    elif boundary is not None:
        lines.append(
            f"    boundary      {boundary.stiffness:.4g} N/m at {boundary.damping:.4g} N s/m, between "
            f"{boundary.stable:.4g} and {boundary.unstable:.4g}; the identified handle should stand "
            f"{boundary.expected:.4g}"
        )
    return lines
