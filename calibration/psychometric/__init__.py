"""Psychometrics: thresholds, Weber fractions, d' and exponents from responses, with intervals.

- `calibration.psychometric.shapes`: psychometric functions; `priors`: prior distributions.
- `calibration.psychometric.fit`: fit of responses; `tables`: repeated fits at the same levels.
- `calibration.psychometric.discrimination`: differences, equality, Weber fractions, impedances, order bias.
- `calibration.psychometric.discrimination`: d' and criterion. `karber`: model-free check.
- `calibration.psychometric.group`: Stevens' exponent. `group`: estimates over participants.
"""

from haptics.lazy import public_names

__all__, __getattr__, __dir__ = public_names(__name__, __file__)
