"""Commands ``haptics calibrate friction``, ``coupled`` and ``check``: friction from recordings or with a device.

With ``coupled``, each motor that drives several joints together is identified from the part of the recording in which
it moves alone. ``check`` validates identified parameters on another recording. The option ``--law`` of ``friction``
writes a session file that renders the friction.
"""

from __future__ import annotations

import argparse
import math
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from apps.calibrate.moving import add_device_options, measure
from apps.calibrate.options import (
    AUTOMATIC,
    add_data_options,
    add_fit_options,
    add_result_options,
    behind,
    by_joint,
    chosen,
    identification_options,
    measured,
    parse_columns,
    recordings,
    require_place,
)
from apps.calibrate.results import (
    as_object,
    describe,
    describe_candidates,
    describe_error,
    effort_word,
    ending,
    names_of,
    provenance,
)
from apps.shared.command import Answer
from apps.shared.terminal import Line
from devices.common.parameter_keys import key
from haptics.errors import ConfigurationError
from haptics.files import read_toml, write_atomically
from haptics.settings import unknown_name

if TYPE_CHECKING:
    from calibration.coupled import Coupling
    from calibration.data.joint_recording import JointRecording
    from calibration.identification import IdentificationOptions, IdentifiedFriction, PredictionError
    from calibration.parameters import JointParameters

METHOD = "separable least squares, {loss} loss; intervals for errors that resemble their neighbours"


