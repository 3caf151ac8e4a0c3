"""Source of user-defined laws: validation, and conversion to a function of floats.

A valid source is one function of arithmetic, conditions and the `ALLOWED` functions of ``math``, without loops,
imports, attributes, text and external names. All numbers and truth values in it become floats. Such a function
terminates quickly and can only compute, also if its source is untrusted.
"""

from __future__ import annotations

import ast
import functools
import inspect
import math
import textwrap
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np

from haptics.errors import ConfigurationError

ALLOWED = (
    "acos asin atan atan2 copysign cos cosh e erf erfc exp expm1 fabs hypot inf log log10 log1p log2 pi pow sin sinh "
    "sqrt tan tanh"
).split()
"""Names of ``math`` that a law may use."""

MOST_PARAMETERS = 8

MOST_PARTS = 2000
"""Maximum number of syntax nodes (numbers, names, operations); such a law compiles in a few seconds."""

LONGEST_NAME = 64

LONGEST = 400_000
"""Maximum length of the source in characters; `MOST_PARTS` limits it independently of formatting."""

RESERVED = frozenset({"name", "file", "source"})
"""Settings of the table ``law`` that cannot be names of parameters."""

_NAME = "_level"
"""Name of every function during compilation; its own name could shadow a function that it calls."""

_BUILTINS: dict[str, Any] = {"abs": abs, "min": min, "max": max, "float": float}
_MODULES = frozenset({"math", "np"})
_NODES = (
    *(ast.FunctionDef, ast.arguments, ast.arg, ast.Return, ast.Assign, ast.AugAssign, ast.AnnAssign, ast.If, ast.IfExp),
    *(ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.Call, ast.Name, ast.Constant, ast.Attribute, ast.Expr),
    *(ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Pow, ast.Mod, ast.FloorDiv, ast.USub, ast.UAdd, ast.Not),
    *(ast.boolop, ast.cmpop, ast.expr_context),
)
_HOW = f"a law is arithmetic, conditions and {', '.join(ALLOWED)} of math"


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
    if len(source) > LONGEST:
        raise ConfigurationError(f"law: its text has {len(source)} characters; {LONGEST} at most.")
    try:
        tree = ast.parse(source)
        functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
        if len(functions) != 1:
            raise ConfigurationError(f"law: {len(functions)} functions where there must be one, level(speed, ...).")
        function = functions[0]
        _require_short(function)
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


def _require_short(function: ast.FunctionDef) -> None:
    """Raise `ConfigurationError` if a function is too large to compile within seconds."""
    parts = list(ast.walk(function))
    names = (getattr(part, field, None) for part in parts for field in ("name", "arg", "id", "attr"))
    if any(isinstance(name, str) and len(name) > LONGEST_NAME for name in names):
        raise ConfigurationError(f"law: a name in it has more than {LONGEST_NAME} characters.")
    if len(parts) > MOST_PARTS:
        raise ConfigurationError(
            f"law {function.name}: has {len(parts)} parts (numbers, names, operations); {MOST_PARTS} at most."
        )


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
    if len(names) - 1 > MOST_PARAMETERS:
        raise ConfigurationError(f"{where}: has {len(names) - 1} parameters, {MOST_PARAMETERS} at most.")
    values = {}
    for name, node in zip(names[1:], arguments.defaults, strict=True):
        if name in RESERVED:
            raise ConfigurationError(f"{where}: a parameter cannot be called {name!r}; call it something else.")
        try:
            default = ast.literal_eval(node)
        except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
            default = ast.unparse(node)
        values[name] = number(default, f"{where}: the default of {name}")
    return values


def number(value: Any, what: str) -> float:
    """Return `value` as a finite float, or raise `ConfigurationError`."""
    if isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool):
        try:
            if math.isfinite(value):
                return float(value)
        except OverflowError:
            pass
    shown = repr(value)
    raise ConfigurationError(f"{what} = {shown if len(shown) < 40 else shown[:37] + '...'}: must be a finite number.")


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
                yield f"attribute {node.attr!r} is not allowed ({_HOW})"
            elif node.attr not in ALLOWED:
                yield f"{node.value.id}.{node.attr} is not allowed ({_HOW})"
            modules.add(id(node.value))
        elif isinstance(node, ast.Name):
            if id(node) not in modules and node.id not in known:
                yield f"{node.id!r} comes from outside (make it a parameter with a default; {_HOW})"
        elif isinstance(node, ast.Constant):
            if not isinstance(node.value, bool | int | float) and node is not described:
                yield f"line {node.lineno}: {str(node.value)[:20]!r} is not a number"
        elif not isinstance(node, _NODES) or (isinstance(node, ast.FunctionDef) and node is not function):
            yield f"line {getattr(node, 'lineno', 1)}: {type(node).__name__} is not allowed ({_HOW})"


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


def _plain_math() -> SimpleNamespace:
    """Return the functions of ``math`` with the behaviour of compiled code: inf or nan instead of errors."""
    other = {"acos": "arccos", "asin": "arcsin", "atan": "arctan", "atan2": "arctan2", "pow": "power"}
    names = {name: getattr(np, other.get(name, name)) for name in ALLOWED if name not in {"erf", "erfc"}}
    return SimpleNamespace(**names, erf=math.erf, erfc=math.erfc)


def build_interpreted(source: str) -> Callable[..., float]:
    """Return the function of `source` for plain Python, with the arithmetic of compiled code.

    Outside the range of a function or of floats it returns inf or nan, as compiled code does.
    """
    inner = build(source, _plain_math())

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


def rehearse(source: str, speeds: Any, values: list[float]) -> None:
    """Call the function of `source` in plain Python at `speeds` [m/s] to find errors.

    Raises
    ------
    ConfigurationError
        If it uses a name before assignment, calls a function incorrectly, or does not return a number.
    """
    level, title = build_interpreted(source), parse(source).name
    for speed in speeds:
        try:
            level(speed, *values)
        except (NameError, TypeError, ValueError) as error:
            raise ConfigurationError(f"law {title}: at {speed:.4g} m/s it gives no number ({error}).") from error
