"""Tuning of a force-controlled device: identified handle, suggested coupling, stability limit."""

from calibration.autotune.boundary import Boundary
from calibration.autotune.procedure import Tuned, TunedAxis, Tuning
from calibration.autotune.pushing import TABLE, Autotune

__all__ = ["TABLE", "Autotune", "Boundary", "Tuned", "TunedAxis", "Tuning"]
