"""Commands ``haptics calibrate friction``, ``coupled``, ``check`` and ``motor``: friction and motors of joints.

With ``coupled``, each motor that drives several joints together is identified from the part of the recording in which
it moves alone. ``check`` validates identified parameters on another recording. The option ``--law`` of ``friction``
writes a session file that renders the friction. ``motor`` identifies the gain from PWM, current or voltage to torque.
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

from apps.calibrate.options import (
    AUTOMATIC,
    add_data_options,
    add_device_options,
    add_fit_options,
    add_result_options,
    behind,
    by_joint,
    chosen,
    identification_options,
    measure,
    measured,
    recordings,
    require_place,
)
from apps.calibrate.results import (
    as_object,
    describe,
    describe_candidates,
    describe_error,
    effort_word,
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
    from calibration.data.joint_recording import JointRecording, Source
    from calibration.identification import IdentificationOptions, IdentifiedFriction, PredictionError
    from calibration.parameters import Found, JointParameters, ParameterFile

METHOD = "separable least squares, {loss} loss; intervals for errors that resemble their neighbours"


def friction_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command to its parser."""
    add_data_options(parser, "recording of joints moved from outside, with their motors off", required=False)
    add_device_options(parser)
    add_result_options(parser)
    add_fit_options(parser)
    text = "session file to write, which renders the friction: haptics run --config FILE.toml"
    parser.add_argument("--law", metavar="FILE.toml", type=Path, help=text)
    text = "recorded motion to write, for a virtual device: haptics run --config FILE.toml --hand FILE.csv"
    parser.add_argument("--law-hand", metavar="FILE.csv", type=Path, help=text)
    text = "distance from the axis at which the friction is felt [m]"
    parser.add_argument("--lever-arm", metavar="M", type=float, help=text)
    parser.add_argument("--scale", metavar="S", type=float, default=1.0, help="factor on the rendered forces (1)")


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
    answer = deliver_friction(options, identified, identification)
    return answer if options.law is None else write_law(options, identified[0], answer)


def options_for_device(
    identification: IdentificationOptions, joints: dict[str, list[JointRecording]]
) -> IdentificationOptions:
    """Return the settings for motions made by the device itself, without a hand.

    Velocities are derived from smoothed positions, if available, and the moving mass is identified.
    """
    settings = identification.settings
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


