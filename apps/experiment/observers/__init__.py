"""Simulated observers that answer an experiment for tests, rehearsals and planning.

They do not replace participants.

- `apps.experiment.observers.observer`: the interface.
- `apps.experiment.observers.settings`: the table ``observer``, and typical discrimination thresholds of each axis.
- `apps.experiment.observers.decisions`: signal detection, from a difference to a response.
- `apps.experiment.observers.level1`: answers based on the specified stimuli.
- `apps.experiment.observers.level2`: answers based on the recorded forces.
"""

from apps.experiment.observers.level1 import SimulatedObserver
from apps.experiment.observers.make import make_observer
from apps.experiment.observers.observer import Observer
from apps.experiment.observers.settings import ObserverSettings

__all__ = ["Observer", "ObserverSettings", "SimulatedObserver", "make_observer"]
