"""Command ``haptics calibrate arm``: identify the handle and the joints of an arm."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from apps.calibrate.friction import identify_all
from apps.calibrate.moving import (
    EXCITATION,
    add_device_options,
    joint_excitation,
    measure_joints,
    mover_for,
    moving,
    place_of,
)
from apps.calibrate.options import AUTOMATIC
from apps.calibrate.places import require_place
from apps.calibrate.reports.results import as_object, describe, ending, provenance
from apps.shared.answer import Answer
from haptics.errors import ConfigurationError
from haptics.settings import build, unknown_name

if TYPE_CHECKING:
    from calibration.data.files import Source
    from calibration.handle import Handle
    from calibration.identification import IdentifiedFriction
    from calibration.motions import Mover
    from calibration.motions.poses import Poses
    from calibration.parameters.parameters import JointParameters

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


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command to its parser."""
    parser.add_argument("--out", metavar="FILE.toml", type=Path, required=True, help="parameter file to write")
    add_device_options(parser)
    parser.add_argument(
        "--only", choices=(HANDLE, JOINTS), help="identify only this; default: all that the arm measures"
    )
    parser.add_argument("--model", metavar="NAME", default=AUTOMATIC, help="friction model of the joints (auto)")


def run(options: argparse.Namespace) -> Answer:
    """Identify an arm and write its parameter file."""
    if not options.device:
        raise ConfigurationError("--device is missing: name the arm, virtual-arm or arm.")
    require_place(options.out)
    from calibration.motions.poses import Poses, require_wrench

    mover, tables = mover_for(options, EXCITATION, _POSES)
    require_wrench(mover.spec)
    poses, motions = build(Poses, tables.get(_POSES, {}), _POSES), tables.get(EXCITATION, {})
    joint_excitation(motions)  # validates the settings before anything moves
    _require_model(options.model)
    wanted = _wanted(options, mover)
    handle, identified, sources = None, [], []
    if HANDLE in wanted:
        handle, source = _find_handle(options, mover, poses)
        sources.append(source)
    if JOINTS in wanted:
        identified = _find_joints(options, mover, motions)
        sources += [one.source for joint in identified for one in joint.recordings]
    return _deliver(options, wanted, handle, identified, sources)


def _require_model(name: str) -> None:
    from calibration.friction import MODELS

    if name not in (AUTOMATIC, *MODELS):
        raise unknown_name("friction model", name, [AUTOMATIC, *MODELS])


def _wanted(options: argparse.Namespace, mover: Mover) -> list[str]:
    """Return the identifications to run: the one chosen with ``--only``, or all that the arm supports."""
    from calibration.motions.joint_motion import body_of

    if options.only == HANDLE:
        return [HANDLE]
    try:
        body_of(mover)
    except ConfigurationError:
        if options.only == JOINTS:
            raise
        return [HANDLE]
    return [JOINTS] if options.only == JOINTS else [HANDLE, JOINTS]


def _find_handle(options: argparse.Namespace, mover: Mover, poses: Poses) -> tuple[Handle, Source]:
    """Move the arm through several poses and identify the handle from the measured wrenches."""
    from apps.session.record import made_by
    from calibration.handle import identify_handle
    from calibration.motions.poses import measure_wrenches, plan_poses

    spec = mover.spec
    places, holds = plan_poses(poses, spec, mover.period)
    limits = f"to {len(holds)} poses with up to {poses.speed:g} m/s"
    folder = place_of(options, _POSES)
    with moving(spec, len(places) * mover.period, limits, folder) as progress:
        wrenches, source = measure_wrenches(mover, poses, folder, made_by(), progress)
    return identify_handle(wrenches), source


def _find_joints(options: argparse.Namespace, mover: Mover, table: dict[str, Any]) -> list[IdentifiedFriction]:
    """Move the joints of the arm and identify their friction and inertia."""
    from calibration.friction import FitSettings
    from calibration.identification import IdentificationOptions

    joints = measure_joints(mover, table, place_of(options, EXCITATION))
    return identify_all(joints, IdentificationOptions(options.model, settings=FitSettings(fit_inertia=True)))


def _deliver(
    options: argparse.Namespace,
    wanted: list[str],
    handle: Handle | None,
    identified: list[IdentifiedFriction],
    sources: list[Source],
) -> Answer:
    """Write the parameter file and return the answer of the command."""
    from calibration.parameters.files import handle_table, write_parameter_file
    from calibration.parameters.parameters import ParameterFile

    joints = tuple(one.parameters() for one in identified)
    origin = provenance("; ".join(_METHOD[what] for what in wanted), sources, options.device)
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
    words = [] if handle is None else _describe(handle)
    for joint in joints:
        words += describe(joint, {})
    words += ([left_out] if left_out else []) + ending(options.out, None)
    if lines:
        words += ["For the configuration of sessions (--config):", "", *lines]
    return Answer(result, "\n".join(words))


def _describe(handle: Handle) -> list[str]:
    """Return the identified handle parameters as text, one line each."""
    from calibration.handle import MASS

    lines = [f"handle: {handle.facts['poses']} poses, which leave {handle.facts['residual_force_n']:.2g} N"]
    width = max(len(name) for name in (*handle.values, "")) + 2
    lines += [
        f"  {name:<{width}}{value:10.4g}   standard error {handle.errors[name]:.2g}"
        for name, value in handle.values.items()
    ]
    if handle.unknown:
        lines.append(f"  not identifiable from these poses: {', '.join(handle.unknown)}")
    lines += [f"  warning: {warning}" for warning in handle.warnings]
    return [*lines, f"  {_CONSTANT}"] if MASS in handle.unknown else lines


def _configuration(out: Path, handle: Handle | None, joints: tuple[JointParameters, ...]) -> list[str]:
    """Return the lines to add to the session configuration for this arm."""
    from calibration.handle import CENTRES, CERTAIN, MASS
    from calibration.parameters.toml_text import format_toml

    arm: dict[str, Any] = {}
    sensor: dict[str, Any] = {}
    found = {} if handle is None else handle.values
    if handle is not None and found.get(MASS, 0.0) > CERTAIN * handle.errors.get(MASS, 0.0):
        arm["handle_mass"] = _rounded(found[MASS])
        if all(name in found for name in CENTRES):
            sensor["handle_centre"] = [_rounded(found[name]) for name in CENTRES]
    if joints:
        arm["friction_parameters"] = str(out)
    return format_toml({"device": {"arm": arm, "sensor": sensor}}).splitlines() if arm else []


def _rounded(value: float) -> float:
    return float(f"{value:.5g}") if abs(value) >= 1e-6 else 0.0
