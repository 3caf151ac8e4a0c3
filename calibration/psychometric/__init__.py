"""Psychometrics: thresholds, Weber fractions, d' and exponents from responses, with intervals.

- `calibration.psychometric.shapes`: psychometric functions; `priors`: prior distributions.
- `calibration.psychometric.fit`: fit of responses; `tables`: repeated fits at the same levels.
- `calibration.psychometric.discrimination`: differences, equality, Weber fractions, impedances, order bias.
- `calibration.psychometric.discrimination`: d' and criterion. `karber`: model-free check.
- `calibration.psychometric.group`: Stevens' exponent. `group`: estimates over participants.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from haptics.lazy import public_names

if TYPE_CHECKING:
    from calibration.psychometric.discrimination import (
        Detectability,
        ImpedanceDifferences,
        OrderBias,
        criterion,
        d_prime,
        detectability,
        impedance_differences,
        jnd,
        order_bias,
        pse,
        weber_fraction,
    )
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

_HOMES = {
    "discrimination": (
        "Detectability",
        "ImpedanceDifferences",
        "OrderBias",
        "criterion",
        "d_prime",
        "detectability",
        "impedance_differences",
        "jnd",
        "order_bias",
        "pse",
        "weber_fraction",
    ),
    "estimate": ("Estimate", "proportion"),
    "fit": ("Curve", "PsychometricFit", "Tables", "fit_psychometric", "psychometric_tables", "spearman_karber"),
    "group": ("Group", "Magnitude", "group_estimate", "magnitude_exponent", "mean_and_spread"),
    "posterior": ("RatePrior", "WidthPrior"),
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
