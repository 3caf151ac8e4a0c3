"""Friction laws that somebody wrote: three lines of Python, as exact as those of the house, and nothing else."""

from __future__ import annotations

import dataclasses
import inspect
import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from haptics import Coulomb, CoulombViscous, CustomLaw, DeadZoneViscous, Law, Stribeck, friction_law, simulate
from haptics.elements.tables import make_law
from haptics.errors import ConfigurationError
from haptics.friction.law_source import build_interpreted
from tests.haptics.meetings import Meeting
from tests.haptics.references import EPS, rubber, sliding_force
from tests.haptics.strategies import KINDS, PHYSICS, largest, log_floats, make, wandering

SLOPE = "def level(speed, force=4.0):\n    return force"


# ---- three lines


@friction_law
def exponential(speed, kinetic=4.0, static=5.0, width=0.1, viscosity=0.0):
    return kinetic + (static - kinetic) * math.exp(-speed / width) + viscosity * speed


@friction_law
def gap(speed: float, force: float = 4.0, viscosity: float = 8.0, width: float = 0.05) -> float:
    """A law with everything that is allowed in it: words, names of its own, conditions, annotations."""
    extra: float = 0.0
    beyond = speed - width
    if beyond > 0.0 and not force < 0.0:
        extra += viscosity * beyond
    return force + max(extra, 0.0) if force > 0.0 else abs(extra)


def test_a_function_with_defaults_is_a_law() -> None:
    @friction_law
    def constant(speed, force=4.0):
        return force

    law = constant(force=3.0)
    assert isinstance(law, CustomLaw)
    assert law.title == "constant"
    assert constant.__name__ == "constant"
    assert law.parameters == {"force": 3.0}
    assert constant().parameters == {"force": 4.0}
    assert law.breakaway_force == 3.0
    assert law.mobility_limit == np.inf
    assert law(0.2) == 3.0
    np.testing.assert_array_equal(law((-0.3, 0.4)), 3.0 * np.array([-0.3, 0.4]) / 0.5)


def test_parameters_are_given_by_name_in_any_order() -> None:
    law = rubber(viscosity=2.0, static=6.0)
    assert law.parameters == {"static": 6.0, "kinetic": 4.0, "width": 0.1, "viscosity": 2.0}
    assert law == rubber(static=6, viscosity=2)
    assert hash(law) == hash(rubber(static=6.0, viscosity=2.0))
    assert law != rubber(static=6.0)
    assert law != exponential(static=6.0)
    with pytest.raises(dataclasses.FrozenInstanceError):
        law.values = ()  # type: ignore[misc]


def test_its_text_is_the_function_alone() -> None:
    """No decorator, no annotation, nothing around it: it can be compiled anywhere, and again from its own text."""
    law = gap()
    assert law.source.startswith("def gap(speed, force=4.0, viscosity=8.0, width=0.05):\n")
    assert CustomLaw.from_table(law.source, law.parameters) == law
    assert make_law({"name": "custom", "source": law.source, **law.parameters}) == law
    noisy = "import os\nraise SystemExit\n" + inspect.getsource(gap.__wrapped__)  # type: ignore[attr-defined]
    assert CustomLaw.from_table(noisy, {}) == law


@pytest.mark.parametrize(
    "expression",
    [
        "np.exp(-speed)",
        "math.exp(-speed)",
        "2 ** -speed",
        "speed // 1 + speed % 1",
        "float(speed > 1)",
        "4",
        "True + 1",
    ],
)
def test_arithmetic_and_functions_of_math(expression: str) -> None:
    law = CustomLaw.from_table(f"def level(speed):\n    return {expression}", {})
    for speed in (1e-9, 0.5, 1.0, 1.7, 12.25):
        expected = eval(expression, {"np": np, "math": __import__("math"), "speed": speed})
        assert law(speed) == pytest.approx(expected, rel=4 * EPS)


# ---- as exact as any other


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("twin", "law"),
    [
        (exponential(viscosity=3.0), Stribeck(4.0, 5.0, 0.1, 3.0)),
        (gap(), DeadZoneViscous(4.0, 8.0, 0.05)),
        (rubber(static=4.0, kinetic=4.0), Coulomb(4.0)),
        (rubber(static=4.0, kinetic=4.0, viscosity=2.0), CoulombViscous(4.0, 2.0)),
    ],
)
def test_in_every_element_it_is_the_law_it_was_written_as(kind: str, twin: Law, law: Law) -> None:
    inputs = wandering(kind, 1500)
    run, expected = simulate(make(kind, twin), inputs), simulate(make(kind, law), inputs)
    for column in ("output", "friction_force", "displacement", "velocity"):
        size = max(1.0, largest(getattr(expected, column)))
        assert largest(getattr(run, column) - getattr(expected, column)) <= 1e-11 * size
    np.testing.assert_array_equal(run.sticking, expected.sticking)


