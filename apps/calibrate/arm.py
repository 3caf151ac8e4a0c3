"""Commands ``haptics calibrate arm`` and ``servo``: identify handle, joints and position servo of an arm."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from apps.calibrate.friction import identify_all
from apps.calibrate.moving import EXCITATION, add_device_options, carry_out, joint_excitation, mover_for
from apps.calibrate.options import AUTOMATIC, require_place
from apps.calibrate.results import as_object, describe, ending, provenance
from apps.shared.command import Answer
from haptics.errors import ConfigurationError
from haptics.files import write_atomically
from haptics.settings import build, unknown_name

if TYPE_CHECKING:
    from calibration.data.joint_recording import Source
    from calibration.handle import Handle
    from calibration.identification import IdentifiedFriction
    from calibration.parameters import JointParameters

HANDLE, JOINTS = "handle", "joints"
_POSES = "poses"
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
    parser.add_argument("--out", metavar="FILE.toml", type=Path, required=True, help="parameter file to write")
    add_device_options(parser)
    parser.add_argument(
        "--only", choices=(HANDLE, JOINTS), help="identify only this part; default: all that the arm can measure"
    )
    parser.add_argument("--model", metavar="NAME", default=AUTOMATIC, help="friction model of the joints (auto)")


def run_arm(options: argparse.Namespace) -> Answer:
    """Identify an arm and write its parameter file."""
    from calibration.friction import MODELS, FitSettings
    from calibration.handle import identify_handle
    from calibration.identification import IdentificationOptions
    from calibration.motions.arm import PoseMeasurement, Poses, body_of

    if not options.device:
        raise ConfigurationError("--device is missing: name the arm, virtual-arm or arm.")
    require_place(options.out)
    mover, tables = mover_for(options, EXCITATION, _POSES)
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
    return _deliver(options, wanted, handle, identified, sources)


def _deliver(
    options: argparse.Namespace,
    wanted: list[str],
    handle: Handle | None,
    identified: list[IdentifiedFriction],
    sources: list[Source],
) -> Answer:
    """Write the parameter file and return the answer of the command."""
    from calibration.handle import MASS
    from calibration.parameter_files import handle_table, write_parameter_file
    from calibration.parameters import ParameterFile

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
    words = []
    if handle is not None:
        words.append(f"handle: {handle.facts['poses']} poses, which leave {handle.facts['residual_force_n']:.2g} N")
        width = max(len(name) for name in (*handle.values, "")) + 2
        for name, value in handle.values.items():
            words.append(f"  {name:<{width}}{value:10.4g}   standard error {handle.errors[name]:.2g}")
        if handle.unknown:
            words.append(f"  not identifiable from these poses: {', '.join(handle.unknown)}")
        words += [f"  warning: {warning}" for warning in handle.warnings]
        words += [f"  {_CONSTANT}"] if MASS in handle.unknown else []
    for joint in joints:
        words += describe(joint, {})
    words += ([left_out] if left_out else []) + ending(options.out, None)
    if lines:
        words += ["For the configuration of sessions (--config):", "", *lines]
    return Answer(result, "\n".join(words))


def _configuration(out: Path, handle: Handle | None, joints: tuple[JointParameters, ...]) -> list[str]:
    """Return the lines to add to the session configuration for this arm."""
    from calibration.handle import CENTRES, CERTAIN, MASS
    from calibration.parameter_files import format_toml

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
    parser.add_argument(
        "--out",
        metavar="FILE.toml",
        type=Path,
        required=True,
        help=("file to write the settings to; use it with --config"),
    )
    add_device_options(parser)


def run_servo(options: argparse.Namespace) -> Answer:
    """Move an arm, identify its position servo and write the settings."""
    from calibration.motions.servo import Excitation, ServoMeasurement
    from calibration.parameter_files import format_toml

    if not options.device:
        raise ConfigurationError("--device is missing: name the arm, virtual-arm or arm.")
    require_place(options.out)
    mover, tables = mover_for(options, _SERVO)
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
