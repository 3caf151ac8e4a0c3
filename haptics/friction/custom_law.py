"""User-defined friction laws: a level function in plain Python, compiled and solved exactly.

::

    @friction_law
    def rubber(speed, static=4.0, kinetic=3.0, width=0.2):
        return kinetic + (static - kinetic) / (1.0 + speed / width)

    element = MasslessImpedance(rubber(static=5.0), stiffness=6000.0, damping=10.0)

The source of the function is stored, so that the law can be sent to the servo process and to recordings, and compiled
there again. The function must therefore be self-contained; see `haptics.friction.custom_law`.
"""

from __future__ import annotations

import ast
import functools
import inspect
import math
import re
import textwrap
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from haptics.errors import ConfigurationError
from haptics.friction.kernels import CUSTOM, LAW, custom_levels
from haptics.friction.laws import Law
from haptics.jit import COMPILED, compile_level
from haptics.settings import unknown_name

# --- source text of a law ---------------------------------------------------------------------------------------------
#
# Source of user-defined laws: validation, and conversion to a function of floats.
#
# A valid source is one function of arithmetic, conditions and the `ALLOWED` functions of ``math``, without loops,
# imports, attributes, text and external names. All numbers and truth values in it become floats. Such a function
# terminates quickly and can only compute, also if its source is untrusted.

ALLOWED = (
    "acos asin atan atan2 copysign cos cosh e erf erfc exp expm1 fabs hypot inf log log10 log1p log2 pi pow sin sinh "
    "sqrt tan tanh"
).split()
"""Names of ``math`` that a law may use."""

MAX_PARAMETERS = 8

MAX_SYNTAX_NODES = 2000
"""Maximum number of syntax nodes (numbers, names, operations); such a law compiles in a few seconds."""

MAX_NAME_LENGTH = 64

MAX_SOURCE_LENGTH = 400_000
"""Maximum length of the source in characters; `MAX_SYNTAX_NODES` limits it independently of formatting."""

_RESERVED = frozenset({"name", "file", "source"})  # settings of the table ``law`` that cannot be names of parameters

_NAME = "_level"  # name of every function during compilation; its own name could shadow a function that it calls

_BUILTINS: dict[str, Any] = {"abs": abs, "min": min, "max": max, "float": float}
_MODULES = frozenset({"math", "np"})
_NODES = (
    *(ast.FunctionDef, ast.arguments, ast.arg, ast.Return, ast.Assign, ast.AugAssign, ast.AnnAssign, ast.If, ast.IfExp),
    *(ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.Call, ast.Name, ast.Constant, ast.Attribute, ast.Expr),
    *(ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Pow, ast.Mod, ast.FloorDiv, ast.USub, ast.UAdd, ast.Not),
    *(ast.boolop, ast.cmpop, ast.expr_context),
)
_HELP = f"a law is arithmetic, conditions and {', '.join(ALLOWED)} of math"


def source_of(function: Callable[..., float]) -> str:
    """Return the source of a function from its file.

    Raises
    ------
    ConfigurationError
        If the source cannot be read.
    """
    try:
        return textwrap.dedent(inspect.getsource(function))
    except (OSError, TypeError) as error:
        raise ConfigurationError(
            f"law {getattr(function, '__name__', function)!s}: its text cannot be read; write the function in a file."
        ) from error


@functools.lru_cache(maxsize=256)
def parse(source: str) -> ast.FunctionDef:
    """Validate the source and return its only function, without decorators and annotations.

    Raises
    ------
    ConfigurationError
        With the part that is not allowed.
    """
    if len(source) > MAX_SOURCE_LENGTH:
        raise ConfigurationError(f"law: its text has {len(source)} characters; {MAX_SOURCE_LENGTH} at most.")
    try:
        tree = ast.parse(source)
        functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
        if len(functions) != 1:
            raise ConfigurationError(f"law: {len(functions)} functions where there must be one, level(speed, ...).")
        function = functions[0]
        parts = list(ast.walk(function))
        names = (getattr(part, field, None) for part in parts for field in ("name", "arg", "id", "attr"))
        if any(isinstance(name, str) and len(name) > MAX_NAME_LENGTH for name in names):
            raise ConfigurationError(f"law: a name in it has more than {MAX_NAME_LENGTH} characters.")
        if len(parts) > MAX_SYNTAX_NODES:
            raise ConfigurationError(
                f"law {function.name}: has {len(parts)} parts (numbers, names, operations); {MAX_SYNTAX_NODES} at most."
            )
        function.decorator_list, function.returns = [], None
        for argument in function.args.args:
            argument.annotation = None
        defaults(function)
        for fault in _faults(function):
            raise ConfigurationError(f"law {function.name}: {fault}.")
        compile(ast.unparse(function), "<law>", "exec")  # find errors beyond the grammar
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        if isinstance(error, ConfigurationError):
            raise
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ConfigurationError(f"law: its function is not valid Python ({reason}).") from error
    return function


