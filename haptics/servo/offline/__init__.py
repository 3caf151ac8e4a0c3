"""Runs in simulated time: a single run, a sequence, or parallel runs, each reduced to few numbers.

::

    def joystick(clock):
        return create_device("virtual-joystick", {"seed": 3}, clock=clock)

    run = run_offline(joystick, MasslessImpedance(Coulomb(4.0), 2000.0, 2.0), 10.0)
    run.metrics.stick_fraction

Devices with a port, such as the virtual ones, run without the interpreter, so that threads can use all processors. A
`Reduction` processes every row in the compiled loop and determines the stored result. `run_all` executes many runs in
one call.
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
