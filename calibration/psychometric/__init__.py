"""Psychometrics: thresholds, Weber fractions, d' and exponents from responses, with intervals.

- `calibration.psychometric.shapes`: psychometric functions; `priors`: prior distributions.
- `calibration.psychometric.fit`: fit of responses; `tables`: repeated fits at the same levels.
- `calibration.psychometric.discrimination`: differences, equality, Weber fractions, impedances, order bias.
- `calibration.psychometric.signal_detection`: d' and criterion. `karber`: model-free check.
- `calibration.psychometric.magnitude`: Stevens' exponent. `group`: estimates over participants.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from haptics.lazy import public_names

if TYPE_CHECKING:
    from calibration.psychometric.discrimination import (
        ImpedanceDifferences,
        OrderBias,
        impedance_differences,
        jnd,
        order_bias,
        pse,
        weber_fraction,
    )
    from calibration.psychometric.estimate import Estimate, proportion
    from calibration.psychometric.fit import Curve, PsychometricFit, fit_psychometric
    from calibration.psychometric.group import Group, group_estimate, mean_and_spread
    from calibration.psychometric.karber import spearman_karber
    from calibration.psychometric.magnitude import Magnitude, magnitude_exponent
    from calibration.psychometric.priors import RatePrior, WidthPrior
    from calibration.psychometric.signal_detection import Detectability, criterion, d_prime, detectability
    from calibration.psychometric.tables import Tables, psychometric_tables

_HOMES = {
    "signal_detection": ("Detectability", "criterion", "d_prime", "detectability"),
    "discrimination": (
        "ImpedanceDifferences",
        "OrderBias",
        "impedance_differences",
        "jnd",
        "order_bias",
        "pse",
        "weber_fraction",
    ),
    "estimate": ("Estimate", "proportion"),
    "fit": ("Curve", "PsychometricFit", "fit_psychometric"),
    "group": ("Group", "group_estimate", "mean_and_spread"),
    "magnitude": ("Magnitude", "magnitude_exponent"),
    "priors": ("RatePrior", "WidthPrior"),
    "karber": ("spearman_karber",),
    "tables": ("Tables", "psychometric_tables"),
}

__all__ = [
    "Curve",
    "Detectability",
    "Estimate",
    "Group",
    "ImpedanceDifferences",
    "Magnitude",
    "OrderBias",
    "PsychometricFit",
    "RatePrior",
    "Tables",
    "WidthPrior",
    "criterion",
    "d_prime",
    "detectability",
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

__getattr__, __dir__ = public_names(__name__, _HOMES)