def defaults(function: ast.FunctionDef) -> dict[str, float]:
    """Return the names and default values of the parameters after the speed."""
    arguments, where = function.args, f"law {function.name}"
    names = [argument.arg for argument in arguments.args]
    special = (arguments.vararg, arguments.kwarg, *arguments.kwonlyargs, *arguments.posonlyargs)
    if any(special) or not names or len(arguments.defaults) != len(names) - 1:
        raise ConfigurationError(
            f"{where}: must be written {function.name}(speed, name=default, ...), every parameter after the speed with "
            "a default."
        )
    if len(names) - 1 > MAX_PARAMETERS:
        raise ConfigurationError(f"{where}: has {len(names) - 1} parameters, {MAX_PARAMETERS} at most.")
    values = {}
    for name, node in zip(names[1:], arguments.defaults, strict=True):
        if name in _RESERVED:
            raise ConfigurationError(f"{where}: a parameter cannot be called {name!r}; call it something else.")
        try:
            default = ast.literal_eval(node)
        except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
            default = ast.unparse(node)
        values[name] = number(default, f"{where}: the default of {name}")
    return values


def number(value: Any, label: str) -> float:
    """Return `value` as a finite float, or raise `ConfigurationError`."""
    if isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool):
        try:
            if math.isfinite(value):
                return float(value)
        except OverflowError:
            pass
    shown = repr(value)
    raise ConfigurationError(f"{label} = {shown if len(shown) < 40 else shown[:37] + '...'}: must be a finite number.")


