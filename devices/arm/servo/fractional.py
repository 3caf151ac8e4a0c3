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

from haptics.jit import kernel

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
        Order of the derivative, up to `MAX_ORDER`; negative for integrals.
    terms : int
        Number r of past samples in addition to the present one.
    """
    k = np.arange(1.0, terms + 1.0)
    return np.asarray(np.cumprod(np.concatenate(([1.0], (k - 1.0 - order) / k))), np.float64)
