"""Detection of samples at a limit of the sensor, and their exclusion from fits.

A clipped torque is too small, and fits that ignore it underestimate friction. If only the clipped samples were
excluded, samples with small noise would be favoured. Therefore all samples are excluded at which the limit is expected
within the noise, by a fit to the others. This criterion does not depend on the noise of the sample itself.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from calibration.data.saturation import Saturation
from calibration.fitting.regression import spread
from calibration.friction.fit import fit_law
from calibration.friction.samples import LEAST, Samples
from calibration.friction.settings import FitSettings
from haptics.errors import ConfigurationError

Array = NDArray[np.float64]

_ROUNDS, _NOISE = 4, 3.0
"""Maximum number of fits; half width of the excluded interval in standard deviations."""
_MODEL = "stribeck-asymmetric"


def without_saturated(samples: Samples, effort: Array, limits: Saturation, settings: FitSettings) -> Samples:
    """Mark samples at a limit of the sensor, or expected there, as saturated.

    Parameters
    ----------
    samples : Samples
        Samples of one recording.
    effort : (n,) float array
        Measured torque or force.
    limits : Saturation
        Limits of `effort`.
    settings : FitSettings

    Raises
    ------
    ConfigurationError
        If too few samples remain in either direction.
    """
    at_limit = (effort <= limits.low) | (effort >= limits.high)
    other = samples.friction + effort  # inertia and load, subtracted with their sign
    message = (
        f"the torque or force is clipped at {limits.values} in {100.0 * limits.share:.0f} % of the samples, and beyond "
        "the noise around that limit too few are left in one direction: use a sensor of a larger range, or move more "
        "slowly"
    )
    found = replace(samples, saturated=at_limit)
    for _ in range(_ROUNDS):
        try:
            law = fit_law(found, _MODEL, replace(settings, fit_inertia=False, loss="huber"))
        except ConfigurationError as reason:
            raise ConfigurationError(message) from reason
        error = law.error(samples)
        noise = _NOISE * spread(error[found.faster_than(0.0)])
        expected = other - (samples.friction - error)
        near = at_limit | (expected <= limits.low + noise) | (expected >= limits.high - noise)
        found, last = replace(samples, saturated=near), found
        if not found.shows_law or int((found.inner & ~near).sum()) < LEAST:
            raise ConfigurationError(message)
        if last.saturated is not None and np.array_equal(near, last.saturated):
            break
    return found
