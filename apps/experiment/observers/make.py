"""Construction of observers from the table of an experiment file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.random import SeedSequence

from apps.experiment.observers.level1 import SimulatedObserver
from apps.experiment.observers.level2 import FeelingObserver
from apps.experiment.observers.settings import ObserverSettings
from haptics.settings import build


def make_observer(table: Mapping[str, Any], *, seed: SeedSequence) -> SimulatedObserver:
    """Return the simulated observer described by a table.

    Parameters
    ----------
    table : mapping
        Table ``observer`` of an experiment file, empty for the typical observer.
    seed : SeedSequence
        Seed of the observer, the same in all sessions: `apps.experiment.procedures.person_seed`.

    Raises
    ------
    ConfigurationError
        If the table is invalid.
    """
    settings = build(ObserverSettings, table, "observer")
    kind = FeelingObserver if settings.level == 2 else SimulatedObserver
    return kind(settings, np.random.default_rng(seed))
