"""The protocol of an observer: it answers trials in place of a person."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from apps.experiment.trial import Answer, TrialView


class Observer(Protocol):
    """Answers trials. What it does is decided by the trial and by the random numbers that it is given."""

    def answer(self, trial: TrialView, rng: np.random.Generator) -> Answer:
        """Return the answer to a trial; every random number comes from `rng`."""

    def truth(self, axis: str, reference: float) -> dict[str, Any]:
        """Return what an analysis should find, in plain JSON, for an axis and a reference in its units."""