def friction_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command to its parser."""
    add_data_options(parser, "recording of joints moved from outside, with their motors off", required=False)
    add_device_options(parser)
    add_result_options(parser)
    add_fit_options(parser)
    add_law_options(parser)


def run_friction(options: argparse.Namespace) -> Answer:
    """Identify friction, from files or on a device, and write parameters and report."""
    if bool(options.data) == bool(options.device):
        raise ConfigurationError("give either --data FILE (a recording) or --device NAME (measure on a device).")
    require_places(options)
    identification = identification_options(options)
    if options.device:
        joints = chosen(measure(options), options.joints)
        identification = options_for_device(identification, joints)
    else:
        joints = by_joint(options)
    require_law(options, joints)
    identified = identify_all(joints, identification)
    answer = deliver(options, identified, identification)
    return answer if options.law is None else write_law(options, identified[0], answer)


def options_for_device(
    identification: IdentificationOptions, joints: dict[str, list[JointRecording]]
) -> IdentificationOptions:
    """Return the settings for motions made by the device itself, without a hand.

    Velocities are derived from smoothed positions, if available, and the moving mass is identified.
    """
    from calibration.friction import FitSettings

    settings = identification.settings or FitSettings()
    positions = any(one.position is not None for rounds in joints.values() for one in rounds)
    return replace(
        identification,
        smooth=AUTOMATIC if identification.smooth is None and positions else identification.smooth,
        settings=replace(settings, fit_inertia=identification.inertia == 0.0, common_offset=True),
    )


def require_places(options: argparse.Namespace) -> None:
    """Check that the result files are writable and that no path is used twice.

    Raises
    ------
    ConfigurationError
        If a file cannot be written, or is also an input or another result.
    """
    taken = {os.path.realpath(path) for path in options.data}
    given = vars(options)
    for option in ("--out", "--report", "--law", "--law-hand"):
        path = given.get(option[2:].replace("-", "_"))
        if path is None:
            continue
        require_place(path, option)
        place = os.path.realpath(path)
        if place in taken:
            raise ConfigurationError(
                f"{option} = {str(path)!r}: is already used for another file; name a different one."
            )
        taken.add(place)


def identify_all(
    joints: dict[str, list[JointRecording]], identification: IdentificationOptions
) -> list[IdentifiedFriction]:
    """Identify the friction of all joints and show the progress."""
    from calibration.identification import identify

    found: list[IdentifiedFriction] = []
    with Line() as line:
        for name, recordings in joints.items():
            line.show(f"identifying {name} ({len(found) + 1} of {len(joints)})")
            found.append(identify(recordings, identification))
    return found


# --- results ----------------------------------------------------------------------------------------------------------


def deliver(
    options: argparse.Namespace,
    identified: Sequence[IdentifiedFriction],
    identification: IdentificationOptions,
    coupling: Coupling | None = None,
) -> Answer:
    """Write the parameter file and the report, and return the answer of the command.

    Parameters
    ----------
    options : Namespace
        Parsed options of the command.
    identified : sequence of IdentifiedFriction
        Result for each joint, or for each motor of coupled joints.
    identification : IdentificationOptions
        Settings of the identification.
    coupling : Coupling, optional
        Coupling between motors and joints, if any.
    """
    from calibration.parameter_files import write_parameter_file
    from calibration.parameters import ParameterFile

    joints = tuple(one.parameters() for one in identified)
    errors = check_all(options, joints, identification, coupling)
    sources = [recording.source for one in identified for recording in one.recordings]
    method = METHOD.format(loss=options.loss)
    file = ParameterFile(provenance(method, sources, options.identity), joints, coupling)
    write_parameter_file(options.out, file)
    if options.report is not None:
        from apps.calibrate.report import friction_pages, write_report

        write_report(options.report, file, friction_pages(identified, joints, errors))
    result = {
        "out": str(options.out),
        "report": None if options.report is None else str(options.report),
        "data": list(dict.fromkeys(source.path for source in sources)),
        "joints": [
            {
                **as_object(joint),
                "checks": {name: error.relative for name, error in errors[joint.name].items()},
                "checks_own_offset": {
                    name: {
                        "relative_error": error.relative_own_offset,
                        key("offset", "force", joint.rotary): error.offset,
                    }
                    for name, error in errors[joint.name].items()
                },
                "models": {name: score for name, score in one.choice.scores.items() if math.isfinite(score)},
                "candidates": [
                    {
                        "model": candidate.name,
                        "parameters": candidate.parameters,
                        "relative_error_cross_validated": candidate.score,
                        "reason": candidate.reason,
                    }
                    for candidate in one.choice.candidates
                    if math.isfinite(candidate.score)
                ],
            }
            for joint, one in zip(joints, identified, strict=True)
        ],
    }
    lines = []
    for joint, one in zip(joints, identified, strict=True):
        lines += describe(joint, errors[joint.name])
        if len(one.choice.candidates) > 1:
            lines += describe_candidates(one.choice.candidates)
    return Answer(result, "\n".join([*lines, *ending(options.out, options.report)]))


def check_all(
    options: argparse.Namespace,
    joints: Sequence[JointParameters],
    identification: IdentificationOptions,
    coupling: Coupling | None,
) -> dict[str, dict[str, PredictionError]]:
    """Return the prediction errors of each joint on the recordings of ``--check``.

    Raises
    ------
    ConfigurationError
        If a recording cannot be used.
    """
    errors: dict[str, dict[str, PredictionError]] = {joint.name: {} for joint in joints}
    for path, name in zip(options.check, names_of(options.check), strict=True):
        for joint, error in check_file(options, path, joints, identification, coupling).items():
            errors[joint][name] = error
    return errors


def check_file(
    options: argparse.Namespace,
    path: str,
    joints: Sequence[JointParameters],
    identification: IdentificationOptions,
    coupling: Coupling | None,
) -> dict[str, PredictionError]:
    """Return the prediction error of each joint in a recording.

    Raises
    ------
    ConfigurationError
        If the file cannot be used, or has none of the joints.
    """
    from calibration.data.joint_recording import UNNAMED
    from calibration.friction import joined
    from calibration.identification import prediction_error, samples_of

    if coupling is None:
        found = recordings(options, path)
    else:
        motors, identification = behind(coupling, measured(options, path), identification)
        found = {motor.joint: [motor] for motor in motors}
    if list(found) == [UNNAMED] and len(joints) == 1:
        found = {joints[0].name: found[UNNAMED]}
    errors = {
        joint.name: prediction_error(joint, joined([samples_of(one, identification) for one in found[joint.name]]))
        for joint in joints
        if joint.name in found
    }
    if not errors:
        names = ", ".join(joint.name for joint in joints)
        raise ConfigurationError(f"{path}: has the joints {', '.join(found)}; the parameters are of {names}.")
    return errors


# --- session file -----------------------------------------------------------------------------------------------------


def add_law_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the session file."""
    parser.add_argument(
        "--law",
        metavar="FILE.toml",
        type=Path,
        help="session file to write, which renders the friction: haptics run --config FILE.toml",
    )
    parser.add_argument(
        "--law-hand",
        metavar="FILE.csv",
        type=Path,
        help="recorded motion to write, for a virtual device: haptics run --config FILE.toml --hand FILE.csv",
    )
    parser.add_argument(
        "--lever-arm", metavar="M", type=float, help="distance from the axis at which the friction is felt [m]"
    )
    parser.add_argument("--scale", metavar="S", type=float, default=1.0, help="factor on the rendered forces (1)")


