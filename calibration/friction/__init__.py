"""Friction identification from recorded motion: models, fits, intervals, model selection (Guedelha et al. 2018)."""

from calibration.friction.choice import Choice, choose_model
from calibration.friction.diagnostics import Diagnostics, Doubt
from calibration.friction.fit import fit_friction
from calibration.friction.model import DIMENSIONS, MODELS, FrictionModel, negative
from calibration.friction.result import FrictionFit
from calibration.friction.samples import Samples, joined
from calibration.friction.settings import FitSettings

__all__ = [
    "DIMENSIONS",
    "MODELS",
    "Choice",
    "Diagnostics",
    "Doubt",
    "FitSettings",
    "FrictionFit",
    "FrictionModel",
    "Samples",
    "choose_model",
    "fit_friction",
    "joined",
    "negative",
]
