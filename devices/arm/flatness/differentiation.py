"""Differentiates the text of a function: arithmetic on numbers becomes arithmetic on jets.

What a text may hold is decided by `haptics.friction.law_source`; what of it has derivatives, here.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable
from typing import Any

from devices.arm.flatness import jets
from haptics.errors import ConfigurationError
from haptics.friction.law_source import defaults, parse
from haptics.jit import compile_level

_OPERATORS = {ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div", ast.Pow: "power"}
_BUILTINS = {"abs": "absolute", "min": "smaller", "max": "larger", "float": ""}
_FUNCTIONS = "exp expm1 log log1p sqrt hypot sin cos tan atan sinh cosh tanh erf".split()
_RENAMED = {"fabs": "absolute", "copysign": "signed", "pow": "power", **{name: name for name in _FUNCTIONS}}
_CONSTANTS = {"pi": 3.141592653589793, "e": 2.718281828459045}


def _call(name: str, *arguments: ast.expr) -> ast.expr:
    return ast.Call(ast.Name(f"jet_{name}", ast.Load()), list(arguments), [])


class _Jets(ast.NodeTransformer):
    """Rewrites arithmetic on numbers as calls on jets; conditions look at values alone."""

    def __init__(self, title: str, part: int) -> None:
        self.title, self.part = title, part

    def _refuse(self, node: ast.AST, what: str) -> ConfigurationError:
        return ConfigurationError(
            f"law {self.title}: line {getattr(node, 'lineno', 1)}: {what} has no derivative here."
        )

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        return _call("constant", ast.Constant(float(node.value)))  # type: ignore[arg-type]

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        if node.attr not in _CONSTANTS:
            raise self._refuse(node, f"math.{node.attr}")
        return _call("constant", ast.Constant(_CONSTANTS[node.attr]))

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        if type(node.op) not in _OPERATORS:
            raise self._refuse(node, "a remainder")
        return _call(_OPERATORS[type(node.op)], self.visit(node.left), self.visit(node.right))

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST:
        name = ast.Name(node.target.id, ast.Load())  # type: ignore[union-attr]
        return ast.Assign([node.target], self.visit(ast.copy_location(ast.BinOp(name, node.op, node.value), node)))

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        if isinstance(node.op, ast.Not):
            return ast.UnaryOp(node.op, self.visit(node.operand))
        operand = self.visit(node.operand)
        return _call("negative", operand) if isinstance(node.op, ast.USub) else operand

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        sides = [
            ast.Subscript(self.visit(side), ast.Constant(0), ast.Load()) for side in (node.left, *node.comparators)
        ]
        return ast.Compare(sides[0], node.ops, list(sides[1:]))

    def visit_Return(self, node: ast.Return) -> ast.AST:
        value = self.visit(node.value or ast.Constant(0.0))
        return ast.Return(ast.Subscript(value, ast.Constant(self.part), ast.Load()))

    def visit_If(self, node: ast.If) -> ast.AST:
        self._require_comparison(node.test)
        return self.generic_visit(node)

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        self._require_comparison(node.test)
        return self.generic_visit(node)

    def _require_comparison(self, test: ast.expr) -> None:
        if isinstance(test, ast.BoolOp):
            for part in test.values:
                self._require_comparison(part)
        elif isinstance(test, ast.UnaryOp):
            self._require_comparison(test.operand)
        elif not isinstance(test, ast.Compare):
            raise self._refuse(test, "a condition that is not a comparison")

    def visit_Call(self, node: ast.Call) -> ast.AST:
        named = node.func
        known = _RENAMED if isinstance(named, ast.Attribute) else _BUILTINS
        name = named.attr if isinstance(named, ast.Attribute) else ast.unparse(named)
        if name not in known or node.keywords:
            raise self._refuse(node, name)
        arguments: list[ast.expr] = [self.visit(argument) for argument in node.args]
        if known[name] in {"smaller", "larger"}:
            return functools.reduce(lambda left, right: _call(known[name], left, right), arguments)
        return _call(known[name], *arguments) if known[name] else arguments[0]


def _part(source: str, part: int) -> Callable[..., float]:
    """Return the function of `source` (part 0), or its first or second derivative over its first argument."""
    function = parse(source)
    copy = ast.parse(ast.unparse(function)).body[0]
    assert isinstance(copy, ast.FunctionDef)
    rewrite = _Jets(function.name, part)
    body = copy.body[1:] if isinstance(copy.body[0], ast.Expr) else copy.body
    first, *others = (argument.arg for argument in copy.args.args)
    lifted: list[ast.stmt] = [
        ast.Assign([ast.Name(name, ast.Store())], _call(rule, ast.Name(name, ast.Load())))
        for name, rule in ((first, "variable"), *((name, "constant") for name in others))
    ]
    copy.body = lifted + [rewrite.visit(statement) for statement in body]
    copy.args.defaults = []
    names: dict[str, Any] = {"__builtins__": {}, **{f"jet_{name}": rule for name, rule in jets.rules().items()}}
    exec(compile(ast.fix_missing_locations(ast.Module([copy], [])), f"<law {function.name}>", "exec"), names)
    result: Callable[..., float] = names[function.name]
    return result


_CODE: dict[str, tuple[tuple[int, object], ...]] = {}
"""Addresses of a law's three functions, and what keeps them alive: kernels know them by their addresses alone."""


def compiled_parts(source: str) -> tuple[int, ...]:
    """Return the addresses of a law's value and derivatives, which stay for as long as the process lives."""
    if source not in _CODE:
        count = len(defaults(parse(source)))
        try:
            _CODE[source] = tuple(compile_level(_part(source, part), count) for part in range(3))
        except ConfigurationError:
            raise
        except Exception as error:  # the compiler raises many kinds, with words of many lines
            reason = next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)
            raise ConfigurationError(f"law {parse(source).name}: cannot be differentiated ({reason}).") from error
    return tuple(address for address, _alive in _CODE[source])
