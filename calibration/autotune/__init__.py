"""Tuning of a device that takes forces: what its handle is, what suits it, and where it really begins to swing."""

from calibration.autotune.boundary import Boundary
from calibration.autotune.procedure import Tuned, TunedAxis, require_forces, tune
from calibration.autotune.settings import TABLE, Autotune

__all__ = ["TABLE", "Autotune", "Boundary", "Tuned", "TunedAxis", "require_forces", "tune"]
