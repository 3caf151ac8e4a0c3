"""What a device showed last, for a procedure that asks a person to move it."""

from __future__ import annotations

import numpy as np

from haptics.device import Vector
from haptics.trace import Trace


class Present:
    """Looks at a run from outside.

    Attributes
    ----------
    trace : Trace or None
        Of the run that is under way, or was last.
    """

    def __init__(self) -> None:
        self.trace: Trace | None = None

    @property
    def position(self) -> Vector:
        """Where the end effector was at the latest tick, (2,) [m]; nan before the first."""
        if self.trace is None or not self.trace.count:
            return np.full(2, np.nan)
        return np.array(self.trace.since(self.trace.count - 1)["position"][-1])
