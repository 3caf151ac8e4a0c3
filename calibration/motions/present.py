"""Latest state of a device, for a procedure in which the handle is moved by hand."""

from __future__ import annotations

import numpy as np

from haptics.device import Vector
from haptics.trace import Trace


class Present:
    """Observer of a run.

    Attributes
    ----------
    trace : Trace or None
        Trace of the present or latest run.
    """

    def __init__(self) -> None:
        self.trace: Trace | None = None

    @property
    def position(self) -> Vector:
        """Position of the end effector at the latest tick, (2,) [m]; nan before the first."""
        if self.trace is None or not self.trace.count:
            return np.full(2, np.nan)
        return np.array(self.trace.since(self.trace.count - 1)["position"][-1])
