"""Observers by the table of an experiment file."""

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
    """Return a simulated person.

    Parameters
    ----------
    table : mapping
        The table ``observer`` of an experiment file; empty for the usual person.
    seed : SeedSequence
        Of the person, the same in all sessions: `apps.experiment.procedures.person_seed`.

    Raises
    ------
    ConfigurationError
        If the table is wrong.
    """
    settings = build(ObserverSettings, table, "observer")
    kind = FeelingObserver if settings.level == 2 else SimulatedObserver
    return kind(settings, np.random.default_rng(seed))
