"""Interface of the simulated observers."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from apps.experiment.trial import Answer, TrialView


class Observer(Protocol):
    """Simulated observer that answers trials.

    An answer depends only on the trial and on the given random numbers.
    """

    def answer(self, trial: TrialView, rng: np.random.Generator) -> Answer:
        """Return the answer to a trial, with all random numbers from `rng`."""

    def truth(self, axis: str, reference: float) -> dict[str, Any]:
        """Return the parameters that an analysis should recover for an axis and a reference, as JSON."""
