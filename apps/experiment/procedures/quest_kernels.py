"""Compiled parts of QUEST+: probabilities of all levels and parameters, what a trial is worth, what an answer says."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from calibration.psychometric.kernels import clamped, sigmoid
from haptics.jit import kernel

Array = NDArray[np.float64]

_NEGLIGIBLE = 1e-15
"""Parameters less probable than this change what a trial is worth by less than 1e-9, all together."""


@kernel
def probabilities(right: Array, shape: int, positions: Array, parameters: Array) -> None:
    """Fill the probability of a correct answer (cells, levels).

    `positions` (levels,) are ln(level); `parameters` (cells, 4) are ln(threshold), width, lapse and guess.
    """
    for cell in range(len(parameters)):
        threshold, width, lapse, guess = parameters[cell]
        for place in range(len(positions)):
            f = sigmoid(shape, (positions[place] - threshold) / width)
            right[cell, place] = clamped(guess + (1.0 - guess - lapse) * f)


@kernel
def entropy(p: float) -> float:
    """Return the entropy of an answer that is correct with probability p [nat]."""
    return -p * math.log(p) - (1.0 - p) * math.log1p(-p)


@kernel
def entropies(right: Array, entropy_of: Array) -> None:
    """Fill the entropy of an answer for each probability, both (cells, levels)."""
    for cell in range(right.shape[0]):
        for place in range(right.shape[1]):
            entropy_of[cell, place] = entropy(right[cell, place])


@kernel
def information(gain: Array, mean: Array, posterior: Array, right: Array, entropy_of: Array) -> None:
    """Fill what an answer at each level is expected to tell about the parameters (levels,) [nat].

    The mutual information H(E[p]) - E[H(p)] equals the fall of the entropy of the posterior that Watson (2017) expects
    of a trial, and needs no logarithm in the sum over parameters. What is improbable is left out. The levels run
    fastest, so that the sum over parameters keeps its order however the compiler uses the processor's vectors.
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
    """Multiply the posterior (cells,) by the probability of an answer (`column` if correct) and normalise it."""
    total = 0.0
    for cell in range(len(posterior)):
        posterior[cell] *= column[cell] if correct else 1.0 - column[cell]
        total += posterior[cell]
    for cell in range(len(posterior)):
        posterior[cell] /= total
