"""A person's own friction law: a level function in plain Python, compiled, exact, and at home in every element.

::

    @friction_law
    def rubber(speed, static=4.0, kinetic=3.0, width=0.1):
        return kinetic + (static - kinetic) / (1.0 + speed / width)

    element = MasslessImpedance(rubber(static=5.0), stiffness=6000.0, damping=10.0)

The function is kept as text. That is what lets it travel to the servo process and into a recording, and be compiled
there again. For the same reason it has to stand by itself: arithmetic and functions of ``math``, nothing from outside,
so that reading somebody's recording cannot run somebody's program.
"""

from __future__ import annotations

import ast
import functools
import inspect
import math
import textwrap
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from haptics._jit import compile_level
from haptics.errors import ConfigurationError
from haptics.friction_kernels import CUSTOM, LAW, LAW_NUMBERS, levels
from haptics.law import Law
from haptics.settings import unknown

MOST_PARAMETERS = LAW_NUMBERS - 2

TOP_SPEED = 100.0
"""Speed up to which a level is examined when the law is made [m/s]."""

_SPEEDS = np.concatenate(([0.0], np.geomspace(1e-7, TOP_SPEED, 6000)))

_BUILTINS = {"abs": abs, "min": min, "max": max, "float": float, "int": int, "range": range}
_MATH = frozenset(
    "acos asin atan atan2 atanh acosh asinh ceil copysign cos cosh e erf erfc exp expm1 fabs floor hypot inf log log10 "
    "log1p log2 pi pow sin sinh sqrt tan tanh".split()
)
_NODES = (
    *(ast.FunctionDef, ast.arguments, ast.arg, ast.Return, ast.Assign, ast.AugAssign, ast.AnnAssign, ast.If, ast.For),
    *(ast.IfExp, ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.Call, ast.Name, ast.Constant, ast.Attribute),
    *(ast.Tuple, ast.Expr, ast.operator, ast.unaryop, ast.boolop, ast.cmpop, ast.expr_context),
)


@dataclass(frozen=True)
class CustomLaw(Law):
    """A friction law whose level is a function that somebody wrote; made by `friction_law` or from a file.

    Solved by a bracketed search to the last digits. Where condition (15) fails, the outermost solution is looked for
    at 512 speeds.

    Attributes
    ----------
    source : str
        Text of the function ``level(speed, *parameters) -> level``, in m/s and N.
    values : tuple of (str, float)
        Name and value of each parameter.

    Raises
    ------
    ConfigurationError
        If the function uses what it may not, cannot be compiled, or gives a level that is negative or not finite
        anywhere between 0 and `TOP_SPEED`.
    """

    kind: ClassVar[int] = CUSTOM
    name: ClassVar[str] = "custom"
    source: str = field(repr=False)
    values: tuple[tuple[str, float], ...] = ()

    @classmethod
    def from_table(cls, source: str, values: Mapping[str, Any]) -> CustomLaw:
        """Return the law of the function in `source`, with `values` in place of its default parameters."""
        function = _function(source)
        defaults = _parameters(function)
        for name, value in values.items():
            if name not in defaults:
                raise unknown("setting", f"law.{name}", [f"law.{known}" for known in defaults])
            if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
                raise ConfigurationError(f"law.{name} = {value!r}: must be a finite number.")
        text = ast.unparse(function)
        return cls(text, tuple((name, float(values.get(name, default))) for name, default in defaults.items()))

    def __post_init__(self) -> None:
        result = np.empty_like(_SPEEDS)
        levels(self._bare_record(), _SPEEDS, result)
        wrong = np.flatnonzero(~np.isfinite(result) | (result < 0.0))
        if len(wrong):
            speed, level = _SPEEDS[wrong[0]], result[wrong[0]]
            raise ConfigurationError(
                f"law {self.title}: its level at {speed:.4g} m/s is {level:.4g} N; it must be finite and at least 0 N "
                f"from rest up to {TOP_SPEED:g} m/s."
            )
        slopes = np.diff(result) / np.diff(_SPEEDS)
        noise = 4.0 * np.finfo(float).eps * result[1:] / np.diff(_SPEEDS)  # of a difference of rounded levels
        object.__setattr__(self, "_slopes", (float((slopes + noise).min()), float((slopes - noise).max())))
        object.__setattr__(self, "_breakaway", float(result[0]))

    @property
    def title(self) -> str:
        """Name of the function."""
        return _function(self.source).name

    @property
    def parameters(self) -> dict[str, float]:
        """The values of the function's parameters by name."""
        return dict(self.values)

    @property
    def numbers(self) -> tuple[float, ...]:  # noqa: D102 (inherited)
        return self.breakaway_force, *self.parameters.values()

    @property
    def breakaway_force(self) -> float:
        """The level at rest [N]."""
        return float(self._breakaway)  # type: ignore[attr-defined]

    @property
    def slopes(self) -> tuple[float, float]:
        """Least and greatest slope of the level, measured between 6000 speeds up to `TOP_SPEED` [N s/m]."""
        return self._slopes  # type: ignore[attr-defined, no-any-return]

    def _bare_record(self) -> NDArray[Any]:
        record = np.zeros(1, LAW)
        record["kind"], record["address"] = self.kind, _compiled(self.source, len(self.values))[0]
        record["numbers"][0][1 : 1 + len(self.values)] = list(self.parameters.values())
        return record

    @property
    def record(self) -> NDArray[Any]:  # noqa: D102 (inherited)
        record = super().record
        record["address"] = self._bare_record()["address"]
        return record


