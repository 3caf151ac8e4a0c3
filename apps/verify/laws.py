r"""Friction laws: sets of forces, laws given as text, and residuals of the recorded forces (Kikuuwe et al. 2006).

*Sets* (2), (24). An isotropic law has a level g(s) [N] at the speed s [m/s] and a static level. The force is
:math:`g(|v|) v/|v|` during sliding, and any vector up to the static level at rest. A directional law has a set of
forces at rest. During sliding, the force is the point of the set with maximum dissipation, plus a viscous force.

*Laws given as text.* The text is one function with arithmetic, conditions and functions of ``math``. It is parsed and
its syntax tree is interpreted; it is never compiled or called. All speeds are evaluated together: where a condition
differs between speeds, each branch changes only the speeds that take it.

*Residuals.* At rest the law is a set, and the residual is the distance of the force beyond its boundary. During
sliding, the residual is the distance to the force of the law at the recorded velocity. A recorded velocity is accurate
to a few units in the last place. The level is therefore evaluated from ``s (1 - 8 eps)`` to ``s (1 + 8 eps)``; for a
level that jumps at that speed, this gives the set of forces in between. The bound for other rounding errors is
`apps.verify.recorded.ROUNDINGS` eps times the sum of the forces.

`implicit` solves :math:`f \in \Phi(x - Z f)` for the friction force, independently of the elements and vectorized over
many arguments. An isotropic law with level g sticks if |x| is at most Z times the static level, with the force x/Z.
Otherwise it slides at the speed s with s + Z g(s) = |x|. For a set of quarter ellipses, x is rotated into the axes of
the set, with semi-axes a. The contact sticks if x/Z is in the set. Otherwise the dry part d is on the boundary, the
velocity is normal to the boundary there, :math:`v = m d/a^2` with m > 0, and the viscosity D adds to it, f = d + D v.
This gives :math:`d = x / (Z + (1 + Z D) m/a^2)`, and m is the root of :math:`|d/a| = 1`.
"""

from __future__ import annotations

