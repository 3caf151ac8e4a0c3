"""The elastic joint of Weigand et al. 2020 in 60 digits, differentiated by differences: no derivative is worked out."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal, getcontext, localcontext
from math import factorial

Number = Decimal
Function = Callable[[Decimal], Decimal]

DIGITS = 60
_STEP = Decimal(10) ** -18


def exact(value: float) -> Decimal:
    """Return a float as it is."""
    return Decimal(float(value))


def tanh(x: Decimal) -> Decimal:
    decay = (-2 * abs(x)).exp()
    return ((1 - decay) / (1 + decay)).copy_sign(x)


def derivatives(function: Function, at: Decimal) -> tuple[Decimal, Decimal, Decimal]:
    """Return value, first and second derivative by central differences, with an error of about 1e-24 of the scale."""
    low, middle, high = function(at - _STEP), function(at), function(at + _STEP)
    return middle, (high - low) / (2 * _STEP), (high - 2 * middle + low) / _STEP**2


def inverse(function: Function, value: Decimal, guess: float) -> Decimal:
    """Return the root of a rising function by the secant method, to all digits."""
    x0, x1 = exact(guess) * Decimal("0.999"), exact(guess)
    f0, f1 = function(x0) - value, function(x1) - value
    for _ in range(200):
        if f1 in {f0, 0}:
            break
        x0, x1, f0 = x1, x1 - f1 * (x1 - x0) / (f1 - f0), f1
        f1 = function(x1) - value
        if abs(x1 - x0) < abs(x1) * Decimal(10) ** (4 - getcontext().prec):
            break
    return x1


def motor(
    motion: list[float],
    inertia: float,
    load: list[float],
    friction: Function,
    twist: Function,
    ratio: float,
    rotor: float,
) -> tuple[float, float, float]:
    """Return motor angle, velocity and torque for a motion given by its derivatives at one instant; (2), (23), (1).

    `load` is M q'' + rest less M q'' of the motion, with its first and second derivative.
    """
    with localcontext() as context:
        context.prec = DIGITS
        series = [exact(value) / factorial(order) for order, value in enumerate(motion)]
        loads = [exact(value) / factorial(order) for order, value in enumerate(load)]
        M, u, J = exact(inertia), exact(ratio), exact(rotor)

        def polynomial(coefficients: list[Decimal], time: Decimal) -> Decimal:
            value = Decimal(0)
            for coefficient in reversed(coefficients):
                value = value * time + coefficient
            return value

        def link(time: Decimal, order: int) -> Decimal:
            falling = [series[k] * (factorial(k) // factorial(k - order)) for k in range(order, len(series))]
            return polynomial(falling, time)

        def torque(time: Decimal) -> Decimal:
            return M * link(time, 2) + polynomial(loads, time) + friction(link(time, 1))

        def angle(time: Decimal) -> Decimal:
            return u * (link(time, 0) + twist(torque(time)))

        value, first, second = derivatives(angle, Decimal(0))
        return float(value), float(first), float(J * second + torque(Decimal(0)) / u)
