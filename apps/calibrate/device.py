"""Command ``haptics calibrate device``: identify a device and measure its stability boundary.

The command also suggests a coupling.
"""

from __future__ import annotations

import argparse
import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Any

from apps.calibrate.moving import add_device_options, mover_for, moving, place_of
from apps.calibrate.places import require_place
from apps.shared.answer import Answer
from haptics.errors import ConfigurationError
from haptics.settings import build

if TYPE_CHECKING:
    from calibration.autotune import Boundary, Tuned, TunedAxis
    from haptics.device import DeviceSpec

_METHOD = "output error of pushes; boundary by released contacts of rising stiffness, bisection"
_ROWS = (
    ("moving mass", "mass", "mass", 1.0, "kg"),
    ("damping", "damping", "damping", 1.0, "N s/m"),
    ("dry friction", "friction", None, 1.0, "N"),
    ("delay", "delay", "delay", 1e3, "ms"),
)
_EXPECTED_TIME = 20.0, 40.0
"""Expected duration of the identification and of the boundary measurement, for each axis [s]."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command to its parser."""
    parser.add_argument(
        "--out", metavar="FILE.toml", type=Path, required=True, help="parameter file to write, for session.measured"
    )
    parser.add_argument(
        "--rate", metavar="HZ", type=float, default=1000.0, help="servo rate, that of the sessions to come (1000)"
    )
    add_device_options(parser)


def run(options: argparse.Namespace) -> Answer:
    """Move the device, identify it and write the parameter file."""
    from apps.session.record import made_by
    from calibration.autotune import TABLE, Autotune, require_forces, tune

    if not options.device:
        raise ConfigurationError("--device is missing: name the device, for instance virtual-joystick.")
    if not 10.0 <= options.rate <= 10000.0:
        raise ConfigurationError(f"--rate = {options.rate!r}: must be a number of Hz from 10 to 10000.")
    require_place(options.out)
    mover, tables = mover_for(options, TABLE)
    mover = dataclasses.replace(mover, rate=options.rate)
    wish, spec = build(Autotune, tables.get(TABLE, {}), TABLE), mover.spec
    require_forces(spec)
    duration = sum(_EXPECTED_TIME[: 1 + wish.boundary]) * len(wish.measured_axes)
    limits = f"with up to {min(2.0 * wish.strength, 0.9) * spec.max_force:.3g} N and {3.0 * wish.speed:g} m/s"
    folder = place_of(options, TABLE)
    with moving(spec, duration, limits, folder) as progress:
        tuned = tune(mover, wish, folder, made_by(), progress)
    return _deliver(options, spec, tuned, wish)


def _deliver(options: argparse.Namespace, spec: DeviceSpec, tuned: Tuned, wish: Any) -> Answer:
    from apps.calibrate.reports.results import provenance
    from calibration.autotune.files import tables_of
    from calibration.parameters.toml_text import format_toml
    from haptics.files import write_atomically

    tables = tables_of(tuned, wish, options.rate, provenance(_METHOD, [tuned.source], ""))
    write_atomically(options.out, format_toml(tables))
    lines = [f"{spec.name} at {options.rate:g} Hz, as its handle answers to pushes:"]
    for axis in tuned.axes:
        lines += _axis_lines(axis, spec)
    suggestion = tuned.suggestion
    lines += [
        f"suggested for {wish.force:g} N of friction: element.stiffness = {tuned.stiffness:.4g} N/m, element.damping = "
        f"{suggestion.damping:.4g} N s/m",
        *(f"  {reason}" for reason in suggestion.reasons),
    ]
    if tuned.limited_by:
        lines += ["what limits the boundary:", *(f"  {words}" for words in tuned.limited_by)]
    out = options.out
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
    return lines + (_boundary_lines(axis.boundary) if axis.boundary is not None else [])


def _boundary_lines(boundary: Boundary) -> list[str]:
    at = f"at {boundary.damping:.4g} N s/m"
    if boundary.stiffness is None:
        held = f"; {boundary.stable:.4g} N/m held" if boundary.stable > 0.0 else ""
        return [f"    boundary      not found {at}: {boundary.doubt}{held}"]
    return [
        f"    boundary      {boundary.stiffness:.4g} N/m {at}, between {boundary.stable:.4g} and "
        f"{boundary.unstable:.4g}; the identified handle should stand {boundary.expected:.4g}"
    ]
