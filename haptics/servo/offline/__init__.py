"""Whole runs without a clock, from Python: one, many in a row, or many side by side, each reduced to a few numbers.

::

    def joystick(clock):
        return create_device("virtual-joystick", {"seed": 3}, clock=clock)

    run = run_offline(joystick, MasslessImpedance(Coulomb(4.0), 2000.0, 2.0), 10.0)
    run.metrics.stick_fraction

A device with a port, as the virtual ones, runs without the interpreter: threads then use all processors. What is kept
of a run is up to a `Reduction`, which sees every row in the compiled loop; `run_all` makes many runs in one call of it.
"""

from haptics.servo.offline.batch import Failed, Reduced, run_all
from haptics.servo.offline.metrics import Metrics
from haptics.servo.offline.reduction import REDUCTION_FIELDS, Reduction, row_of
from haptics.servo.offline.runs import OfflineJob, OfflineRun, run_many, run_offline

__all__ = [
    "REDUCTION_FIELDS",
    "Failed",
    "Metrics",
    "OfflineJob",
    "OfflineRun",
    "Reduced",
    "Reduction",
    "row_of",
    "run_all",
    "run_many",
    "run_offline",
]
