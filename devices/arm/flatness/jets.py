"""Numbers with their first two derivatives: what automatic differentiation of a person's own law computes with.

A jet is a triple (value, first, second derivative) over one variable. Every rule below is the chain rule or the product
rule, written once.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from haptics.jit import inlined_kernel

Jet = tuple[float, float, float]


@inlined_kernel
def chained(x: Jet, f: float, f1: float, f2: float) -> Jet:
    """Return f(x) for a function with the derivatives f1 and f2 at the value of x."""
    return f, f1 * x[1], f2 * x[1] * x[1] + f1 * x[2]


@inlined_kernel
def constant(value: float) -> Jet:
    """Return a number that does not change."""
    return float(value), 0.0, 0.0


@inlined_kernel
def variable(value: float) -> Jet:
    """Return the variable itself."""
    return float(value), 1.0, 0.0


@inlined_kernel
def add(x: Jet, y: Jet) -> Jet:
    """Return x + y."""
    return x[0] + y[0], x[1] + y[1], x[2] + y[2]


@inlined_kernel
def sub(x: Jet, y: Jet) -> Jet:
    """Return x - y."""
    return x[0] - y[0], x[1] - y[1], x[2] - y[2]


@inlined_kernel
def mul(x: Jet, y: Jet) -> Jet:
    """Return x y."""
    return x[0] * y[0], x[1] * y[0] + x[0] * y[1], x[2] * y[0] + 2.0 * x[1] * y[1] + x[0] * y[2]


@inlined_kernel
def div(x: Jet, y: Jet) -> Jet:
    """Return x / y."""
    r = 1.0 / y[0]
    return mul(x, chained(y, r, -r * r, 2.0 * r * r * r))


@inlined_kernel
def power(x: Jet, y: Jet) -> Jet:
    """Return x to the power of y; of a negative x for a y that does not change only."""
    if y[1] == 0.0 and y[2] == 0.0:
        n = y[0]
        first = n * x[0] ** (n - 1.0) if n != 0.0 else 0.0
        second = n * (n - 1.0) * x[0] ** (n - 2.0) if n not in (0.0, 1.0) else 0.0
        return chained(x, x[0] ** n, first, second)
    return exp(mul(y, log(x)))


@inlined_kernel
def negative(x: Jet) -> Jet:
    """Return -x."""
    return -x[0], -x[1], -x[2]


@inlined_kernel
def absolute(x: Jet) -> Jet:
    """Return |x|; its kink at 0 is the caller's business."""
    return negative(x) if x[0] < 0.0 else x


@inlined_kernel
def smaller(x: Jet, y: Jet) -> Jet:
    """Return the smaller of two."""
    return y if y[0] < x[0] else x


@inlined_kernel
def larger(x: Jet, y: Jet) -> Jet:
    """Return the larger of two."""
    return y if y[0] > x[0] else x


@inlined_kernel
def signed(x: Jet, y: Jet) -> Jet:
    """Return x with the sign of y."""
    return x if math.copysign(1.0, x[0]) == math.copysign(1.0, y[0]) else negative(x)


@inlined_kernel
def exp(x: Jet) -> Jet:
    """Return e to the power of x, at most 1e100: what is divided by it vanishes, and its square is still a number."""
    f = math.exp(min(x[0], 230.0))
    return chained(x, f, f, f)


@inlined_kernel
def expm1(x: Jet) -> Jet:
    """Return e to the power of x, less 1."""
    f = math.exp(x[0])
    return chained(x, math.expm1(x[0]), f, f)


@inlined_kernel
def log(x: Jet) -> Jet:
    """Return the natural logarithm."""
    r = 1.0 / x[0]
    return chained(x, math.log(x[0]), r, -r * r)


@inlined_kernel
def log1p(x: Jet) -> Jet:
    """Return the natural logarithm of 1 + x."""
    r = 1.0 / (1.0 + x[0])
    return chained(x, math.log1p(x[0]), r, -r * r)


@inlined_kernel
def sqrt(x: Jet) -> Jet:
    """Return the square root."""
    f = math.sqrt(x[0])
    return chained(x, f, 0.5 / f, -0.25 / (f * f * f))


@inlined_kernel
def hypot(x: Jet, y: Jet) -> Jet:
    """Return the square root of x^2 + y^2."""
    return sqrt(add(mul(x, x), mul(y, y)))


@inlined_kernel
def sin(x: Jet) -> Jet:
    """Return the sine."""
    f = math.sin(x[0])
    return chained(x, f, math.cos(x[0]), -f)


@inlined_kernel
def cos(x: Jet) -> Jet:
    """Return the cosine."""
    f = math.cos(x[0])
    return chained(x, f, -math.sin(x[0]), -f)


@inlined_kernel
def tan(x: Jet) -> Jet:
    """Return the tangent."""
    f = math.tan(x[0])
    slope = 1.0 + f * f
    return chained(x, f, slope, 2.0 * f * slope)


@inlined_kernel
def atan(x: Jet) -> Jet:
    """Return the inverse tangent."""
    slope = 1.0 / (1.0 + x[0] * x[0])
    return chained(x, math.atan(x[0]), slope, -2.0 * x[0] * slope * slope)


@inlined_kernel
def sinh(x: Jet) -> Jet:
    """Return the hyperbolic sine."""
    f = math.sinh(x[0])
    return chained(x, f, math.cosh(x[0]), f)


@inlined_kernel
def cosh(x: Jet) -> Jet:
    """Return the hyperbolic cosine."""
    f = math.cosh(x[0])
    return chained(x, f, math.sinh(x[0]), f)


@inlined_kernel
def tanh(x: Jet) -> Jet:
    """Return the hyperbolic tangent; its derivatives keep their digits where it saturates."""
    f = math.tanh(x[0])
    decay = math.exp(-2.0 * abs(x[0]))
    slope = 4.0 * decay / ((1.0 + decay) * (1.0 + decay))
    return chained(x, f, slope, -2.0 * f * slope)


@inlined_kernel
def erf(x: Jet) -> Jet:
    """Return the error function."""
    slope = 2.0 / math.sqrt(math.pi) * math.exp(-x[0] * x[0])
    return chained(x, math.erf(x[0]), slope, -2.0 * x[0] * slope)


def rules() -> dict[str, Callable[..., Jet]]:
    """Return every rule by its name."""
    return dict(_RULES)


_RULES: dict[str, Callable[..., Jet]] = {
    rule.__name__: rule
    for rule in (
        *(constant, variable, add, sub, mul, div, power, negative, absolute, smaller, larger, signed),
        *(exp, expm1, log, log1p, sqrt, hypot, sin, cos, tan, atan, sinh, cosh, tanh, erf),
    )
}
