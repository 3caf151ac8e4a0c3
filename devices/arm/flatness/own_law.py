"""A person's own smooth law: its value in plain Python, its derivatives by automatic differentiation.

::

    @own_friction
    def hull(velocity, level=12.0, steepness=80.0, drag=3.0):
        return level * math.tanh(steepness * velocity) + drag * velocity

    joint = ElasticJoint(hull(level=9.0), SmoothBacklash(...), ...)

The function is written as for `haptics.friction_law`: one function of arithmetic, conditions and functions of ``math``
that stands by itself. Here it is rewritten so that it computes with `devices.arm.flatness.jets` in place of numbers,
and compiled. It must be twice differentiable; conditions may only join pieces that meet smoothly.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from devices.arm.flatness.differentiation import compiled_parts
from devices.arm.flatness.friction import SmoothFriction
from devices.arm.flatness.law_kernels import OWN
from devices.arm.flatness.stiffness import Stiffness
from devices.arm.flatness.stiffness_kernels import OWN_TORQUE, OWN_TWIST
from haptics.errors import ConfigurationError
from haptics.friction.law_source import defaults, number, parse, source_of
from haptics.settings import unknown


class _Own:
    """What own friction and own stiffness laws share: a text, values of its parameters, compiled functions."""

    source: str
    values: tuple[tuple[str, float], ...]

    @classmethod
    def from_table(cls: type[_O], source: str, values: Mapping[str, Any]) -> _O:
        """Return the law of the function in `source`, with `values` in place of its default parameters."""
        function = parse(source)
        known = defaults(function)
        for name in values:
            if name not in known:
                raise unknown("setting", f"law.{name}", [f"law.{other}" for other in known])
        complete = {**known, **{name: number(value, f"law.{name}") for name, value in values.items()}}
        return cls(ast.unparse(function), tuple(complete.items()))  # type: ignore[call-arg]

    @property
    def numbers(self) -> tuple[float, ...]:
        """Values of the parameters."""
        return tuple(value for _name, value in self.values)

    @property
    def record(self) -> NDArray[Any]:
        """The law as kernels read it."""
        record: NDArray[Any] = super().record  # type: ignore[misc]
        record["addresses"] = compiled_parts(self.source)
        return record

    def _examine(self, evaluate: Callable[[NDArray[np.float64]], NDArray[np.float64]], largest: float) -> None:
        """Refuse a law whose value or derivatives are not finite, or whose value or slope jumps, up to `largest`."""
        arguments = _spread(largest)
        found = evaluate(arguments)
        self._require(np.isfinite(found).all(axis=1), arguments, "value and two derivatives must be finite")
        for order, what in ((0, "value"), (1, "slope")):
            at, jumps = _largest_jumps(lambda x, k=order: evaluate(x)[:, k : k + 2], arguments)  # type: ignore[misc]
            smooth = jumps <= 1e-6 * np.abs(found[:, order]).max()
            self._require(smooth, at, f"its {what} must not jump")

    def _require(self, right: Any, arguments: NDArray[np.float64], what: str) -> None:
        if not right.all():
            at = arguments[np.argmin(right)]
            raise ConfigurationError(f"law {parse(self.source).name}: {what}, but not so at {at:.4g}.")


_O = TypeVar("_O", bound=_Own)


def _spread(largest: float) -> NDArray[np.float64]:
    """Return arguments of both signs at which a law is examined when it is made."""
    sizes = np.geomspace(1e-9 * largest, largest, 400)
    return np.concatenate((-sizes[::-1], [0.0], sizes))


def _largest_jumps(
    evaluate: Callable[[NDArray[np.float64]], NDArray[np.float64]], arguments: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return where a function changes least as its slope says, between each two arguments, and by how much there.

    `evaluate` gives value and slope, (n, 2). Intervals are halved where that is worst: all that is left is a jump.
    """
    low, high = arguments[:-1], arguments[1:]
    below, above = evaluate(low), evaluate(high)

    def defect(a: Any, fa: Any, b: Any, fb: Any) -> Any:
        return np.abs(fb[:, 0] - fa[:, 0] - 0.5 * (b - a) * (fa[:, 1] + fb[:, 1]))

    for _ in range(60):
        middle = 0.5 * (low + high)
        value = evaluate(middle)
        left = defect(low, below, middle, value) >= defect(middle, value, high, above)
        low, below = np.where(left, low, middle), np.where(left[:, None], below, value)
        high, above = np.where(left, middle, high), np.where(left[:, None], value, above)
    return high, defect(low, below, high, above)


@dataclass(frozen=True)
class OwnFriction(_Own, SmoothFriction):
    """Friction torque [N m] over the velocity [rad/s] that somebody wrote; made by `own_friction` or from a file.

    Attributes
    ----------
    source : str
        Text of the function ``torque(velocity, *parameters)``.
    values : tuple of (str, float)
        Name and value of each parameter, in the order of the function.
    """

    kind: ClassVar[int] = OWN
    source: str = field(repr=False)
    values: tuple[tuple[str, float], ...] = ()

    def __post_init__(self) -> None:
        self._examine(self.derivatives, 100.0)


@dataclass(frozen=True)
class _OwnStiffness(_Own, Stiffness):
    twists: ClassVar[bool]
    largest: ClassVar[float]
    source: str = field(repr=False)
    values: tuple[tuple[str, float], ...] = ()

    def __post_init__(self) -> None:
        derivatives = self.twist_derivatives if self.twists else self.torque_derivatives
        self._examine(derivatives, self.largest)
        arguments = _spread(self.largest)
        self._require(derivatives(arguments)[:, 1] > 0.0, arguments, "it must rise everywhere")


@dataclass(frozen=True)
class OwnTorque(_OwnStiffness):
    """Torque in the gearbox [N m] over its twist [rad] that somebody wrote; made by `own_torque`. It must rise."""

    kind: ClassVar[int] = OWN_TORQUE
    twists: ClassVar[bool] = False
    largest: ClassVar[float] = 0.1


@dataclass(frozen=True)
class OwnTwist(_OwnStiffness):
    """Twist of the gearbox [rad] over the torque in it [N m] that somebody wrote; made by `own_twist`. It must rise."""

    kind: ClassVar[int] = OWN_TWIST
    twists: ClassVar[bool] = True
    largest: ClassVar[float] = 1e5


def _maker(cls: type[_O], function: Callable[..., float]) -> Callable[..., _O]:
    source = source_of(function)

    @functools.wraps(function)
    def make(**values: float) -> _O:
        return cls.from_table(source, values)

    make()
    return make


def own_friction(function: Callable[..., float]) -> Callable[..., OwnFriction]:
    """Turn ``torque(velocity, name=default, ...)`` into a law; the result takes values for its parameters by name.

    Raises
    ------
    ConfigurationError
        If the function cannot be a law or cannot be differentiated; the message says which part of it.
    """
    return _maker(OwnFriction, function)


def own_torque(function: Callable[..., float]) -> Callable[..., OwnTorque]:
    """Turn ``torque(twist, name=default, ...)`` into a stiffness law; see `own_friction`."""
    return _maker(OwnTorque, function)


def own_twist(function: Callable[..., float]) -> Callable[..., OwnTwist]:
    """Turn ``twist(torque, name=default, ...)`` into a stiffness law; see `own_friction`."""
    return _maker(OwnTwist, function)
