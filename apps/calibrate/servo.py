"""Command ``haptics calibrate servo``: identify the position servo of an arm."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from apps.calibrate.moving import add_device_options, mover_for, moving, place_of
from apps.calibrate.places import require_place
from apps.shared.answer import Answer
from haptics.errors import ConfigurationError
from haptics.settings import build

if TYPE_CHECKING:
    from calibration.servo.motion import MeasuredServo
    from haptics.device import DeviceSpec

_SERVO = "servo"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command to its parser."""
    parser.add_argument(
        "--out", metavar="FILE.toml", type=Path, required=True, help="file to write the settings to, for --config"
    )
    add_device_options(parser)


def run(options: argparse.Namespace) -> Answer:
    """Move an arm, identify its position servo and write the settings."""
    from apps.session.record import made_by
    from calibration.servo.motion import Excitation, measure_servo, path, require_reference

    if not options.device:
        raise ConfigurationError("--device is missing: name the arm, virtual-arm or arm.")
    require_place(options.out)
    mover, tables = mover_for(options, _SERVO)
    excitation, spec = build(Excitation, tables.get(_SERVO, {}), _SERVO), mover.spec
    require_reference(spec)
    duration = 2.0 * len(path(excitation, spec, mover.period)) * mover.period
    folder = place_of(options, _SERVO)
    limits = f"by sums of sines up to {excitation.frequencies[-1]:g} Hz"
    with moving(spec, duration, limits, folder) as progress:
        found = measure_servo(mover, excitation, folder, made_by(), progress)
    return _deliver(options.out, spec, found)


def _deliver(out: Path, spec: DeviceSpec, found: MeasuredServo) -> Answer:
    from calibration.parameters.toml_text import format_toml
    from haptics.files import write_atomically

    settings = {
        "delay": _rounded(found.delay),
        "servo_frequency": _rounded(found.fit.frequency),
        "servo_damping_ratio": _rounded(found.fit.damping_ratio),
    }
    write_atomically(out, format_toml({"device": settings}))
    result = {
        "out": str(out),
        "device": found.source.device,
        "data": found.source.path,
        "sample_age_s": found.age,
        **asdict(found.fit),
        "settings": settings,
        "warnings": list(found.fit.warnings),
    }
    return Answer(result, "\n".join([*_table(spec, found), "", f"Settings: {out}, for haptics run --config {out}"]))


def _table(spec: DeviceSpec, found: MeasuredServo) -> list[str]:
    """Return the measured values next to the data sheet values, one line each."""
    fit = found.fit
    rows = (
        ("delay", 1e3 * found.delay, 1e3 * fit.lag_error, spec.delay and 1e3 * spec.delay, "ms"),
        ("natural frequency", fit.frequency, fit.frequency_error, spec.servo_frequency, "Hz"),
        ("damping ratio", fit.damping_ratio, fit.damping_ratio_error, spec.servo_damping_ratio, ""),
    )
    lines = [f"{spec.name}: its position servo follows its reference with"]
    for name, value, error, stated, unit in rows:
        sheet = "not stated" if stated is None else f"{stated:.4g} {unit}".rstrip()
        lines.append(f"  {name:<18}{f'{value:.4g} {unit}':<12} standard error {error:.2g}; data sheet: {sheet}")
    lines.append(
        f"  samples are {1e3 * found.age:.2g} ms old (part of the delay); {fit.residual:.1%} of the response is left"
    )
    return [*lines, *(f"  warning: {warning}" for warning in fit.warnings)]


def _rounded(value: float) -> float:
    return float(f"{value:.4g}")
