"""Identification of parameters from recorded motion, with confidence intervals.

The package connects the devices, which read the parameter files, with the applications that write them. Public names
are imported on first use.

- `calibration.data`: recordings of joints from files; velocities and accelerations without phase lag.
- `calibration.fitting`: least squares and the uncertainty of its results.
- `calibration.friction`: friction laws from motion, and model selection.
- `calibration.identification`: friction of a joint from a recording.
- `calibration.motor`, `coupled`: motor gains, and joints driven by several motors together.
- `calibration.terms`: friction and load from a library of terms, selected by prediction error.
- `calibration.parameters`, `parameter_files`: identified parameters and their file.
- `calibration.joystick`: counts and levels of a force-feedback stick.
- `calibration.psychometric`: thresholds, Weber fractions and d' from the responses of participants.
- `calibration.motions`: motions of a device that identify its friction and mass.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from haptics.lazy import public_names

if TYPE_CHECKING:
    from calibration.coupled import Coupling, decouple
    from calibration.data.joint_recording import JointRecording
    from calibration.data.reading import read_joint_recordings
    from calibration.friction.choice import Choice, choose_model
    from calibration.friction.fit import fit_friction
    from calibration.friction.result import FitSettings, FrictionFit
    from calibration.friction.samples import Samples
    from calibration.identification import IdentificationOptions, IdentifiedFriction, identify
    from calibration.motor import MotorFit, identify_motor
    from calibration.parameter_files import read_parameter_file, write_parameter_file
    from calibration.parameters import JointParameters, ParameterFile
    from calibration.terms.selection import Selection, SelectionSettings, select_terms

_HOMES = {
    "coupled": ("Coupling", "decouple"),
    "data.joint_recording": ("JointRecording",),
    "data.reading": ("read_joint_recordings",),
    "friction.choice": ("Choice", "choose_model"),
    "friction.fit": ("fit_friction",),
    "friction.result": ("FitSettings", "FrictionFit"),
    "friction.samples": ("Samples",),
    "identification": ("IdentifiedFriction", "IdentificationOptions", "identify"),
    "motor": ("MotorFit", "identify_motor"),
    "parameter_files": ("read_parameter_file", "write_parameter_file"),
    "parameters": ("JointParameters", "ParameterFile"),
    "terms.selection": ("Selection", "SelectionSettings", "select_terms"),
}

__all__ = [
    "Choice",
    "Coupling",
    "FitSettings",
    "FrictionFit",
    "IdentificationOptions",
    "IdentifiedFriction",
    "JointParameters",
    "JointRecording",
    "MotorFit",
    "ParameterFile",
    "Samples",
    "Selection",
    "SelectionSettings",
    "choose_model",
    "decouple",
    "fit_friction",
    "identify",
    "identify_motor",
    "read_joint_recordings",
    "read_parameter_file",
    "select_terms",
    "write_parameter_file",
]

__getattr__, __dir__ = public_names(__name__, _HOMES)
