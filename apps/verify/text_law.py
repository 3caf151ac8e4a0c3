"""Law given as text: evaluate the recorded source at many speeds without executing it.

The text is one function with arithmetic, conditions and functions of ``math``. It is parsed and its syntax tree is
interpreted; it is never compiled or called. All speeds are evaluated together: where a condition differs between
speeds, each branch changes only the speeds that take it.
"""

from __future__ import annotations

import ast
import functools
import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

MOST_NODES = 2500
LONGEST = 400_000


class NotUnderstood(Exception):
    """The text or table is not a supported law or scene."""


_BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: np.true_divide,
    ast.Pow: np.power,
    ast.Mod: np.mod,
    ast.FloorDiv: np.floor_divide,
}
_COMPARED: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Lt: np.less,
    ast.LtE: np.less_equal,
    ast.Gt: np.greater,
    ast.GtE: np.greater_equal,
    ast.Eq: np.equal,
    ast.NotEq: np.not_equal,
}
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{name: getattr(np, name) for name in ("exp expm1 log log10 log1p log2 sqrt sin cos tan sinh cosh tanh".split())},
    **{name: getattr(np, name) for name in ("fabs", "copysign", "hypot")},
    **{f"a{name}": getattr(np, f"arc{name}") for name in ("sin", "cos", "tan", "tan2")},
    "pow": np.power,
    "erf": np.vectorize(math.erf, otypes=[float]),
    "erfc": np.vectorize(math.erfc, otypes=[float]),
}
_CONSTANTS = {"pi": math.pi, "e": math.e, "inf": math.inf}


@dataclass
class _Walk:
    """Evaluation state: values by name, results, and the speeds that have not returned yet."""

    names: dict[str, Any]
    result: Floats
    open: Mask

    def body(self, statements: list[ast.stmt], lanes: Mask) -> None:
        for statement in statements:
            self.statement(statement, lanes & self.open)

    def statement(self, node: ast.stmt, lanes: Mask) -> None:
        if isinstance(node, ast.Return) and node.value is not None:
            self.result[lanes] = np.broadcast_to(self.value(node.value), lanes.shape)[lanes]
            self.open &= ~lanes
        elif isinstance(node, ast.If):
            chosen = np.broadcast_to(np.not_equal(self.value(node.test), 0.0), lanes.shape)
            self.body(node.body, lanes & chosen)
            self.body(node.orelse, lanes & ~chosen)
        elif isinstance(node, ast.Assign) and all(isinstance(one, ast.Name) for one in node.targets):
            found = self.value(node.value)
            for target in node.targets:
                self.assign(target.id, found, lanes)  # type: ignore[attr-defined]
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value is not None:
            self.assign(node.target.id, self.value(node.value), lanes)
        elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name) and type(node.op) in _BINARY:
            found = _BINARY[type(node.op)](self.name(node.target.id), self.value(node.value))
            self.assign(node.target.id, found, lanes)
        elif not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
            raise NotUnderstood(f"a statement of the kind {type(node).__name__}")

    def assign(self, name: str, found: Any, lanes: Mask) -> None:
        self.names[name] = np.where(lanes, found, self.names.get(name, np.nan))

    def name(self, name: str) -> Any:
        if name not in self.names:
            raise NotUnderstood(f"the name {name!r}")
        return self.names[name]

    def value(self, node: ast.expr) -> Any:
        """Return the value of an expression, a float or an array over all speeds."""
        match node:
            case ast.Constant(value=bool() | int() | float() as number):
                return float(number)
            case ast.Name(id=name):
                return self.name(name)
            case ast.Attribute(value=ast.Name(id="math" | "np"), attr=name) if name in _CONSTANTS:
                return _CONSTANTS[name]
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
                return _BINARY[type(op)](self.value(left), np.float64(1.0) * self.value(right))
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return -self.value(operand)
            case ast.UnaryOp(op=ast.UAdd(), operand=operand):
                return self.value(operand)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return np.where(np.equal(self.value(operand), 0.0), 1.0, 0.0)
            case ast.IfExp(test=test, body=body, orelse=orelse):
                return np.where(np.not_equal(self.value(test), 0.0), self.value(body), self.value(orelse))
            case ast.Compare(left=left, ops=ops, comparators=others):
                return self.compared(left, ops, others)
            case ast.BoolOp(op=op, values=values):
                return functools.reduce(self.joined(op), [self.value(one) for one in values])
            case ast.Call(func=func, args=arguments, keywords=[]):
                return self.called(func, [self.value(one) for one in arguments])
        raise NotUnderstood(f"an expression of the kind {type(node).__name__}")

    def compared(self, left: ast.expr, ops: list[ast.cmpop], others: list[ast.expr]) -> Any:
        found: Any = np.bool_(True)
        values = [self.value(one) for one in (left, *others)]
        for op, one, other in zip(ops, values[:-1], values[1:], strict=True):
            if type(op) not in _COMPARED:
                raise NotUnderstood(f"a comparison of the kind {type(op).__name__}")
            found = np.logical_and(found, _COMPARED[type(op)](one, other))
        return np.where(found, 1.0, 0.0)

    def joined(self, op: ast.boolop) -> Callable[[Any, Any], Any]:
        if isinstance(op, ast.And):
            return lambda one, other: np.where(np.not_equal(one, 0.0), other, one)
        return lambda one, other: np.where(np.not_equal(one, 0.0), one, other)

    def called(self, function: ast.expr, values: list[Any]) -> Any:
        match function:
            case ast.Attribute(value=ast.Name(id="math" | "np"), attr=name) if name in _FUNCTIONS:
                return _FUNCTIONS[name](*values)
            case ast.Name(id="abs") if len(values) == 1:
                return np.abs(values[0])
            case ast.Name(id="float") if len(values) == 1:
                return values[0]
            case ast.Name(id="min") if len(values) > 1:  # like the built-in: the first of equal values
                return functools.reduce(lambda one, other: np.where(np.less(other, one), other, one), values)
            case ast.Name(id="max") if len(values) > 1:
                return functools.reduce(lambda one, other: np.where(np.greater(other, one), other, one), values)
        raise NotUnderstood(f"a call of {ast.unparse(function)[:40]}")