@pytest.mark.parametrize("mobility", [1e-6, 1e-3, 1 / 16])
@pytest.mark.parametrize("reach", [0.1, 0.9, 0.999999, 1.1, 1e3])
def test_a_law_as_steep_as_a_wall_is_solved_to_the_last_digits(mobility: float, reach: float) -> None:
    """The smooth "Coulomb" law that many simulations use: its level rises from 0 within a micrometre per second."""
    law = CustomLaw.from_table("def tanh(speed, force=4.0):\n    return force * math.tanh(speed / 1e-6)", {})
    meeting = Meeting(law, 1e-3 / mobility)
    x = reach * meeting.mobility * 4.0 * np.array([[1.0, 0.0]])
    found = meeting.answers(x)
    force, speed = found.force[0, 0], found.velocity[0, 0]
    assert not found.sticking[0]
    assert force == pytest.approx(4.0 * np.tanh(speed / 1e-6), rel=1e-14)
    assert speed + meeting.mobility * force == pytest.approx(x[0, 0], rel=1e-13)


@PHYSICS
@given(st.floats(0.5, 20.0), log_floats(1e-3, 1.0), log_floats(1e-3, 100.0))
def test_a_law_of_eight_parameters_gets_each_of_them(force: float, width: float, speed: float) -> None:
    weights = [force * 2.0**-k for k in range(8)]
    names = ", ".join(f"a{k}=0.0" for k in range(8))
    terms = " + ".join(f"a{k} * {k + 1}" for k in range(8))
    law = CustomLaw.from_table(
        f"def level(speed, {names}):\n    return {terms}", {f"a{k}": weight for k, weight in enumerate(weights)}
    )
    assert law(speed * width) == pytest.approx(sum((k + 1) * weight for k, weight in enumerate(weights)), rel=1e-14)


def test_the_sign_of_zero_is_part_of_a_parameter() -> None:
    @friction_law
    def signed(speed, offset=0.0):  # type: ignore[no-untyped-def]
        return 2.0 + math.copysign(1.0, offset)

    assert [signed(offset=offset).breakaway_force for offset in (0.0, -0.0, 0.0)] == [3.0, 1.0, 3.0]


def test_two_laws_at_once_keep_apart() -> None:
    """Same text with other numbers, other text with the same numbers, one after the other."""
    speeds = np.array([[1e-3], [0.05], [1.0]])
    one, two, three = rubber(static=6.0), rubber(static=7.0), exponential(static=6.0)
    before = [law.implicit(speeds, 1e-3) for law in (one, two, three)]
    for law, kept in zip((one, two, three), before, strict=True):
        np.testing.assert_array_equal(law.implicit(speeds, 1e-3), kept)
    for law in (one, two):
        np.testing.assert_allclose(law(speeds)[:, 0], sliding_force(law, speeds[:, 0]), rtol=1e-14)
    assert not np.array_equal(before[0], before[1])
    assert not np.array_equal(before[0], before[2])


# ---- what is refused


