"""Friction identification from recorded motion: models, fits, selection (Guedelha et al. 2018)."""

from calibration.friction.choice import Candidate, Choice, choose_model
from calibration.friction.diagnostics import Diagnostics, Doubt
from calibration.friction.fit import fit_friction
from calibration.friction.model import DIMENSIONS, MODELS, STATIC_MODELS, FrictionModel, negative
from calibration.friction.motion import Motion, Travel
from calibration.friction.result import FrictionFit
from calibration.friction.samples import Samples, joined
from calibration.friction.saturation import without_saturated
from calibration.friction.settings import FitSettings

__all__ = [
    "DIMENSIONS",
    "MODELS",
    "STATIC_MODELS",
    "Candidate",
    "Choice",
    "Diagnostics",
    "Doubt",
    "FitSettings",
    "FrictionFit",
    "FrictionModel",
    "Motion",
    "Samples",
    "Travel",
    "choose_model",
    "fit_friction",
    "joined",
    "negative",
    "without_saturated",
]
