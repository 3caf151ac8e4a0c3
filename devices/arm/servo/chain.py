r"""A reference with four derivatives that follows a command: four integrators, steered.

Commands come at the rate of ticks, and straight lines lead from each to the next. Their speed jumps at every tick,
which a fourth derivative would not survive: so the command is averaged over a tick first. Of the mean c the speed
changes steadily and the acceleration in steps. The chain

.. math::
    q^{(4)} = -4 b \dddot q - 6 b^2 (\ddot q - \ddot c) - 4 b^3 (\dot q - \dot c) - b^4 (q - c)

has all four poles at -b and lags behind neither a steady speed nor a steady acceleration. The reference is the chain
half a tick ahead, :math:`q + h \dot q`: what the mean has lost. While the acceleration is steady, what is between chain
and mean obeys a linear equation without input, whose solution over a period is exact:
:math:`e(t + T) = e^{-bT} \sum_{k<4} (N T)^k/k!\; e(t)` with the nilpotent :math:`N = A + b I`. It therefore cannot
become unstable, however long the period is.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from haptics.errors import ConfigurationError
from haptics.jit import inlined_kernel

MAX_WINDOW = 100
"""Most periods of a servo in a tick."""

CHAIN_FIELDS: list[tuple[Any, ...]] = [
    ("transition", "<f8", (4, 4)),
    ("steering", "<f8", (4,)),
    ("rest", "<f8", (4,)),
    ("window", "<i8"),
    ("lead", "<f8"),
]
"""The chain as kernels read it: what a period does to the error and its derivatives, what the snap is made of, and what
counts as no error any more; periods in a tick, and how far the reference is ahead of the chain [s]."""

STATE_FIELDS: list[tuple[Any, ...]] = [
    ("commands", "<f8", (MAX_WINDOW,)),
    ("newest", "<i8"),
    ("average", "<f8"),
    ("rate", "<f8"),
    ("lag", "<f8"),
    ("chain", "<f8", (3,)),
]
"""What the chain of one joint remembers: the commands of a tick [rad], their mean and its speed; how far the chain is
ahead of the mean [rad], and its velocity, acceleration and jerk."""

_ROUNDING = 1e-15


def fill_chain(record: NDArray[Any], frequency: float, period: float, tick: float) -> None:
    """Write the chain into a record with `CHAIN_FIELDS`.

    Parameters
    ----------
    record : (1,) structured array
        What to write to.
    frequency : float
        Its poles lie at -2 pi `frequency` [Hz].
    period, tick : float
        Between two steps of the servo, and between two commands [s].

    Raises
    ------
    ConfigurationError
        If there are too many periods in a tick.
    """
    window = max(round(tick / period), 1)
    if window > MAX_WINDOW:
        raise ConfigurationError(
            f"device.servo.period = {period!r}: must be at least {tick / MAX_WINDOW:g} s for a tick of {tick:g} s."
        )
    b = 2.0 * math.pi * frequency
    steering = -np.array([b**4, 4.0 * b**3, 6.0 * b**2, 4.0 * b])
    nilpotent = b * np.eye(4) + np.eye(4, k=1)
    nilpotent[3] += steering
    terms = [np.linalg.matrix_power(period * nilpotent, k) / math.factorial(k) for k in range(4)]
    record["transition"] = math.exp(-b * period) * sum(terms)
    record["steering"] = steering
    record["rest"] = _ROUNDING * b ** np.arange(4.0)
    record["window"], record["lead"] = window, 0.5 * window * period


@inlined_kernel
def _average(s: Any, a: Any, command: Any) -> Any:
    """Take the next command and return the mean over a tick; of commands that are all the same it is just that."""
    a.newest = a.newest + 1 if a.newest + 1 < s.window else 0
    a.commands[a.newest] = command
    total = 0.0
    for k in range(s.window):
        total += a.commands[k] - command
    return command + total / s.window


@inlined_kernel
def follow(s: Any, a: Any, r: Any, command: Any, period: Any) -> None:
    """Advance the reference of joint `a` by a period [s], to the end of which the `command` has moved [rad], into `r`.

    `s` has `CHAIN_FIELDS`, `a` has `STATE_FIELDS`, `r` the fields of a motion. Once the command rests and the error is
    down to rounding the reference is the command: nothing creeps.
    """
    mean = _average(s, a, command)
    v = (mean - a.average) / period
    middle, acceleration = 0.5 * (mean + a.average), (v - a.rate) / period
    e0, e1, e2, e3 = a.lag, a.chain[0] - a.rate, a.chain[1] - acceleration, a.chain[2]
    a.average, a.rate = mean, v
    p = s.transition
    n0 = p[0, 0] * e0 + p[0, 1] * e1 + p[0, 2] * e2 + p[0, 3] * e3
    n1 = p[1, 0] * e0 + p[1, 1] * e1 + p[1, 2] * e2 + p[1, 3] * e3
    n2 = p[2, 0] * e0 + p[2, 1] * e1 + p[2, 2] * e2 + p[2, 3] * e3
    n3 = p[3, 0] * e0 + p[3, 1] * e1 + p[3, 2] * e2 + p[3, 3] * e3
    z = s.rest
    resting = v == 0.0 and acceleration == 0.0
    if resting and abs(n0) < z[0] and abs(n1) < z[1] and abs(n2) < z[2] and abs(n3) < z[3]:
        n0, n1, n2, n3 = 0.0, 0.0, 0.0, 0.0
    snap = s.steering[0] * n0 + s.steering[1] * n1 + s.steering[2] * n2 + s.steering[3] * n3
    q1, q2, h = v + n1, acceleration + n2, s.lead
    a.lag, a.chain[0], a.chain[1], a.chain[2] = n0, q1, q2, n3
    r.position, r.velocity = middle + n0 + h * q1, q1 + h * q2
    r.acceleration, r.jerk, r.snap = q2 + h * n3, n3 + h * snap, snap
