"""Psychometrics: thresholds, Weber fractions, d' and exponents from responses, with intervals.

- `calibration.psychometric.shapes`: psychometric functions; `posterior`: priors and posterior on a grid.
- `calibration.psychometric.fit`: fit of responses, repeated fits at the same levels, model-free check.
- `calibration.psychometric.drift`: thresholds that change slowly within a session.
- `calibration.psychometric.discrimination`: differences, equality, Weber fractions, impedances, order bias, d'.
- `calibration.psychometric.group`: Stevens' exponent, and estimates over participants.
"""

from haptics.lazy import public_names

__all__, __getattr__, __dir__ = public_names(__name__, __file__)
