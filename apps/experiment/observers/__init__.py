"""Observers in software, who answer an experiment for tests, rehearsals and planning. They never stand for people.

- `apps.experiment.observers.observer`: the protocol.
- `apps.experiment.observers.settings`: the table ``observer``, and how finely each axis is usually told apart.
- `apps.experiment.observers.decisions`: signal detection, from a difference to a word.
- `apps.experiment.observers.level1`: answers by what was asked.
- `apps.experiment.observers.level2`: answers by the force that was recorded.
"""

from apps.experiment.observers.level1 import SimulatedObserver
from apps.experiment.observers.make import make_observer
from apps.experiment.observers.observer import Observer
from apps.experiment.observers.settings import ObserverSettings

__all__ = ["Observer", "ObserverSettings", "SimulatedObserver", "make_observer"]
