r"""Sampled derivatives and integrals of any real order.

The definition of Gruenwald and Letnikov, truncated after ``terms`` samples of the past (Machado et al. 2002, (5), (6)):

.. math::
    D^\alpha x(t) \approx \frac{1}{T^\alpha} \sum_{k=0}^{r} c_k\, x(t - k T), \qquad
    c_0 = 1, \quad c_k = c_{k-1} \, \frac{k - 1 - \alpha}{k}

with :math:`c_k = (-1)^k \binom{\alpha}{k}`. The sum begins with the present sample, ``k = 0``; the paper prints 1,
which is a different operator: without its first term a half derivative has a negative gain for slow signals. The
recurrence has no pole at integer orders, unlike the Gamma functions of the paper: order 1 gives the backward
difference, order -1 the sum, order 0 the signal itself.

Because of the truncation, the operator has the finite gain :math:`T^{-\alpha} \sum c_k` for constant signals, where a
true derivative has zero and a true integral infinite gain.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from haptics.errors import ConfigurationError
from haptics.jit import kernel

MAX_TERMS = 1_000_000
"""Maximum number of past samples."""

MAX_ORDER = 10.0
"""Maximum magnitude of an order."""


@kernel
def weighted_past(weights: NDArray[np.float64], past: NDArray[np.float64], now: int, x: float) -> float:
    """Store `x` at index `now` of the ring buffer `past`, (n,), and return the sum of c_k x(t - k T); (7).

    Both arrays have the same length. The caller increments `now` from sample to sample, modulo n.
    """
    past[now] = x
    total, count = 0.0, len(weights)
    for k in range(now + 1):
        total += weights[k] * past[now - k]
    for k in range(now + 1, count):
        total += weights[k] * past[now - k + count]
    return total


def weights(order: float, terms: int) -> NDArray[np.float64]:
    r"""Return the weights :math:`c_0 \dots c_r` of the operator, (terms + 1,), without the factor T^-order.

    Parameters
    ----------
    order : float
        Order of the derivative, from -10 to 10; negative for integrals.
    terms : int
        Number r of past samples in addition to the present one, from 0 to a million.

    Raises
    ------
    ConfigurationError
        If an argument is invalid.
    """
    if isinstance(order, bool) or not isinstance(order, int | float | np.number) or not abs(order) <= MAX_ORDER:
        raise ConfigurationError(f"order = {order!r}: must be a number from {-MAX_ORDER:g} to {MAX_ORDER:g}.")
    if isinstance(terms, bool) or not isinstance(terms, int | np.integer) or not 0 <= terms <= MAX_TERMS:
        raise ConfigurationError(f"terms = {terms!r}: must be a whole number from 0 to {MAX_TERMS}.")
    k = np.arange(1.0, terms + 1.0)
    return np.asarray(np.cumprod(np.concatenate(([1.0], (k - 1.0 - order) / k))), np.float64)