def _faults(function: ast.FunctionDef) -> Iterator[str]:
    stored = {node.id for node in ast.walk(function) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    arguments = {argument.arg for argument in function.args.args}
    for name in sorted((stored | arguments) & (_MODULES | set(_BUILTINS))):
        yield f"{name!r} cannot be given another meaning"
    known = stored | arguments | set(_BUILTINS)
    described = function.body[0].value if isinstance(function.body[0], ast.Expr) else None
    modules = set()
    for node in ast.walk(function):
        if isinstance(node, ast.Attribute):
            if not isinstance(node.value, ast.Name) or node.value.id not in _MODULES:
                yield f"attribute {node.attr!r} is not allowed ({_HELP})"
            elif node.attr not in ALLOWED:
                yield f"{node.value.id}.{node.attr} is not allowed ({_HELP})"
            modules.add(id(node.value))
        elif isinstance(node, ast.Name):
            if id(node) not in modules and node.id not in known:
                yield f"{node.id!r} comes from outside (make it a parameter with a default; {_HELP})"
        elif isinstance(node, ast.Constant):
            if not isinstance(node.value, bool | int | float) and node is not described:
                yield f"line {node.lineno}: {str(node.value)[:20]!r} is not a number"
        elif not isinstance(node, _NODES) or (isinstance(node, ast.FunctionDef) and node is not function):
            yield f"line {getattr(node, 'lineno', 1)}: {type(node).__name__} is not allowed ({_HELP})"


class _Floats(ast.NodeTransformer):
    """Convert every number to a float: integers of any size could take unlimited time and memory."""

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        if isinstance(node.value, bool | int | float):
            return ast.copy_location(ast.Constant(float(node.value)), node)
        return node

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        return self._as_float(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        return self._as_float(node) if isinstance(node.op, ast.Not) else self.generic_visit(node)

    def _as_float(self, node: ast.expr) -> ast.AST:
        self.generic_visit(node)
        return ast.copy_location(ast.IfExp(node, ast.Constant(1.0), ast.Constant(0.0)), node)


def build(source: str, module: Any) -> Callable[..., float]:
    """Return the function of `source`, with `module` in place of ``math``.

    Raises
    ------
    ConfigurationError
        If the source is not allowed.
    """
    function = parse(source)
    names: dict[str, Any] = {"__builtins__": _BUILTINS, "math": module, "np": module}
    try:
        copy = ast.parse(ast.unparse(function))
        copy.body[0].name = _NAME  # type: ignore[attr-defined]
        code = compile(ast.fix_missing_locations(_Floats().visit(copy)), f"<law {function.name}>", "exec")
    except (RecursionError, MemoryError, OverflowError) as error:
        raise ConfigurationError(f"law {function.name}: is nested too deeply or has too large numbers.") from error
    exec(code, names)
    level: Callable[..., float] = names[_NAME]
    return level


_NUMPY_NAMES = {"acos": "arccos", "asin": "arcsin", "atan": "arctan", "atan2": "arctan2", "pow": "power"}
# The functions of ``math`` with the behaviour of compiled code: inf or nan instead of errors.
_PLAIN_MATH = SimpleNamespace(
    **{name: getattr(np, _NUMPY_NAMES.get(name, name)) for name in ALLOWED if name not in {"erf", "erfc"}},
    erf=math.erf,
    erfc=math.erfc,
)


def build_interpreted(source: str) -> Callable[..., float]:
    """Return the function of `source` for plain Python, with the arithmetic of compiled code.

    Outside the range of a function or of floats it returns inf or nan, as compiled code does.
    """
    inner = build(source, _PLAIN_MATH)

    def level(*numbers: float) -> float:
        with np.errstate(all="ignore"):
            try:
                value = inner(*map(np.float64, numbers))
                if value is None:
                    raise TypeError("it returns nothing")
                return float(value)
            except ArithmeticError:  # from constants, which are Python floats
                return math.nan

    return level


# --- custom laws ------------------------------------------------------------------------------------------------------

_MAX_SPEED = 100.0  # speed up to which a level is checked when the law is created [m/s]

_MIN_SPEED = 1e-12  # speed at which the level is evaluated for its limit at rest [m/s]

_SPEEDS = np.concatenate(([0.0, _MIN_SPEED], np.geomspace(1e-7, _MAX_SPEED, 6000)))
_SAMPLE_SPEEDS = _SPEEDS[[0, 1, *range(2, len(_SPEEDS), 100)]]


@dataclass(frozen=True)
class CustomLaw(Law, kind=CUSTOM, name="custom"):
    """Friction law with a user-defined level, created by `friction_law` or from a file.

    The law is solved to machine precision by a bracketed search, also across jumps of the level. Where condition (15)
    fails, the outermost solution is searched at 512 speeds. A level below zero counts as zero, because friction never
    drives.

    Attributes
    ----------
    source : str
        Source of the function ``level(speed, *parameters) -> level``, in m/s and N.
    values : tuple of (str, float)
        Name and value of each parameter, in the order of the function.

    Raises
    ------
    ConfigurationError
        If the function contains a construct that is not allowed, cannot be compiled, or returns a level that is
        negative or not finite anywhere between 0 and 100 m/s.
    """

    source: str = field(repr=False)
    values: tuple[tuple[str, float], ...] = ()

    @classmethod
    def from_table(cls, source: str, values: Mapping[str, Any]) -> CustomLaw:
        """Return the law of the function in `source`, with `values` in place of its default parameters."""
        function = parse(source)
        known = defaults(function)
        for name in values:
            if name not in known:
                raise unknown_name("setting", f"law.{name}", [f"law.{other}" for other in known])
        complete = {**known, **{name: number(value, f"law.{name}") for name, value in values.items()}}
        return cls(_standard_text(source), tuple(complete.items()))

    def __post_init__(self) -> None:
        known = tuple(defaults(parse(self.source)))
        if tuple(self.parameters) != known:
            raise ConfigurationError(
                f"law {self.title}: values for {', '.join(self.parameters) or 'nothing'}; it has the parameters "
                f"{', '.join(known) or 'none'}, in this order."
            )
        breakaway, slopes = _validated(self.source, np.array(list(self.parameters.values()), dtype=float).tobytes())
        object.__setattr__(self, "_breakaway", breakaway)
        object.__setattr__(self, "_slopes", slopes)

    @property
    def title(self) -> str:
        """Name of the function."""
        return parse(self.source).name

    @property
    def parameters(self) -> dict[str, float]:
        """Values of the parameters by name."""
        return dict(self.values)

    @property
    def numbers(self) -> tuple[float, ...]:  # noqa: D102 (inherited)
        return self._breakaway, *self.parameters.values()  # type: ignore[attr-defined]

    @property
    def slopes(self) -> tuple[float, float]:
        """Smallest and largest slope of the level, measured between 6000 speeds up to 100 m/s [N s/m].

        At a jump the slope is as steep as floating-point numbers resolve, so that a downward jump violates condition
        (15).
        """
        return self._slopes  # type: ignore[attr-defined, no-any-return]

    @property
    def record(self) -> NDArray[Any]:  # noqa: D102 (inherited)
        record = super().record
        record["address"] = _address(self.source, len(self.values))
        return record


@functools.lru_cache(maxsize=256)
def _standard_text(source: str) -> str:
    """Return the function of `source` in the formatting of `ast.unparse`."""
    return ast.unparse(parse(source))


@functools.lru_cache(maxsize=256)
def _validated(source: str, numbers: bytes) -> tuple[float, tuple[float, float]]:
    """Return the limit at rest and the slopes of a level with these parameters; raise if it is invalid.

    `numbers` contains the parameters as bytes, so that the cache distinguishes every bit and the sign of zero. A
    session creates the same law many times.
    """
    values = np.frombuffer(numbers)
    title = parse(source).name
    interpreted = build_interpreted(source)
    for speed in _SAMPLE_SPEEDS:  # plain Python reports the use of unassigned names and wrong calls
        try:
            interpreted(speed, *values.tolist())
        except (NameError, TypeError, ValueError) as error:
            raise ConfigurationError(f"law {title}: at {speed:.4g} m/s it gives no number ({error}).") from error
    record = np.zeros(1, LAW)
    record["kind"], record["address"] = CUSTOM, _address(source, len(values))
    record["numbers"][0][1 : 1 + len(values)] = values
    found = _levels(record, _SPEEDS)
    wrong = np.flatnonzero(~np.isfinite(found) | (found < 0.0))
    if len(wrong):
        raise ConfigurationError(
            f"law {title}: its level at {_SPEEDS[wrong[0]]:.4g} m/s is {found[wrong[0]]:.4g} N; it must be "
            f"finite and at least 0 N from rest up to {_MAX_SPEED:g} m/s."
        )
    jumps = not math.isclose(found[0], found[1], rel_tol=1e-9, abs_tol=1e-12)
    return float(found[1] if jumps else found[0]), _measure_slopes(record, found[1:])


def _levels(record: NDArray[Any], speeds: NDArray[np.float64]) -> NDArray[np.float64]:
    result = np.empty_like(speeds)
    custom_levels(record, speeds, result)
    return result


def _measure_slopes(record: NDArray[Any], found: NDArray[np.float64]) -> tuple[float, float]:
    """Return the smallest and largest slope, by repeated halving of every interval at its steepest half."""
    lows, highs = _SPEEDS[1:-1].copy(), _SPEEDS[2:].copy()
    low_levels, high_levels = found[:-1].copy(), found[1:].copy()
    noise = 8.0 * np.finfo(float).eps * np.maximum(found[:-1], found[1:])  # rounding error of a difference of levels
    extremes = []
    for _ in range(30):
        change = high_levels - low_levels
        slopes = np.sign(change) * np.maximum(np.abs(change) - noise, 0.0) / (highs - lows)
        extremes += [slopes.min(), slopes.max()]
        middles = 0.5 * (lows + highs)
        middle_levels = _levels(record, middles)
        left = np.abs(middle_levels - low_levels) >= np.abs(high_levels - middle_levels)
        highs, high_levels = np.where(left, middles, highs), np.where(left, middle_levels, high_levels)
        lows, low_levels = np.where(left, lows, middles), np.where(left, low_levels, middle_levels)
    return float(min(extremes)), float(max(extremes))


def friction_law(function: Callable[..., float]) -> Callable[..., CustomLaw]:
    """Convert a level function ``level(speed, name=default, ...)`` [N] of the speed [m/s] to a law.

    Parameters
    ----------
    function : callable
        Function defined in a file, whose parameters have defaults, with arithmetic, ``math`` and its parameters only.

    Returns
    -------
    callable
        Accepts values for the parameters by name and returns the `CustomLaw`. Its ``law_source`` is the source.

    Raises
    ------
    ConfigurationError
        If the function cannot be a law; the message names the reason.
    """
    source = source_of(function)

    @functools.wraps(function)
    def make(**values: float) -> CustomLaw:
        return CustomLaw.from_table(source, values)

    make()
    make.law_source = source  # type: ignore[attr-defined]
    return make


# Address of every compiled function, and the object that keeps the compiled code alive.
_CODE: dict[tuple[str, int], tuple[int, object]] = {}


def _address(source: str, count: int) -> int:
    """Return the address of the compiled function, which remains valid until the process ends."""
    if (source, count) not in _CODE:
        function = build(source, math) if COMPILED else build_interpreted(source)
        try:
            _CODE[source, count] = compile_level(function, count)
        except Exception as error:  # numba raises many types, with long messages
            lines = [line for line in re.sub(r"\x1b\[[0-9;]*m", "", str(error)).splitlines() if line.strip()]
            raise ConfigurationError(
                f"law {parse(source).name}: cannot be compiled ({lines[1].strip() if len(lines) > 1 else error})."
            ) from error
    return _CODE[source, count][0]
