"""Friction identification from recorded motion: models, fits, selection (Guedelha et al. 2018)."""

from calibration.friction.choice import Candidate, Choice, choose_model
from calibration.friction.fit import fit_friction, without_saturated
from calibration.friction.model import DIMENSIONS, MODELS, STATIC_MODELS, FrictionModel, Motion, Travel, negative
from calibration.friction.result import Diagnostics, Doubt, FitSettings, FrictionFit
from calibration.friction.samples import Samples, joined

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
