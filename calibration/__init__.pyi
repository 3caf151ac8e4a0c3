from calibration.coupled import Coupling, decouple
from calibration.data.joint_recording import JointRecording
from calibration.data.reading import read_joint_recordings
from calibration.friction.choice import Choice, choose_model
from calibration.friction.fit import fit_friction
from calibration.friction.result import FitSettings, FrictionFit
from calibration.friction.samples import Samples
from calibration.identification import IdentificationOptions, IdentifiedFriction, identify
from calibration.motor import MotorFit, identify_motor
from calibration.parameters import JointParameters, ParameterFile, read_parameter_file, write_parameter_file
from calibration.terms.selection import Selection, select_terms

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
