"""Commands ``haptics calibrate device``, ``arm`` and ``servo``: identify a device that moves by itself.

Parts of a device are mass, damping, friction, delay, the stability boundary, and a suggested coupling; parts of an arm
are its handle and its joints, or its position servo.
"""

from __future__ import annotations

import argparse
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from apps.calibrate.friction import identify_all
from apps.calibrate.options import (
    AUTOMATIC,
    EXCITATION,
    add_device_options,
    add_out,
    carry_out,
    joint_excitation,
    mover_for,
)
from apps.calibrate.results import as_object, describe, provenance
from apps.shared.command import Answer
from haptics.errors import ConfigurationError
from haptics.files import format_toml, write_atomically
from haptics.settings import build, unknown_name

_TUNING = "output error of pushes; boundary by released contacts of rising stiffness, bisection"
_ROWS = (
    ("moving mass", "mass", "mass", 1.0, "kg"),
    ("damping", "damping", "damping", 1.0, "N s/m"),
    ("dry friction", "friction", None, 1.0, "N"),
    ("delay", "delay", "delay", 1e3, "ms"),
)


def device_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command to its parser."""
    add_out(parser, "parameter file to write, for session.measured")
    text = "servo rate of the later sessions (1000)"
    parser.add_argument("--rate", metavar="HZ", type=float, default=1000.0, help=text)
    add_device_options(parser)


def run_device(options: argparse.Namespace) -> Answer:
    """Move the device, identify it and write the parameter file."""
    from calibration.autotune import TABLE, Autotune, Tuning
    from calibration.autotune.procedure import tables_of

    if not 10.0 <= options.rate <= 10000.0:
        raise ConfigurationError(f"--rate = {options.rate!r}: must be a number of Hz from 10 to 10000.")
    mover, tables = mover_for(options, TABLE, choices="the device, for instance virtual-joystick")
    mover = replace(mover, rate=options.rate)
    spec, out = mover.spec, options.out
    usual = min(Autotune().force, spec.max_force)  # a device cannot render more friction
    settings = build(Autotune, {"force": usual, **tables.get(TABLE, {})}, TABLE)
    tuned = carry_out(options, mover, Tuning(settings))
    tables = tables_of(tuned, settings, options.rate, provenance(_TUNING, [tuned.source], ""))
    write_atomically(out, format_toml(tables))
    lines = [f"{spec.name} at {options.rate:g} Hz, as its handle answers to pushes:"]
    for axis in tuned.axes:  # the identified values next to those of the data sheet
        found, boundary = axis.identified, axis.boundary
        lines.append(f"  along {found.axis}:")
        for name, parameter, stated_name, scale, unit in _ROWS:
            low, high = (scale * one for one in found.fit.interval(parameter))
            stated = getattr(spec, stated_name) if stated_name else None
            sheet = "" if stated is None else f"; data sheet: {scale * stated:.4g} {unit}"
            value = f"{scale * getattr(found.fit.plant, parameter):.4g} {unit}"
            lines.append(f"    {name:<14}{value:<14} 95 %: {low:.4g} to {high:.4g}{sheet}")
        if found.resolution > 0.0:
            lines.append(f"    {'encoder':<14}{1e6 * found.resolution:.4g} um")
        lines += [f"    doubtful: {doubt}" for doubt in axis.doubts]
        if boundary is not None and boundary.stiffness is None:
            held = f"; {boundary.stable:.4g} N/m held" if boundary.stable > 0.0 else ""
            lines.append(f"    boundary      not found at {boundary.damping:.4g} N s/m: {boundary.doubt}{held}")
        elif boundary is not None:
            lines.append(
                f"    boundary      {boundary.stiffness:.4g} N/m at {boundary.damping:.4g} N s/m, between "
                f"{boundary.stable:.4g} and {boundary.unstable:.4g}; the identified handle should stand "
                f"{boundary.expected:.4g}"
            )
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


# --- arms -------------------------------------------------------------------------------------------------------------

if TYPE_CHECKING:
    from calibration.handle import Handle
    from calibration.parameters import JointParameters

HANDLE, JOINTS = "handle", "joints"
_POSES, _ARMS = "poses", "the arm, virtual-arm or arm"
_METHOD = {
    HANDLE: "wrenches in several poses, least squares for white noise and a random walk",
    JOINTS: "motions of the joints, separable least squares",
}
_CONSTANT = (
    "This arm does not tilt its sensor, so the sensor's bias and the handle's weight cannot be told apart along "
    "gravity. They need not be: the tare at the start removes both. Leave the mass of the handle as it is."
)
_NO_TORQUES = (
    "The joints were not identified: this drive reports no motor torques. Record them with other means, then run "
    "haptics calibrate friction --data."
)


def arm_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command to its parser."""
    add_out(parser, "parameter file to write")
    add_device_options(parser)
    text = "identify only this part; default: all that the arm can measure"
    parser.add_argument("--only", choices=(HANDLE, JOINTS), help=text)
    parser.add_argument("--model", metavar="NAME", default=AUTOMATIC, help="friction model of the joints (auto)")


