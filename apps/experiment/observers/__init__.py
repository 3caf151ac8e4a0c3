"""Observers in software, who answer an experiment for tests, rehearsals and planning. They never stand for people.

- `apps.experiment.observers.observer`: the protocol.
"""

from apps.experiment.observers.observer import Observer

__all__ = ["Observer"]
