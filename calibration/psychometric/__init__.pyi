from calibration.psychometric.discrimination import (
    Detectability,
    ImpedanceDifferences,
    OrderBias,
    detectability,
    impedance_differences,
    jnd,
    order_bias,
    pse,
    weber_fraction,
)
from calibration.psychometric.drift import DriftFit, TimeCourse, fit_drift
from calibration.psychometric.estimate import Estimate, proportion
from calibration.psychometric.fit import (
    Curve,
    PsychometricFit,
    Tables,
    fit_psychometric,
    psychometric_tables,
    spearman_karber,
)
from calibration.psychometric.group import Group, Magnitude, group_estimate, magnitude_exponent, mean_and_spread
from calibration.psychometric.posterior import RatePrior, WidthPrior

__all__ = [
    "Curve",
    "Detectability",
    "DriftFit",
    "Estimate",
    "Group",
    "ImpedanceDifferences",
    "Magnitude",
    "OrderBias",
    "PsychometricFit",
    "RatePrior",
    "Tables",
    "TimeCourse",
    "WidthPrior",
    "detectability",
    "fit_drift",
    "fit_psychometric",
    "group_estimate",
    "impedance_differences",
    "jnd",
    "magnitude_exponent",
    "mean_and_spread",
    "order_bias",
    "proportion",
    "pse",
    "psychometric_tables",
    "spearman_karber",
    "weber_fraction",
]