def deliver_friction(
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
    from apps.calibrate.report import deliver, friction_pages
    from calibration.parameters import ParameterFile

    joints = tuple(one.parameters() for one in identified)
    errors: dict[str, dict[str, PredictionError]] = {joint.name: {} for joint in joints}  # on the files of --check
    for path, name in zip(options.check, names_of(options.check), strict=True):
        for checked, error in check_file(options, path, joints, identification, coupling).items():
            errors[checked][name] = error
    objects, lines = [], []
    for joint, one in zip(joints, identified, strict=True):
        checks, candidates = errors[joint.name], one.choice.candidates
        offset = key("offset", "force", joint.rotary)
        objects.append(
            {
                **as_object(joint),
                "checks": {name: error.relative for name, error in checks.items()},
                "checks_own_offset": {
                    name: {"relative_error": error.relative_own_offset, offset: error.offset}
                    for name, error in checks.items()
                },
                "models": {name: score for name, score in one.choice.scores.items() if math.isfinite(score)},
                "candidates": [
                    {
                        "model": candidate.name,
                        "parameters": candidate.parameters,
                        "relative_error_cross_validated": candidate.score,
                        "reason": candidate.reason,
                    }
                    for candidate in candidates
                    if math.isfinite(candidate.score)
                ],
            }
        )
        lines += describe(joint, checks)
        lines += describe_candidates(candidates) if len(candidates) > 1 else []

    sources = [recording.source for one in identified for recording in one.recordings]
    file = ParameterFile(provenance(METHOD.format(loss=options.loss), sources, options.identity), joints, coupling)
    data = list(dict.fromkeys(source.path for source in sources))
    return deliver(options, file, objects, lines, lambda: friction_pages(identified, joints, errors), data=data)


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
    for word, texts in (("left out", felt.left_out), ("approximated", felt.approximated), ("warning", felt.warnings)):
        lines += [f"  {word}: {text}" for text in texts]
    hand = None if options.law_hand is None else str(options.law_hand)
    result = {**answer.result, "law": str(options.law), "law_hand": hand, "law_warnings": list(felt.warnings)}
    return replace(answer, result=result, text="\n".join([answer.text, *lines]))


# --- coupled joints ---------------------------------------------------------------------------------------------------


def coupled_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command to its parser."""
    text = "icub-torso, icub-left-shoulder, icub-right-shoulder, or a file with joints, motors and matrix"
    parser.add_argument("--coupling", metavar="NAME|FILE.toml", required=True, help=text)
    add_data_options(parser, "recording of all joints while one motor at a time moves and the others are held")
    add_result_options(parser)
    add_fit_options(parser)


def run_coupled(options: argparse.Namespace) -> Answer:
    """Identify the friction of motors behind a coupling."""
    from calibration.coupled import COUPLINGS
    from calibration.parameters import read_coupling

    require_places(options)
    identification, text = identification_options(options), options.coupling
    if text in COUPLINGS:
        coupling = COUPLINGS[text]
    elif text.endswith(".toml"):
        content = read_toml(text, f"--coupling = {text!r}")
        try:
            coupling = read_coupling(content.get("coupling", content))
        except ConfigurationError as error:
            raise ConfigurationError(f"{text}: {error}") from error
    else:
        raise unknown_name("coupling", text, [*COUPLINGS, "FILE.toml"])
    joints = by_joint(options)
    motors: dict[str, list[JointRecording]] = {}
    for number in range(len(options.data)):
        found, left = behind(coupling, [recordings[number] for recordings in joints.values()], identification)
        for motor in found:
            motors.setdefault(motor.joint, []).append(motor)
    in_order = {name: motors[name] for name in coupling.motors if name in motors}
    answer = deliver_friction(options, identify_all(in_order, left), identification, coupling)
    missing = [name for name in coupling.motors if name not in motors]
    note = f"\nNot identified, because they never moved alone: {', '.join(missing)}" if missing else ""
    return replace(answer, result={**answer.result, "missing": missing}, text=answer.text + note)


# --- validation -------------------------------------------------------------------------------------------------------


def check_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command to its parser."""
    parser.add_argument("--parameters", metavar="FILE.toml", type=Path, required=True, help="parameter file to check")
    add_data_options(parser, "a recording that the parameters were not identified from")


def run_check(options: argparse.Namespace) -> Answer:
    """Compare predicted and measured torques."""
    from calibration.parameters import read_parameter_file
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
    result: dict[str, object] = {"parameters": str(options.parameters)}
    for name, attribute in (("relative_errors", "relative"), ("relative_errors_own_offset", "relative_own_offset")):
        result[name] = {
            file: {joint: getattr(error, attribute) for joint, error in errors.items()}
            for file, errors in files.items()
        }
    return Answer(result, "\n".join(lines))


def _check_terms(options: argparse.Namespace) -> Answer:
    """Validate term models, as written by ``haptics calibrate terms``."""
    from calibration.terms.model import read_term_file

    if options.smooth is not None or options.inertia:
        raise ConfigurationError("--smooth, --inertia: models made of terms need neither; leave them out.")
    models = read_term_file(options.parameters)
    files: dict[str, dict[str, float]] = {}
    for path, name in zip(options.data, names_of(options.data), strict=True):
        seen = {one.joint: one for one in measured(options, path)}
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


# --- motors -----------------------------------------------------------------------------------------------------------

_METHODS = {
    True: "least squares on the drive, friction added (Guedelha et al. 2018, (32))",
    False: "least squares on the drive, friction as a hysteresis of constant width",
}
"""Method description, keyed by whether the friction was known and the joint moved."""

_EMF = "back_emf_viscosity"


def motor_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command to its parser."""
    add_data_options(parser, "recording of joints driven by their motors, with a column such as pwm_percent")
    add_result_options(parser)
    text = "friction of the joints, from haptics calibrate friction"
    parser.add_argument("--friction", metavar="FILE.toml", type=Path, help=text)
    text = (
        "recording of the joints moved by hand with open windings (no current): separates back-EMF and viscous friction"
    )
    parser.add_argument("--open-windings", metavar="FILE", help=text)


def run_motor(options: argparse.Namespace) -> Answer:
    """Identify motors and write their parameters."""
    from apps.calibrate.report import deliver, motor_pages
    from calibration.identification import identify
    from calibration.motor import back_emf, identify_joint_motor, identify_motor
    from calibration.parameters import JointParameters, ParameterFile, Provenance, read_parameter_file

    require_places(options)
    if len(options.data) > 1:
        raise ConfigurationError("--data: a motor is identified from one recording; give one.")
    if options.open_windings and options.friction is None:
        raise ConfigurationError("--open-windings: needs --friction, the friction with currents, to compare with.")
    identification = identification_options(options)
    known = None if options.friction is None else read_parameter_file(options.friction)
    recordings = _measured(options, options.data[0], known, identification)
    inertia = identification.inertia
    fits = [
        identify_motor(one, inertia=inertia)
        if known is None
        else identify_joint_motor(one, known.joint(one.joint), inertia)
        for one in recordings
    ]
    opened: dict[str, tuple[Found, Source]] = {}
    if options.open_windings is not None and known is not None:
        for recording in _measured(options, options.open_windings, known, identification):
            # the model is the same as for the friction with currents
            model = known.joint(recording.joint).known_friction().model
            identified = identify([recording], replace(identification, model=model, smooth=None)).parameters()
            opened[recording.joint] = identified.known_friction(), recording.source
    joints = []
    for fit in fits:
        name, motor = fit.recording.joint, fit.found()
        if name in opened and known is not None:
            emf, interval = back_emf(known.joint(name).known_friction(), opened[name][0])
            values, intervals = ({**motor.values, _EMF: emf}, {**motor.intervals, _EMF: interval})
            motor = replace(motor, values=values, intervals=intervals)
        joint = JointParameters(name, fit.recording.rotary) if known is None else known.joint(name)
        joints.append(replace(joint, motor=motor))
    file = ParameterFile(Provenance(), tuple(joints)) if known is None else known
    updated = {joint.name: joint for joint in joints}
    method = "; ".join(dict.fromkeys(_METHODS["hysteresis" not in fit.values] for fit in fits))
    sources = [fit.recording.source for fit in fits] + [source for _, source in opened.values()]
    file = replace(
        file,
        joints=tuple(updated.get(joint.name, joint) for joint in file.joints),
        provenance=provenance(method, sources, options.identity, file.provenance),
    )

    lines = [line for joint in joints for line in describe(replace(joint, friction=None))]
    objects = [as_object(joint) for joint in joints]
    return deliver(options, file, objects, lines, lambda: motor_pages(fits, joints))


def _measured(
    options: argparse.Namespace, path: str, known: ParameterFile | None, identification: IdentificationOptions
) -> tuple[JointRecording, ...]:
    """Return the recordings, smoothed on request and named like the joints of the friction file."""
    from calibration.data.joint_recording import UNNAMED
    from calibration.identification import smoothed

    found = measured(options, path)
    if known is not None and known.coupling is not None:
        return behind(known.coupling, found, identification)[0]
    found = tuple(smoothed(one, identification.smooth) for one in found)
    if known is not None and len(found) == len(known.joints) == 1 and found[0].joint == UNNAMED:
        return (replace(found[0], joint=known.joints[0].name),)
    return found