def require_law(options: argparse.Namespace, joints: dict[str, list[JointRecording]]) -> None:
    """Validate the options of the session file before the identification.

    Raises
    ------
    ConfigurationError
        If there are several joints, the lever arm does not suit the joint, or an option needs ``--law``.
    """
    from calibration.rendering import Conversion

    if options.law is None:
        for option, given in (("--law-hand", options.law_hand), ("--lever-arm", options.lever_arm)):
            if given is not None:
                raise ConfigurationError(f"{option} belongs to --law FILE.toml, the session file; add it.")
        return
    if len(joints) > 1:
        raise ConfigurationError(
            f"--law renders one joint, and the data have {', '.join(joints)}: choose one with --joint NAME."
        )
    (recordings,) = joints.values()
    Conversion.of(recordings[0].rotary, options.lever_arm, options.scale)


def write_law(options: argparse.Namespace, identified: IdentifiedFriction, answer: Answer) -> Answer:
    """Write the session file and the recorded motion, and add both to the answer."""
    from calibration.rendering import Conversion, felt_friction, format_hand, format_session

    joint = identified.parameters()
    conversion = Conversion.of(joint.rotary, options.lever_arm, options.scale)
    recordings = identified.recordings
    velocity = np.concatenate([recording.smooth_velocity for recording in recordings])
    felt = felt_friction(joint, conversion, velocity, [recording.source for recording in recordings])
    write_atomically(options.law, format_session(felt, joint))
    lines = [f"Session:    {options.law} (haptics run --config {options.law})"]
    if options.law_hand is not None:
        write_atomically(options.law_hand, format_hand(recordings[0], conversion))
        lines.append(f"Motion:     {options.law_hand} (--hand {options.law_hand})")
    lines += [f"  left out: {text}" for text in felt.left_out]
    lines += [f"  approximated: {text}" for text in felt.approximated]
    lines += [f"  warning: {text}" for text in felt.warnings]
    hand = None if options.law_hand is None else str(options.law_hand)
    result = {**answer.result, "law": str(options.law), "law_hand": hand, "law_warnings": list(felt.warnings)}
    return replace(answer, result=result, text="\n".join([answer.text, *lines]))


# --- coupled joints ---------------------------------------------------------------------------------------------------


