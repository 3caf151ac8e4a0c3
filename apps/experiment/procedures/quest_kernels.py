"""Compiled parts of QUEST+: probabilities, expected information of a trial, and Bayesian update."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from calibration.psychometric.shapes import clamped, sigmoid
from haptics.jit import kernel

Array = NDArray[np.float64]

_NEGLIGIBLE = 1e-15
"""Probability below which cells are skipped. In total they change the information by less than 1e-9."""


@kernel
def probabilities(right: Array, shape: int, positions: Array, parameters: Array) -> None:
    """Compute the probability of a correct answer, shape (cells, levels), into `right`.

    `positions` (levels,) are ln(level); `parameters` (cells, 4) are ln(threshold), width, lapse and guess.
    """
    for cell in range(len(parameters)):
        threshold, width, lapse, guess = parameters[cell]
        for place in range(len(positions)):
            f = sigmoid(shape, (positions[place] - threshold) / width)
            right[cell, place] = clamped(guess + (1.0 - guess - lapse) * f)


@kernel
def entropy(p: float) -> float:
    """Return the entropy [nat] of an answer that is correct with probability p."""
    return -p * math.log(p) - (1.0 - p) * math.log1p(-p)


@kernel
def entropies(right: Array, entropy_of: Array) -> None:
    """Compute the entropy of an answer for each probability, both of shape (cells, levels)."""
    for cell in range(right.shape[0]):
        for place in range(right.shape[1]):
            entropy_of[cell, place] = entropy(right[cell, place])


@kernel
def information(gain: Array, mean: Array, posterior: Array, right: Array, entropy_of: Array) -> None:
    """Compute the expected information about the parameters at each level, shape (levels,) [nat].

    The mutual information H(E[p]) - E[H(p)] equals the expected decrease of the posterior entropy in Watson (2017), and
    needs no logarithm in the sum over parameters. Improbable cells are skipped. The inner loop is over levels, so that
    the order of summation over parameters does not depend on vectorization by the compiler.
    """
    gain[:] = 0.0
    mean[:] = 0.0
    for cell in range(len(posterior)):
        weight = posterior[cell]
        if weight < _NEGLIGIBLE:
            continue
        for place in range(len(gain)):
            mean[place] += weight * right[cell, place]
            gain[place] -= weight * entropy_of[cell, place]
    for place in range(len(gain)):
        gain[place] += entropy(clamped(mean[place]))


@kernel
def update(posterior: Array, column: Array, correct: bool) -> None:
    """Update the posterior (cells,) with an answer, whose probability is `column` if correct."""
    total = 0.0
    for cell in range(len(posterior)):
        posterior[cell] *= column[cell] if correct else 1.0 - column[cell]
        total += posterior[cell]
    for cell in range(len(posterior)):
        posterior[cell] /= total
