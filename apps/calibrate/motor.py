"""Command ``haptics calibrate motor``: identify a motor's gain from PWM, current or voltage."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from apps.calibrate.friction import require_places
from apps.calibrate.options import add_data_options, add_result_options, behind, identification_options, measured
from apps.shared.command import Answer
from haptics.errors import ConfigurationError

if TYPE_CHECKING:
    from calibration.data.joint_recording import JointRecording, Source
    from calibration.identification import IdentificationOptions
    from calibration.parameters import Found, ParameterFile

    _Opened = dict[str, tuple[Found, Source]]

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
    from apps.calibrate.results import as_object, describe, provenance
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
    opened: _Opened = {}
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