@functools.lru_cache(maxsize=64)
def _function(source: str) -> ast.FunctionDef:
    """Return the only function in a text.

    Raise `NotUnderstood` if the text is too long or does not contain exactly one function.
    """
    try:
        if len(source) > LONGEST:
            raise NotUnderstood("too long a text")
        tree = ast.parse(source)
        functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
        if len(functions) != 1 or len(list(ast.walk(functions[0]))) > MOST_NODES:
            raise NotUnderstood("not one short function")
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise NotUnderstood(f"no Python ({type(error).__name__})") from error
    return functions[0]


def levels(source: str, parameters: Mapping[str, float], speeds: Floats) -> Floats:
    """Evaluate the function in `source` at `speeds`, (n,) [N]; negative values are clipped to zero.

    Parameters
    ----------
    source : str
        Text of the function ``level(speed, name=default, ...)``.
    parameters : mapping
        Values that replace the defaults.
    speeds : (n,) array
        Speeds [m/s].

    Raises
    ------
    NotUnderstood
        If the text is not a supported function.
    """
    function = _function(source)
    arguments = [one.arg for one in function.args.args]
    if len(arguments) != 1 + len(function.args.defaults):
        raise NotUnderstood("parameters without defaults")
    result = np.full(speeds.shape, np.nan)
    walk = _Walk({}, result, np.ones(speeds.shape, bool))
    try:
        with np.errstate(all="ignore"):
            known = {name: walk.value(node) for name, node in zip(arguments[1:], function.args.defaults, strict=True)}
            walk.names = {arguments[0]: speeds, **known, **{k: float(v) for k, v in parameters.items() if k in known}}
            walk.body(function.body, walk.open.copy())
    except (TypeError, ValueError, RecursionError) as error:
        raise NotUnderstood(str(error)[:80]) from error
    return np.where(result < 0.0, 0.0, result)