REFUSED: dict[str, tuple[str, str]] = {
    "a name from outside": ("def f(speed):\n    return GRAVITY * speed", "'GRAVITY' comes from outside"),
    "a builtin": ("def f(speed):\n    return open('x')", "'open' comes from outside"),
    "itself": ("def f(speed):\n    return f(speed)", "'f' comes from outside"),
    "a module": ("def f(speed):\n    m = math\n    return 1.0", "'math' comes from outside"),
    "an attribute": ("def f(speed):\n    return speed.real", "attribute 'real'"),
    "a way out": ("def f(speed):\n    return (1).__class__", "attribute '__class__'"),
    "a hidden attribute": ("def f(speed):\n    return math.__loader__", "math.__loader__ is not allowed"),
    "a deep attribute": ("def f(speed):\n    return np.random.rand()", "np.random|attribute 'rand'"),
    "an import": ("def f(speed):\n    import os\n    return 1.0", "Import is not allowed"),
    "a nested function": ("def f(speed):\n    def g():\n        return 1.0\n    return g()", "FunctionDef"),
    "a lambda": ("def f(speed):\n    return (lambda: 1.0)()", "Lambda"),
    "a comprehension": ("def f(speed):\n    return max([speed for _ in range(2)])", "ListComp|List|comprehension"),
    "an endless loop": ("def f(speed):\n    while True:\n        speed = 1.0\n    return speed", "While"),
    "a global": ("def f(speed):\n    global x\n    return 1.0", "Global"),
    "a try": ("def f(speed):\n    try:\n        return 1.0\n    finally:\n        speed = 1.0", "Try"),
    "a default that runs": ("def f(speed, a=print(1)):\n    return a", "the default of a = .*must be a finite number"),
    "a default that is a word": (
        "def f(speed, a='x'):\n    return 1.0",
        "the default of a = .*must be a finite number",
    ),
    "a missing default": ("def f(speed, a):\n    return a", "every parameter after the speed with a default"),
    "a speed with a default": ("def f(speed=1.0):\n    return 1.0", "must be written f"),
    "no speed": ("def f():\n    return 1.0", "must be written f"),
    "any number of parameters": ("def f(speed, *more):\n    return 1.0", "must be written f"),
    "any names": ("def f(speed, **more):\n    return 1.0", "must be written f"),
    "names only": ("def f(speed, *, a=1.0):\n    return a", "must be written f"),
    "places only": ("def f(speed, /, a=1.0):\n    return a", "must be written f"),
    "nine parameters": (
        "def f(speed, " + ", ".join(f"a{k}=1.0" for k in range(9)) + "):\n    return a8",
        "has 9 parameters, 8 at most",
    ),
    "two functions": (SLOPE + "\n" + SLOPE.replace("level", "other"), "2 functions where there must be one"),
    "no function": ("speed = 3.0", "0 functions"),
    "a coroutine": ("async def f(speed):\n    return 1.0", "0 functions"),
    "no text": ("", "0 functions"),
    "bad syntax": ("def f(speed:\n    return", "not valid Python"),
    "a null byte": ("def f(speed):\n    return 1.0\0", "not valid Python"),
    "many brackets": ("def f(speed):\n    return " + "(" * 300 + "speed" + ")" * 300, "not valid Python"),
    "no answer": ("def f(speed):\n    speed + 1.0", "returns nothing"),
    "an answer now and then": ("def f(speed):\n    if speed > 1:\n        return 3.0", "at 0 m/s .*returns nothing"),
    "a name without a value": ("def f(speed):\n    if speed > 1:\n        x = 3.0\n    return x", "at 0 m/s .*'x'"),
    "a loop": ("def f(speed):\n    for k in range(3):\n        speed += 1.0\n    return speed", "For is not allowed"),
    "a huge sum": ("def f(speed):\n    return " + "1.0 + " * 3000 + "1.0", "not valid Python|2000 at most"),
    "a huge text": ("def f(speed):\n    return speed" + " # long" * 60_000, "has 420030 characters; 400000 at most"),
    "many lines": ("def f(speed):\n" + "    x = speed\n" * 700 + "    return x", "has 3506 parts .*; 2000 at most"),
    "an endless name": ("def f(speed):\n    " + "x" * 65 + " = 1.0\n    return 1.0", "more than 64 characters"),
    "an endless name of a function": ("def " + "f" * 65 + "(speed):\n    return 1.0", "more than 64 characters"),
    "huge whole numbers": ("def f(speed):\n    return 9**9**9**9", "nan|inf"),
    "a reserved name": ("def f(speed, source=1.0):\n    return source", "cannot be called 'source'"),
    "an infinite default": ("def f(speed, a=1e999):\n    return a", "the default of a = inf"),
    "a default too large for a float": ("def f(speed, a=1" + "0" * 400 + "):\n    return a", "the default of a = 1000"),
    "signs without end": ("def f(speed):\n    return " + "-" * 3000 + "speed", "not valid Python|nested too deeply"),
    "a long sum": (
        "def f(speed):\n    return speed" + " + speed" * 500,
        "not valid Python|nested too deeply|2000 at most",
    ),
    "the same name twice": ("def f(speed, speed=1.0):\n    return speed", "duplicate argument 'speed'"),
    "an eternal word": ("def f(speed):\n    a = 'a' * 1000000000\n    return 1.0", "'a' is not a number"),
    "another math": ("def f(speed):\n    math = speed\n    return math", "'math' cannot be given another meaning"),
    "an unknown function": ("def f(speed):\n    return math.gamma(speed)", "math.gamma is not allowed .*tanh of math"),
    "a word": ("def f(speed):\n    return 'a'", "'a' is not a number"),
    "two answers": ("def f(speed):\n    return 1.0, 2.0", "Tuple is not allowed"),
    "a complex level": ("def f(speed):\n    return 1j * speed", "'1j' is not a number"),
    "a negative level": ("def f(speed, a=4.0):\n    return a - speed", r"level at 4\.\d+ m/s is -0\.\d+ N"),
    "no number": ("def f(speed):\n    return math.log(speed - 1.0)", "level at 0 m/s is nan N"),
    "infinity": ("def f(speed):\n    return 1.0 / speed", "level at 0 m/s is inf N"),
    "negative at high speed": ("def f(speed):\n    return 99.0 - speed", r"level at 99\.\d* m/s"),
}