def run_arm(options: argparse.Namespace) -> Answer:
    """Identify an arm and write its parameter file."""
    from calibration.friction import MODELS, FitSettings
    from calibration.handle import identify_handle
    from calibration.identification import IdentificationOptions
    from calibration.motions.arm import PoseMeasurement, Poses, body_of
    from calibration.parameters import ParameterFile, handle_table, write_parameter_file

    mover, tables = mover_for(options, EXCITATION, _POSES, choices=_ARMS)
    poses = PoseMeasurement(build(Poses, tables.get(_POSES, {}), _POSES))
    poses.require(mover)
    motions = joint_excitation(tables.get(EXCITATION, {}))  # validates the settings before anything moves
    if options.model not in (AUTOMATIC, *MODELS):
        raise unknown_name("friction model", options.model, [AUTOMATIC, *MODELS])
    wanted = [HANDLE, JOINTS] if options.only is None else [options.only]
    if JOINTS in wanted:
        try:
            body_of(mover)
        except ConfigurationError:
            if options.only == JOINTS:
                raise
            wanted = [HANDLE]
    handle, identified, sources = None, [], []
    if HANDLE in wanted:
        wrenches, source = carry_out(options, mover, poses)
        handle = identify_handle(wrenches)
        sources.append(source)
    if JOINTS in wanted:
        identification = IdentificationOptions(options.model, settings=FitSettings(fit_inertia=True))
        identified = identify_all(carry_out(options, mover, motions), identification)
        sources += [one.source for joint in identified for one in joint.recordings]
    joints = tuple(one.parameters() for one in identified)
    origin = provenance("; ".join(_METHOD[kind] for kind in wanted), sources, options.device)
    write_parameter_file(options.out, ParameterFile(origin, joints, handle=handle))
    left_out = _NO_TORQUES if options.only is None and not joints else ""
    lines = _configuration(options.out, handle, joints)
    result = {
        "out": str(options.out),
        "device": origin.device,
        "data": list(dict.fromkeys(source.path for source in sources)),
        "handle": None if handle is None else handle_table(handle),
        "joints": [as_object(joint) for joint in joints],
        "left_out": left_out,
        "configuration": "\n".join(lines),
    }
    words = [] if handle is None else _describe_handle(handle)
    words += [line for joint in joints for line in describe(joint)]
    words += [*([left_out] if left_out else []), "", f"Parameters: {options.out}"]
    if lines:
        words += ["For the configuration of sessions (--config):", "", *lines]
    return Answer(result, "\n".join(words))


def _describe_handle(handle: Handle) -> list[str]:
    from calibration.handle import MASS

    words = [f"handle: {handle.facts['poses']} poses, which leave {handle.facts['residual_force_n']:.2g} N"]
    width = max(len(name) for name in (*handle.values, "")) + 2
    for name, value in handle.values.items():
        words.append(f"  {name:<{width}}{value:10.4g}   standard error {handle.errors[name]:.2g}")
    if handle.unknown:
        words.append(f"  not identifiable from these poses: {', '.join(handle.unknown)}")
    words += [f"  warning: {warning}" for warning in handle.warnings]
    return words + ([f"  {_CONSTANT}"] if MASS in handle.unknown else [])


def _configuration(out: Path, handle: Handle | None, joints: tuple[JointParameters, ...]) -> list[str]:
    """Return the lines to add to the session configuration for this arm."""
    from calibration.handle import CENTRES, CERTAIN, MASS

    def rounded(value: float) -> float:
        return float(f"{value:.5g}") if abs(value) >= 1e-6 else 0.0

    arm: dict[str, Any] = {}
    sensor: dict[str, Any] = {}
    found = {} if handle is None else handle.values
    if handle is not None and found.get(MASS, 0.0) > CERTAIN * handle.errors.get(MASS, 0.0):
        arm["handle_mass"] = rounded(found[MASS])
        if all(name in found for name in CENTRES):
            sensor["handle_centre"] = [rounded(found[name]) for name in CENTRES]
    if joints:
        arm["friction_parameters"] = str(out)
    return format_toml({"device": {"arm": arm, "sensor": sensor}}).splitlines() if arm else []


# --- servo ------------------------------------------------------------------------------------------------------------

_SERVO = "servo"


def servo_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command to its parser."""
    add_out(parser, "file to write the settings to; use it with --config")
    add_device_options(parser)


def run_servo(options: argparse.Namespace) -> Answer:
    """Move an arm, identify its position servo and write the settings."""
    from calibration.motions.servo import Excitation, ServoMeasurement

    mover, tables = mover_for(options, _SERVO, choices=_ARMS)
    measurement = ServoMeasurement(build(Excitation, tables.get(_SERVO, {}), _SERVO))
    spec, out = mover.spec, options.out
    found = carry_out(options, mover, measurement)
    fit = found.fit
    values = {"delay": found.delay, "servo_frequency": fit.frequency, "servo_damping_ratio": fit.damping_ratio}
    settings = {name: float(f"{value:.4g}") for name, value in values.items()}
    write_atomically(out, format_toml({"device": settings}))
    result = {
        "out": str(out),
        "device": found.source.device,
        "data": found.source.path,
        "sample_age_s": found.age,
        **asdict(fit),
        "settings": settings,
        "warnings": list(fit.warnings),
    }
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
    lines += [*(f"  warning: {warning}" for warning in fit.warnings), ""]
    return Answer(result, "\n".join([*lines, f"Settings: {out}, for haptics run --config {out}"]))
