r"""Derivatives and integrals of any real order, sample by sample.

The definition of Gruenwald and Letnikov, cut off after ``terms`` samples of the past (Machado et al. 2002, (5), (6)):

.. math::
    D^\alpha x(t) \approx \frac{1}{T^\alpha} \sum_{k=0}^{r} c_k\, x(t - k T), \qquad
    c_0 = 1, \quad c_k = c_{k-1} \, \frac{k - 1 - \alpha}{k}

with :math:`c_k = (-1)^k \binom{\alpha}{k}`. The sum begins with the present sample, ``k = 0``; printed in the paper is
1, which is another operator: without its first term a half derivative has a negative gain for slow signals. The
recurrence has no pole at whole orders, where the Gamma functions of the paper do: order 1 gives the backward
difference, order -1 the sum, order 0 the signal itself.

What is cut off is the memory: the operator has the finite gain :math:`T^{-\alpha} \sum c_k` for constant signals, also
where a true integral or derivative would have none or zero.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from haptics.errors import ConfigurationError
from haptics.jit import kernel

MAX_TERMS = 1_000_000
"""Longest memory, in samples."""

MAX_ORDER = 10.0
"""Largest magnitude of an order."""


@kernel
def fill_weights(order: float, result: NDArray[np.float64]) -> None:
    """Fill `result`, (r + 1,), with c_0 .. c_r of the `order`; (5)."""
    c = 1.0
    for k in range(len(result)):
        if k > 0:
            c *= (k - 1.0 - order) / k
        result[k] = c


@kernel
def weighted_past(weights: NDArray[np.float64], past: NDArray[np.float64], now: int, x: float) -> float:
    """Store `x` at place `now` of the ring `past`, (n,), and return the sum of c_k x(t - k T); (7).

    Both arrays have the same length. The caller moves `now` on by one from sample to sample, and from the end to 0.
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
        Of the derivative, from -10 to 10; negative for integrals.
    terms : int
        r, how many samples of the past count besides the present one, from 0 to a million.

    Raises
    ------
    ConfigurationError
        If one of them is not allowed.
    """
    if isinstance(order, bool) or not isinstance(order, int | float | np.number) or not abs(order) <= MAX_ORDER:
        raise ConfigurationError(f"order = {order!r}: must be a number from {-MAX_ORDER:g} to {MAX_ORDER:g}.")
    if isinstance(terms, bool) or not isinstance(terms, int | np.integer) or not 0 <= terms <= MAX_TERMS:
        raise ConfigurationError(f"terms = {terms!r}: must be a whole number from 0 to {MAX_TERMS}.")
    result = np.empty(int(terms) + 1)
    fill_weights(float(order), result)
    return result