def coupled_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command to its parser."""
    parser.add_argument(
        "--coupling",
        metavar="NAME|FILE.toml",
        required=True,
        help="icub-torso, icub-left-shoulder, icub-right-shoulder, or a file with joints, motors and matrix",
    )
    add_data_options(parser, "recording of all joints while one motor at a time moves and the others are held")
    add_result_options(parser)
    add_fit_options(parser)


def run_coupled(options: argparse.Namespace) -> Answer:
    """Identify the friction of motors behind a coupling."""
    require_places(options)
    identification = identification_options(options)
    coupling = coupling_of(options.coupling)
    joints = by_joint(options)
    motors: dict[str, list[JointRecording]] = {}
    for number in range(len(options.data)):
        found, left = behind(coupling, [recordings[number] for recordings in joints.values()], identification)
        for motor in found:
            motors.setdefault(motor.joint, []).append(motor)
    in_order = {name: motors[name] for name in coupling.motors if name in motors}
    answer = deliver(options, identify_all(in_order, left), identification, coupling)
    missing = [name for name in coupling.motors if name not in motors]
    note = f"\nNot identified, because they never moved alone: {', '.join(missing)}" if missing else ""
    return replace(answer, result={**answer.result, "missing": missing}, text=answer.text + note)


def coupling_of(text: str) -> Coupling:
    """Return a coupling by name, or read it from a TOML file.

    Raises
    ------
    ConfigurationError
        If the coupling is unknown or the file is invalid.
    """
    from calibration.coupled import COUPLINGS
    from calibration.parameter_files import read_coupling

    if text in COUPLINGS:
        return COUPLINGS[text]
    if not text.endswith(".toml"):
        raise unknown_name("coupling", text, [*COUPLINGS, "FILE.toml"])
    content = read_toml(text, f"--coupling = {text!r}")
    try:
        return read_coupling(content.get("coupling", content))
    except ConfigurationError as error:
        raise ConfigurationError(f"{text}: {error}") from error


# --- validation -------------------------------------------------------------------------------------------------------


def check_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command to its parser."""
    parser.add_argument("--parameters", metavar="FILE.toml", type=Path, required=True, help="parameter file to check")
    add_data_options(parser, "a recording that the parameters were not identified from")


def run_check(options: argparse.Namespace) -> Answer:
    """Compare predicted and measured torques."""
    from calibration.parameter_files import read_parameter_file
    from calibration.terms.model import holds_terms

    if holds_terms(options.parameters):
        return _check_terms(options)
    file = read_parameter_file(options.parameters)
    if not file.joints:
        raise ConfigurationError(f"{options.parameters}: has no table [joint.NAME], so there is nothing to check.")
    identification = identification_options(options)
    files = {
        name: check_file(options, path, file.joints, identification, file.coupling)
        for path, name in zip(options.data, names_of(options.data), strict=True)
    }
    rotary = {joint.name: joint.rotary for joint in file.joints}
    lines = [
        f"{name}, {joint}: {describe_error(error, rotary[joint])}"
        for name, errors in files.items()
        for joint, error in errors.items()
    ]
    result = {
        "parameters": str(options.parameters),
        "relative_errors": {
            name: {joint: error.relative for joint, error in errors.items()} for name, errors in files.items()
        },
        "relative_errors_own_offset": {
            name: {joint: error.relative_own_offset for joint, error in errors.items()}
            for name, errors in files.items()
        },
    }
    return Answer(result, "\n".join(lines))


def _check_terms(options: argparse.Namespace) -> Answer:
    """Validate term models, as written by ``haptics calibrate terms``."""
    from calibration.data.reading import read_joint_recordings
    from calibration.terms.model import read_term_file

    if options.smooth is not None or options.inertia:
        raise ConfigurationError("--smooth, --inertia: models made of terms need neither; leave them out.")
    models = read_term_file(options.parameters)
    files: dict[str, dict[str, float]] = {}
    for path, name in zip(options.data, names_of(options.data), strict=True):
        seen = {one.joint: one for one in read_joint_recordings(path, parse_columns(options.columns), options.joints)}
        if not seen.keys() & models.keys():
            raise ConfigurationError(
                f"{path}: has the joints {', '.join(seen)}; the models are of {', '.join(models)}."
            )
        files[name] = {joint: models[joint].error(one).value for joint, one in seen.items() if joint in models}
    lines = [
        f"{name}, {joint}: residual {100.0 * error:.3g} % of the {effort_word(models[joint].rotary)} (rms)"
        for name, errors in files.items()
        for joint, error in errors.items()
    ]
    return Answer({"parameters": str(options.parameters), "relative_errors": files}, "\n".join(lines))
