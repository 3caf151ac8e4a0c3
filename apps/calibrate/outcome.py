"""Final steps of a friction identification: validation, parameter file, report and answer."""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from apps.calibrate.options import behind, measured, recordings
from apps.calibrate.reports.results import (
    as_object,
    describe,
    describe_candidates,
    ending,
    names_of,
    provenance,
)
from apps.shared.answer import Answer
from devices.common.parameter_keys import key

if TYPE_CHECKING:
    from calibration.coupled import Coupling
    from calibration.identification import IdentificationOptions, IdentifiedFriction, PredictionError
    from calibration.parameters.parameters import JointParameters

METHOD = "separable least squares, {loss} loss; intervals for errors that resemble their neighbours"


def deliver(
    options: argparse.Namespace,
    identified: Sequence[IdentifiedFriction],
    wishes: IdentificationOptions,
    coupling: Coupling | None = None,
) -> Answer:
    """Write the parameter file and the report, and return the answer of the command.

    Parameters
    ----------
    options : Namespace
        Parsed options of the command.
    identified : sequence of IdentifiedFriction
        Result for each joint, or for each motor of coupled joints.
    wishes : IdentificationOptions
        Settings of the identification.
    coupling : Coupling, optional
        Coupling between motors and joints, if any.
    """
    from calibration.parameters.files import write_parameter_file
    from calibration.parameters.parameters import ParameterFile

    joints = tuple(one.parameters() for one in identified)
    errors = check_all(options, joints, wishes, coupling)
    sources = [recording.source for one in identified for recording in one.recordings]
    method = METHOD.format(loss=options.loss)
    file = ParameterFile(provenance(method, sources, options.identity), joints, coupling)
    write_parameter_file(options.out, file)
    if options.report is not None:
        from apps.calibrate.reports.report import friction_pages, write_report

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
    wishes: IdentificationOptions,
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
        for joint, error in check_file(options, path, joints, wishes, coupling).items():
            errors[joint][name] = error
    return errors


def check_file(
    options: argparse.Namespace,
    path: str,
    joints: Sequence[JointParameters],
    wishes: IdentificationOptions,
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
    from haptics.errors import ConfigurationError

    if coupling is None:
        found = recordings(options, path)
    else:
        motors, wishes = behind(coupling, measured(options, path), wishes)
        found = {motor.joint: [motor] for motor in motors}
    if list(found) == [UNNAMED] and len(joints) == 1:
        found = {joints[0].name: found[UNNAMED]}
    errors = {
        joint.name: prediction_error(joint, joined([samples_of(one, wishes) for one in found[joint.name]]))
        for joint in joints
        if joint.name in found
    }
    if not errors:
        names = ", ".join(joint.name for joint in joints)
        raise ConfigurationError(f"{path}: has the joints {', '.join(found)}; the parameters are of {names}.")
    return errors