@pytest.mark.parametrize(("source", "complaint"), REFUSED.values(), ids=REFUSED.keys())
def test_what_no_law_may_do_is_refused_in_one_line(source: str, complaint: str) -> None:
    with pytest.raises(ConfigurationError, match=complaint) as caught:
        CustomLaw.from_table(source, {})
    assert str(caught.value).isprintable()
    assert str(caught.value).startswith("law")


@pytest.mark.parametrize("name", ["abs", "min", "max", "float", "math", "np", "_level", "speed"])
def test_a_function_may_be_called_like_what_it_calls(name: str) -> None:
    """By its own name it would call itself: without end, or for ever in compiled code."""
    source = f"def {name}(speed, force=4.0):\n    return min(abs(float(force)), max(math.sqrt(16.0), np.pi))"
    law = CustomLaw.from_table(source, {})
    assert law(0.1) == 4.0
    assert law.title == name
    level = build_interpreted(source)
    assert level(0.1, -3.0) == 3.0


def test_the_length_of_a_law_is_what_it_says_however_it_is_laid_out() -> None:
    """9 262 characters were refused as 19 714: those of the text that Python writes of it."""
    source = "def f(s,a=4.):\n x=a\n" + " x=a\n" * 380 + " return x" + " " * 20_000
    law = CustomLaw.from_table(source, {})
    assert CustomLaw.from_table(law.source, {}) == law


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), "5", None, True, [5.0], {}, 1j, 10**400])
def test_values_must_be_numbers(bad: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"law\.static = .*: must be a finite number") as caught:
        rubber(static=bad)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("number", [np.float32(5.0), np.float64(5.0), np.int64(5), 5])
def test_values_may_be_numbers_of_any_kind(number: Any) -> None:
    assert rubber(static=number) == rubber(static=5.0)


@pytest.mark.parametrize("values", [(), (("level", 4.0),), (("force", 4.0), ("more", 1.0))])
def test_a_law_made_by_hand_needs_the_values_of_its_function(values: Any) -> None:
    with pytest.raises(ConfigurationError, match="it has the parameters force"):
        CustomLaw(SLOPE, values)


def test_values_must_have_a_name_that_exists() -> None:
    with pytest.raises(ConfigurationError, match=re.escape("unknown setting 'law.statik'. Did you mean 'law.static'?")):
        rubber(statik=5.0)


@pytest.mark.parametrize(
    ("values", "complaint"),
    [({"static": -1.0}, "level at 0 m/s is -1 N"), ({"width": 0.0}, "must be finite"), ({"width": -0.1}, "level at")],
)
def test_values_that_make_no_friction_are_refused(values: dict[str, float], complaint: str) -> None:
    with pytest.raises(ConfigurationError, match=complaint):
        rubber(**values)


def _made_at_run_time() -> Callable[..., float]:
    scope: dict[str, Any] = {}
    exec(SLOPE, scope)
    return scope["level"]  # type: ignore[no-any-return]


@pytest.mark.parametrize("function", [_made_at_run_time(), len, 3.0, lambda speed: 4.0])
def test_what_has_no_text_or_no_name_is_refused(function: Any) -> None:
    with pytest.raises(ConfigurationError, match="law") as caught:
        friction_law(function)
    assert "\n" not in str(caught.value)


def test_a_function_is_refused_when_it_is_decorated_not_when_it_is_used() -> None:
    outside = 3.0

    with pytest.raises(ConfigurationError, match="'outside' comes from outside"):

        @friction_law
        def level(speed, force=4.0):
            return force + outside * speed


@pytest.mark.parametrize(
    ("table", "complaint"),
    [
        ({"name": "custom"}, "law.source is missing"),
        ({"name": "custom", "source": 3}, "law.source is missing"),
        ({"name": "custom", "source": SLOPE, "forse": 3.0}, "Did you mean 'law.force'"),
        ({"name": "custom", "source": SLOPE, "force": "3"}, "must be a finite number"),
    ],
)
def test_tables_of_custom_laws(table: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ConfigurationError, match=complaint):
        make_law(table)
    assert make_law({"name": "custom", "source": SLOPE, "force": 3})(0.1) == 3.0