import ast
import functools
import itertools
import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from apps.verify.recorded import EPS, Floats, Mask, rounding

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
_UNARY: dict[type[ast.unaryop], Callable[[Any], Any]] = {
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
    ast.Not: lambda value: np.where(np.equal(value, 0.0), 1.0, 0.0),
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
            case ast.UnaryOp(op=op, operand=operand) if type(op) in _UNARY:
                return _UNARY[type(op)](self.value(operand))
            case ast.IfExp(test=test, body=body, orelse=orelse):
                return np.where(np.not_equal(self.value(test), 0.0), self.value(body), self.value(orelse))
            case ast.Compare(left=left, ops=ops, comparators=others):
                found: Any = np.bool_(True)
                for sign, (one, other) in zip(ops, itertools.pairwise(map(self.value, (left, *others))), strict=True):
                    if type(sign) not in _COMPARED:
                        raise NotUnderstood(f"a comparison of the kind {type(sign).__name__}")
                    found = np.logical_and(found, _COMPARED[type(sign)](one, other))
                return np.where(found, 1.0, 0.0)
            case ast.BoolOp(op=op, values=values):
                goes_on = isinstance(op, ast.And)  # the next operand counts where this one is true, or where it is not
                parts = [self.value(one) for one in values]
                return functools.reduce(
                    lambda one, other: np.where(np.not_equal(one, 0.0) == goes_on, other, one), parts
                )
            case ast.Call(func=func, args=arguments, keywords=[]):
                return self.called(func, [self.value(one) for one in arguments])
        raise NotUnderstood(f"an expression of the kind {type(node).__name__}")

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


APPROXIMATE = "-closed-form"
"""Suffix of the names of laws that are solved by the closed-form approximation of the paper."""

AT_REST = 1e-12
"""Speed at which a level with a jump at rest takes its static value [m/s]."""

TEXT_ROUNDING = 1e-10
"""Relative accuracy of a level given as text, whose expression may cancel digits."""


@dataclass(frozen=True)
class Isotropic:
    """Isotropic law: a level over speed.

    In a scene, the parameters are arrays with a value per tick.

    Attributes
    ----------
    static : float
        Maximum force at rest [N].
    identity : tuple
        Identifies the law: laws with equal identity have equal behaviour.
    level : callable
        Level [N] at speeds [m/s].
    loose : float
        Relative accuracy of the level, if lower than floating-point accuracy.
    approximate : bool
        True if the law was solved by the closed form (46), (57).
    slender : float
        Squared aspect ratio of the set of forces at rest, a disc.
    """

    static: Any
    identity: tuple[Any, ...]
    level: Callable[[Floats], Floats] = field(compare=False, repr=False)
    loose: float = 0.0
    approximate: bool = False
    slender: ClassVar[float] = 1.0


@dataclass(frozen=True)
class Quarters:
    """Directional law: a set of quarter ellipses rotated by `angle` [rad], and a viscosity [N s/m].

    Attributes
    ----------
    axes : tuple of float
        Semi-axes [N] forwards, backwards and sideways.
    """

    axes: tuple[Any, Any, Any]
    angle: Any
    viscosity: Any
    approximate: bool = False
    loose: float = 0.0

    @property
    def static(self) -> Any:
        """Maximum force at rest [N]."""
        return np.maximum.reduce(self.axes)

    @property
    def slender(self) -> Any:
        """Squared aspect ratio of the set."""
        return (self.static / np.minimum.reduce(self.axes)) ** 2

    @property
    def identity(self) -> tuple[Any, ...]:
        """Identifies the law."""
        return ("quarters", *self.axes, self.angle, self.viscosity, self.approximate)

    def turned(self, vectors: Floats) -> Floats:
        """Rotate vectors, (n, 2), into the axes of the law."""
        c, s = np.cos(self.angle), np.sin(self.angle)
        return np.stack((c * vectors[:, 0] + s * vectors[:, 1], c * vectors[:, 1] - s * vectors[:, 0]), axis=1)

    def turned_back(self, own: Floats) -> Floats:
        """Rotate vectors, (n, 2), from the axes of the law back into the plane."""
        c, s = np.cos(self.angle), np.sin(self.angle)
        return np.stack((c * own[:, 0] - s * own[:, 1], s * own[:, 0] + c * own[:, 1]), axis=1)

    def semi_axes(self, own: Floats) -> Floats:
        """Return the semi-axes [N] of the quadrants of vectors in the axes of the law, (n, 2)."""
        forward, backward, sideways = self.axes
        return np.stack((np.where(own[:, 0] >= 0.0, forward, backward), np.full(len(own), sideways)), axis=1)


Law = Isotropic | Quarters


_LEVELS: dict[str, tuple[tuple[str, ...], Callable[..., Floats]]] = {
    "viscous": (("force", "viscosity"), lambda s, F, D: F + D * s),
    "peaked 1": (
        ("static_force", "kinetic_force", "stribeck_velocity", "viscosity"),
        lambda s, Fs, Fc, vs, D: Fc + (Fs - Fc) * np.exp(-((s / vs) ** 1)) + D * s,
    ),
    "peaked 2": (
        ("static_force", "kinetic_force", "stribeck_velocity", "viscosity"),
        lambda s, Fs, Fc, vs, D: Fc + (Fs - Fc) * np.exp(-((s / vs) ** 2)) + D * s,
    ),
    "dead zone": (("force", "viscosity", "dead_zone"), lambda s, F, D, w: F + D * np.maximum(s - w, 0.0)),
}
"""Levels of isotropic laws at speeds s, (2), (24): names of their parameters, the static level first, and formula."""

_KINDS = {
    "coulomb": "viscous",
    "coulomb-viscous": "viscous",
    "stribeck": "peaked 1",
    "gaussian-stribeck": "peaked 2",
    "dead-zone-viscous": "dead zone",
}
"""Isotropic laws and their levels."""

_AXES = {
    "elliptic": ("force_x", "force_x", "force_y"),
    "asymmetric": ("forward_force", "backward_force", "sideways_force"),
}
"""Directional laws and the parameters that are their semi-axes."""


def law_of(table: Mapping[str, Any], loose: float = 0.0) -> Law:
    """Return the law of a recorded table, whose parameters may also be arrays, (n,).

    Parameters
    ----------
    table : mapping
        Name and parameters, or the source of a law given as text.
    loose : float
        Relative accuracy of the parameters, if lower than floating-point accuracy.

    Raises
    ------
    NotUnderstood
        If the law is unknown.
    """
    name, source = str(table.get("name", "")), table.get("source")
    exact = name.removesuffix(APPROXIMATE)
    approximate = exact != name
    try:
        if isinstance(source, str):
            parameters = {key: float(value) for key, value in table.items() if key not in {"name", "source"}}
            level = functools.partial(levels, source, parameters)
            at_zero, at_rest = level(np.array([0.0, AT_REST]))
            static = at_zero if math.isclose(at_zero, at_rest, rel_tol=1e-9, abs_tol=1e-12) else at_rest
            return Isotropic(float(static), ("text", source, *sorted(parameters.items())), level, loose=TEXT_ROUNDING)
        if exact not in _KINDS and exact not in _AXES:
            raise NotUnderstood(f"the law {name[:40]!r} is unknown to the verification")
        entries = ((key, value) for key, value in table.items() if key != "name")
        p: dict[str, Any] = {k: value if isinstance(value, np.ndarray) else float(value) for k, value in entries}
        if exact in _AXES:
            forward, backward, sideways = (p[key] for key in _AXES[exact])
            axes = forward, backward, sideways
            return Quarters(axes, p.get("angle", 0.0), p.get("viscosity", 0.0), approximate, loose)
        names, formula = _LEVELS[_KINDS[exact]]
        values = [p.get(key, 0.0) if key == "viscosity" and "dead_zone" not in names else p[key] for key in names]
        identity = (_KINDS[exact], *values, approximate)
        return Isotropic(values[0], identity, lambda s: formula(s, *values), loose, approximate)
    except (KeyError, TypeError, ValueError) as error:
        raise NotUnderstood(f"the law {name[:40]!r} lacks a parameter, or has a wrong one ({error})") from error


Pair = tuple[Floats, Floats]

_SPEEDS = (1.0 - 8.0 * EPS, 1.0, 1.0 + 8.0 * EPS)


def length(vectors: Floats) -> Floats:
    """Return the norms of vectors, (n, 2)."""
    norms: Floats = np.hypot(vectors[:, 0], vectors[:, 1])
    return norms


def units(vectors: Floats) -> Floats:
    """Return vectors normalized to length 1, (n, 2); zero vectors stay zero."""
    norms = length(vectors)
    return np.divide(vectors, norms[:, None], out=np.zeros_like(vectors), where=norms[:, None] > 0.0)


def inclusion(law: Law, force: Floats, velocity: Floats, mobility: float) -> Pair:
    """Return residual and bound [N], (n,) each, for the given forces and velocities.

    Parameters
    ----------
    law : Law
        Law of the contact.
    force, velocity : (n, 2) array
        Friction force [N] and sliding velocity [m/s].
    mobility : float
        Mobility Z of the element [m/(N s)]. It determines where the law is approximated, and when it sticks; 0 for an
        explicit law.
    """
    norm = length(force)
    if law.approximate:
        x = velocity + mobility * force
        expected, _ = approximation(law, x, np.full(len(x), mobility))
        phi = level_force(law, x)
        n = length(phi)
        steep = length(level_force(law, x * (1.0 + 8.0 * EPS)) - phi)
        return length(force - expected), (rounding(n, norm) + law.loose * n) * law.slender + 4.0 * steep
    rests = ~velocity.any(axis=1)
    if isinstance(law, Isotropic):
        beyond, at_rest = np.maximum(norm - law.static, 0.0), rounding(norm) + law.loose * law.static
        speed, along = length(velocity), units(velocity)
        found = np.stack([law.level(share * speed) for share in _SPEEDS])
        low, high = found.min(axis=0), found.max(axis=0)
        part = (force * along).sum(axis=1)
        across = force[:, 0] * along[:, 1] - force[:, 1] * along[:, 0]
        residual = np.hypot(np.maximum(np.maximum(low - part, part - high), 0.0), across)
        bound = rounding(norm, high) + law.loose * high
    else:
        own = law.turned(force)
        share = length(own / law.semi_axes(own))
        beyond = norm * np.maximum(1.0 - 1.0 / np.maximum(share, 1.0), 0.0)
        at_rest = rounding(norm, law.static) + law.loose * law.static
        # Where the velocity is small compared with Z F, its direction follows from the force. An error of the force
        # then changes the direction by this error times the squared aspect ratio of the set.
        residual, bound = length(force - level_force(law, velocity)), at_rest * law.slender
    return np.where(rests, beyond, residual), np.where(rests, at_rest, bound)


def level_force(law: Law, velocity: Floats) -> Floats:
    """Return the force of a law at nonzero velocities, (n, 2) [N]."""
    along = units(velocity)
    if isinstance(law, Isotropic):
        return law.level(length(velocity))[:, None] * along
    own = law.turned(along)
    squares = law.semi_axes(own) ** 2
    norm = length(own * law.semi_axes(own))
    dry = np.divide(own * squares, norm[:, None], out=np.zeros_like(own), where=norm[:, None] > 0.0)
    return np.asarray(law.turned_back(dry) + np.reshape(law.viscosity, (-1, 1)) * velocity)


def approximation(law: Law, x: Floats, Z: Floats) -> Pair:
    """Return the forces (46), (57), (59) at x, (n, 2), and the |x| of break-away, (n,)."""
    r, phi = length(x), level_force(law, x)
    n = length(phi)
    limit = Z * n
    share = (limit / np.maximum(r, 1e-300))[:, None]
    sliding = phi + share * (n[:, None] * units(x) - phi)
    return np.where((r <= limit)[:, None], x / Z[:, None], sliding), limit


def slides_though_it_could_stick(law: Law, force: Floats, velocity: Floats, mobility: float) -> Mask:
    """Return where a contact slides although it could stick under x = v + Z f, (n,)."""
    if law.approximate or not isinstance(law, Isotropic) or mobility == 0.0:
        return np.zeros(len(force), bool)
    pull = length(velocity + mobility * force)
    held = pull < mobility * law.static * (1.0 - 64.0 * EPS - law.loose)
    return np.asarray(velocity.any(axis=1) & held)


_STEPS = 200
"""Number of bisections that always reaches adjacent floating-point numbers."""

_NEAR = 64.0 * EPS
"""Relative distance to the limit within which rounding decides whether a contact sticks."""


def implicit(law: Law, x: Floats, Z: Floats) -> tuple[Floats, Mask, Mask]:
    """Solve for the forces, (n, 2) [N].

    Parameters
    ----------
    law : Law
        Friction law.
    x : (n, 2) array
        Velocities without friction [m/s].
    Z : (n,) array
        Mobilities [m/(N s)].

    Returns
    -------
    force : (n, 2) array
        Friction forces [N].
    rests : (n,) array
        Where the contact sticks.
    near : (n,) array
        Where rounding decides whether it sticks.
    """
    if law.approximate:
        force, limit = approximation(law, x, Z)
        pull = length(x)
    elif isinstance(law, Isotropic):
        pull, limit, force = length(x), Z * law.static, x / Z[:, None]
        slides = ~(pull <= limit)
        if slides.any():
            # Solve s + Z g(s) = |x| for the speed s by bisection between 0 and |x|.
            low, high = np.zeros_like(pull[slides]), pull[slides].copy()
            for _ in range(_STEPS):
                middle = 0.5 * (low + high)
                more = middle + Z[slides] * law.level(middle) > pull[slides]
                if ((middle == low) | (middle == high)).all():
                    break
                low, high = np.where(more, low, middle), np.where(more, middle, high)
            force[slides] = law.level(0.5 * (low + high))[:, None] * units(x[slides])
    else:
        force, pull = _solve_quarters(law, x, Z)
        limit = np.ones_like(pull)
    return force, pull <= limit, np.asarray(np.abs(pull - limit) <= _NEAR * law.slender * limit)


def _solve_quarters(law: Quarters, x: Floats, Z: Floats) -> Pair:
    """Return the forces, (n, 2), and the norms of x/Z relative to the set, (n,): up to 1 the contact sticks.

    |c/(b + m)| = 1 is solved for m > 0 by Newton's method on 1/|c/(b + m)| = 1. The left side is concave, so the
    iteration converges from below; m is 0 where |c/b| is at most 1.
    """
    own, z = law.turned(x), Z[:, None]
    axes = law.semi_axes(own)
    pull = length(own / (z * axes))
    c, b, m = own * axes, z * axes**2, np.zeros(len(x))
    for _ in range(_STEPS):
        y = c / (b + m[:, None])
        size = length(y)
        slope = (y**2 / (b + m[:, None])).sum(axis=1)
        step = np.where(size > 1.0, size**2 * (size - 1.0) / np.where(slope > 0.0, slope, 1.0), 0.0)
        if not (step > EPS * m).any():
            break
        m = m + step
    normal = m[:, None]
    dry = own / (z + normal / axes**2)
    slides = dry + law.viscosity * normal / ((1.0 + z * law.viscosity) * axes**2) * dry
    return np.where((pull <= 1.0)[:, None], x / z, law.turned_back(slides)), pull