def friction_law(function: Callable[..., float]) -> Callable[..., CustomLaw]:
    """Turn a level function into a law: ``level(speed, name=default, ...)`` [N] at a sliding speed [m/s].

    Parameters
    ----------
    function : callable
        Written in a file, its parameters with defaults, using arithmetic, ``math`` and its parameters only.

    Returns
    -------
    callable
        Takes values for the parameters by name and returns the `CustomLaw`.

    Raises
    ------
    ConfigurationError
        If the function cannot be a law; the message says which part of it.
    """
    try:
        source = textwrap.dedent(inspect.getsource(function))
    except (OSError, TypeError) as error:
        raise ConfigurationError(
            f"law {getattr(function, '__name__', function)!s}: its text cannot be read; write the function in a file."
        ) from error

    @functools.wraps(function)
    def make(**values: float) -> CustomLaw:
        return CustomLaw.from_table(source, values)

    make()
    return make


@functools.lru_cache(maxsize=256)
def _function(source: str) -> ast.FunctionDef:
    """Return the one function of `source`, without decorators and annotations, after it was found harmless."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError) as error:
        raise ConfigurationError(f"law: its function is not valid Python ({error}).") from error
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    if len(functions) != 1:
        raise ConfigurationError(f"law: {len(functions)} functions where there must be one, level(speed, ...).")
    function = functions[0]
    function.decorator_list, function.returns = [], None
    for argument in function.args.args:
        argument.annotation = None
    _parameters(function)
    for fault in _faults(function):
        raise ConfigurationError(
            f"law {function.name}: {fault}; a law may use its parameters, arithmetic and functions of math."
        )
    return function


def _parameters(function: ast.FunctionDef) -> dict[str, float]:
    """Return the names and default values of the parameters after the speed."""
    arguments = function.args
    names = [argument.arg for argument in arguments.args]
    special = (arguments.vararg, arguments.kwarg, *arguments.kwonlyargs, *arguments.posonlyargs)
    if any(special) or not names or len(arguments.defaults) != len(names) - 1:
        raise ConfigurationError(
            f"law {function.name}: must be written {function.name}(speed, name=default, ...), every parameter after "
            "the speed with a default."
        )
    if len(names) - 1 > MOST_PARAMETERS:
        raise ConfigurationError(f"law {function.name}: has {len(names) - 1} parameters, {MOST_PARAMETERS} at most.")
    values = {}
    for name, node in zip(names[1:], arguments.defaults, strict=True):
        try:
            values[name] = float(ast.literal_eval(node))
        except (ValueError, TypeError, SyntaxError) as error:
            raise ConfigurationError(f"law {function.name}: the default of {name} must be a number.") from error
    return values


def _faults(function: ast.FunctionDef) -> Iterator[str]:
    known = {node.id for node in ast.walk(function) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    known |= {argument.arg for argument in function.args.args} | set(_BUILTINS)
    inside = set()
    for node in ast.walk(function):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in {"math", "np"}:
            inside.add(id(node.value))
            if node.attr not in _MATH:
                yield f"{node.value.id}.{node.attr} is not allowed"
        elif isinstance(node, ast.Name) and id(node) not in inside and node.id not in known:
            yield f"{node.id!r} comes from outside (make it a parameter with a default)"
        elif not isinstance(node, _NODES) or (isinstance(node, ast.FunctionDef) and node is not function):
            yield f"line {getattr(node, 'lineno', 1)}: {type(node).__name__} is not allowed"
        elif isinstance(node, ast.Attribute):
            yield f"attribute {node.attr!r} is not allowed"


@functools.lru_cache(maxsize=256)
def _compiled(source: str, count: int) -> tuple[int, object]:
    """Compile the function; kept for as long as the process lives, since kernels know it by its address."""
    function = _function(source)
    names: dict[str, Any] = {"__builtins__": dict(_BUILTINS), "math": math, "np": math}
    exec(compile(ast.Module([function], []), f"<law {function.name}>", "exec"), names)
    try:
        return compile_level(names[function.name], count)
    except Exception as error:  # numba raises many kinds
        reason = str(error).strip().splitlines()
        raise ConfigurationError(
            f"law {function.name}: cannot be compiled ({type(error).__name__}: {reason[-1] if reason else ''})."
        ) from error
