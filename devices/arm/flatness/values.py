"""Validation of numeric array arguments."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from haptics.errors import ConfigurationError

Values = NDArray[np.float64]
"""Float array."""


def finite(values: ArrayLike, what: str) -> Values:
    """Return `values` as a float array; raise `ConfigurationError` if they are not finite numbers."""
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        array = np.array(np.nan)
    if not np.isfinite(array).all():
        shown = f"of shape {array.shape}" if array.ndim else f"= {values!r}"
        raise ConfigurationError(f"{what} {shown}: must be finite numbers.")
    return array
