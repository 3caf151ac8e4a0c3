"""Custom friction laws: written as Python functions, as exact as the built-in laws, and restricted to arithmetic."""

from __future__ import annotations

import dataclasses
import inspect
import math
from typing import Any

import numpy as np
import pytest

from haptics import ClosedForm, CustomLaw, Elliptic, MasslessImpedance, friction_law, simulate
from haptics.elements.tables import make_law
from haptics.errors import AmbiguousLawWarning, ConfigurationError
from haptics.friction.custom_law import build_interpreted
from haptics.friction.laws import Coulomb, DeadZoneViscous, Stribeck
from tests.haptics.references import EPS, rubber, sliding_force
from tests.haptics.strategies import Meeting, make, wandering

SLOPE = "def level(speed, force=4.0):\n    return force"


# ---- writing a law


@friction_law
def exponential(speed, kinetic=4.0, static=5.0, width=0.1, viscosity=0.0):
    return kinetic + (static - kinetic) * math.exp(-speed / width) + viscosity * speed


@friction_law
def gap(speed, force=4.0, viscosity=8.0, width=0.05):
    """A law with local names, conditions and annotations."""
    extra: float = 0.0
    beyond = speed - width
    if beyond > 0.0 and not force < 0.0:
        extra += viscosity * beyond
    return force + max(extra, 0.0) if force > 0.0 else abs(extra)


def test_function_with_defaults_becomes_a_law():
    @friction_law
    def constant(speed, force=4.0):
        return force

    law = constant(force=3.0)
    assert law.title == "constant"
    assert constant().parameters == {"force": 4.0}
    assert law.breakaway_force == 3.0
    assert law.mobility_limit == np.inf
    np.testing.assert_array_equal(law((-0.3, 0.4)), 3.0 * np.array([-0.3, 0.4]) / 0.5)


def test_parameters_are_given_by_name():
    law = rubber(viscosity=2.0, static=6.0)
    assert law.parameters == {"static": 6.0, "kinetic": 4.0, "width": 0.1, "viscosity": 2.0}
    for number in (np.float32(6.0), np.float64(6.0), np.int64(6), 6):
        assert law == rubber(static=number, viscosity=2)
    assert hash(law) == hash(rubber(static=6, viscosity=2))
    assert law != rubber(static=6.0)
    assert law != exponential(static=6.0)
    with pytest.raises(dataclasses.FrozenInstanceError):
        law.values = ()


def test_source_is_the_function_alone():
    law = gap()
    assert law.source.startswith("def gap(speed, force=4.0, viscosity=8.0, width=0.05):\n")
    assert CustomLaw.from_table(law.source, law.parameters) == law
    assert make_law({"name": "custom", "source": law.source, **law.parameters}) == law
    noisy = "import os\nraise SystemExit\n" + inspect.getsource(gap.__wrapped__)
    assert CustomLaw.from_table(noisy, {}) == law


@pytest.mark.parametrize(
    "expression", ["np.exp(-speed)", "math.exp(-speed)", "2 ** -speed", "speed // 1 + speed % 1", "float(speed > 1)"]
)
def test_arithmetic_and_functions_of_math(expression):
    law = CustomLaw.from_table(f"def level(speed):\n    return {expression}", {})
    for speed in (1e-9, 0.5, 1.0, 1.7, 12.25):
        expected = eval(expression, {"np": np, "math": __import__("math"), "speed": speed})
        assert law(speed) == pytest.approx(expected, rel=4 * EPS)


# ---- as exact as any other


@pytest.mark.parametrize(
    ("twin", "law"),
    [(exponential(viscosity=3.0), Stribeck(4.0, 5.0, 0.1, 3.0)), (gap(), DeadZoneViscous(4.0, 8.0, 0.05))],
)
def test_custom_law_equals_the_built_in_law(twin, law):
    x = np.random.default_rng(1).uniform(-0.2, 0.2, (500, 2))
    np.testing.assert_allclose(twin(x), law(x), rtol=1e-12)
    np.testing.assert_allclose(twin.implicit(x, 5e-4), law.implicit(x, 5e-4), rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("mobility", [1e-6, 1e-3, 1 / 16])
@pytest.mark.parametrize("reach", [0.1, 0.9, 0.999999, 1.1, 1e3])
def test_very_steep_law_is_solved_to_the_last_digits(mobility, reach):
    """The smooth Coulomb law of many simulations: its level rises from 0 within a micrometre per second."""
    law = CustomLaw.from_table("def tanh(speed, force=4.0):\n    return force * math.tanh(speed / 1e-6)", {})
    meeting = Meeting(law, 1e-3 / mobility)
    x = reach * meeting.mobility * 4.0 * np.array([[1.0, 0.0]])
    found = meeting.answers(x)
    force, speed = found.force[0, 0], found.velocity[0, 0]
    assert not found.sticking[0]
    assert force == pytest.approx(4.0 * np.tanh(speed / 1e-6), rel=1e-14)
    assert speed + meeting.mobility * force == pytest.approx(x[0, 0], rel=1e-13)


def test_law_receives_all_of_eight_parameters():
    names = ", ".join(f"a{k}=0.0" for k in range(8))
    terms = " + ".join(f"a{k} * {10**k}" for k in range(8))
    law = CustomLaw.from_table(f"def level(speed, {names}):\n    return {terms}", {f"a{k}": k + 1.0 for k in range(8)})
    assert law(0.1) == 87654321.0


def test_laws_in_use_at_once_stay_independent():
    speeds = np.array([[1e-3], [0.05], [1.0]])
    one, two, three = rubber(static=6.0), rubber(static=7.0), exponential(static=6.0)
    before = [law.implicit(speeds, 1e-3) for law in (one, two, three)]
    for law, kept in zip((one, two, three), before, strict=True):
        np.testing.assert_array_equal(law.implicit(speeds, 1e-3), kept)
    for law in (one, two):
        np.testing.assert_allclose(law(speeds)[:, 0], sliding_force(law, speeds[:, 0]), rtol=1e-14)
    assert not np.array_equal(before[0], before[1])
    assert not np.array_equal(before[0], before[2])


# ---- refused laws


REFUSED: dict[str, tuple[str, str]] = {
    "a name from outside": ("def f(speed):\n    return GRAVITY * speed", "'GRAVITY' comes from outside"),
    "a builtin": ("def f(speed):\n    return open('x')", "'open' comes from outside"),
    "a module": ("def f(speed):\n    m = math\n    return 1.0", "'math' comes from outside"),
    "a way out": ("def f(speed):\n    return (1).__class__", "attribute '__class__'"),
    "itself": ("def f(speed):\n    return f(speed)", "'f' comes from outside"),
    "an attribute of a number": ("def f(speed):\n    return speed.real", "attribute 'real'"),
    "a deep attribute": ("def f(speed):\n    return np.random.rand()", "np.random|attribute 'rand'"),
    "a nested function": ("def f(speed):\n    def g():\n        return 1.0\n    return g()", "FunctionDef"),
    "a global": ("def f(speed):\n    global x\n    return 1.0", "Global"),
    "a try": ("def f(speed):\n    try:\n        return 1.0\n    finally:\n        speed = 1.0", "Try"),
    "a coroutine": ("async def f(speed):\n    return 1.0", "0 functions"),
    "names only": ("def f(speed, *, a=1.0, **more):\n    return a", "must be written f"),
    "an infinite default": ("def f(speed, a=1e999):\n    return a", "the default of a = inf"),
    "two answers": ("def f(speed):\n    return 1.0, 2.0", "Tuple is not allowed"),
    "negative at high speed": ("def f(speed):\n    return 99.0 - speed", r"level at 99\.\d* m/s"),
    "a hidden attribute": ("def f(speed):\n    return math.__loader__", "math.__loader__ is not allowed"),
    "an import": ("def f(speed):\n    import os\n    return 1.0", "Import is not allowed"),
    "a lambda": ("def f(speed):\n    return (lambda: 1.0)()", "Lambda"),
    "a comprehension": ("def f(speed):\n    return max([speed for _ in range(2)])", "ListComp|List|comprehension"),
    "an endless loop": ("def f(speed):\n    while True:\n        speed = 1.0\n    return speed", "While"),
    "a default that runs": ("def f(speed, a=print(1)):\n    return a", "the default of a = .*must be a finite number"),
    "a missing default": ("def f(speed, a):\n    return a", "every parameter after the speed with a default"),
    "no speed": ("def f():\n    return 1.0", "must be written f"),
    "any number of parameters": ("def f(speed, *more):\n    return 1.0", "must be written f"),
    "nine parameters": (
        "def f(speed, " + ", ".join(f"a{k}=1.0" for k in range(9)) + "):\n    return a8",
        "has 9 parameters, 8 at most",
    ),
    "two functions": (SLOPE + "\n" + SLOPE.replace("level", "other"), "2 functions where there must be one"),
    "no function": ("speed = 3.0", "0 functions"),
    "bad syntax": ("def f(speed:\n    return", "not valid Python"),
    "a null byte": ("def f(speed):\n    return 1.0\0", "not valid Python"),
    "many brackets": ("def f(speed):\n    return " + "(" * 300 + "speed" + ")" * 300, "not valid Python"),
    "no answer": ("def f(speed):\n    speed + 1.0", "returns nothing"),
    "an answer now and then": ("def f(speed):\n    if speed > 1:\n        return 3.0", "at 0 m/s .*returns nothing"),
    "a name without a value": ("def f(speed):\n    if speed > 1:\n        x = 3.0\n    return x", "at 0 m/s .*'x'"),
    "a huge sum": ("def f(speed):\n    return " + "1.0 + " * 3000 + "1.0", "not valid Python|2000 at most"),
    "a huge text": ("def f(speed):\n    return speed" + " # long" * 60_000, "has 420030 characters; 400000 at most"),
    "many lines": ("def f(speed):\n" + "    x = speed\n" * 700 + "    return x", "has 3506 parts .*; 2000 at most"),
    "an endless name": ("def f(speed):\n    " + "x" * 65 + " = 1.0\n    return 1.0", "more than 64 characters"),
    "huge whole numbers": ("def f(speed):\n    return 9**9**9**9", "nan|inf"),
    "a reserved name": ("def f(speed, source=1.0):\n    return source", "cannot be called 'source'"),
    "a default too large for a float": ("def f(speed, a=1" + "0" * 400 + "):\n    return a", "the default of a = 1000"),
    "signs without end": ("def f(speed):\n    return " + "-" * 3000 + "speed", "not valid Python|nested too deeply"),
    "the same name twice": ("def f(speed, speed=1.0):\n    return speed", "duplicate argument 'speed'"),
    "an eternal word": ("def f(speed):\n    a = 'a' * 1000000000\n    return 1.0", "'a' is not a number"),
    "another math": ("def f(speed):\n    math = speed\n    return math", "'math' cannot be given another meaning"),
    "an unknown function": ("def f(speed):\n    return math.gamma(speed)", "math.gamma is not allowed .*tanh of math"),
    "a complex level": ("def f(speed):\n    return 1j * speed", "'1j' is not a number"),
    "a negative level": ("def f(speed, a=4.0):\n    return a - speed", r"level at 4\.\d+ m/s is -0\.\d+ N"),
    "no number": ("def f(speed):\n    return math.log(speed - 1.0)", "level at 0 m/s is nan N"),
    "infinity": ("def f(speed):\n    return 1.0 / speed", "level at 0 m/s is inf N"),
}


@pytest.mark.parametrize(("source", "complaint"), REFUSED.values(), ids=REFUSED.keys())
def test_source_that_is_no_law_is_refused_in_one_line(source, complaint):
    with pytest.raises(ConfigurationError, match=complaint) as caught:
        CustomLaw.from_table(source, {})
    assert str(caught.value).isprintable()
    assert str(caught.value).startswith("law")


@pytest.mark.parametrize("name", ["abs", "min", "max", "float", "math", "np", "_level", "speed"])
def test_function_may_have_the_name_of_a_function_it_calls(name):
    """The function must not call itself by that name."""
    source = f"def {name}(speed, force=4.0):\n    return min(abs(float(force)), max(math.sqrt(16.0), np.pi))"
    law = CustomLaw.from_table(source, {})
    assert law(0.1) == 4.0
    assert law.title == name
    level = build_interpreted(source)
    assert level(0.1, -3.0) == 3.0


def test_length_limit_ignores_the_layout():
    source = "def f(s,a=4.):\n x=a\n" + " x=a\n" * 380 + " return x" + " " * 20_000
    law = CustomLaw.from_table(source, {})
    assert CustomLaw.from_table(law.source, {}) == law


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), "5", None, True, [5.0], {}, 1j, 10**400])
def test_values_must_be_finite_numbers(bad):
    with pytest.raises(ConfigurationError, match=r"law\.static = .*: must be a finite number") as caught:
        rubber(static=bad)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("values", [(), (("level", 4.0),), (("force", 4.0), ("more", 1.0))])
def test_a_law_made_by_hand_needs_the_values_of_its_function(values):
    with pytest.raises(ConfigurationError, match="it has the parameters force"):
        CustomLaw(SLOPE, values)


@pytest.mark.parametrize(
    ("values", "complaint"),
    [({"static": -1.0}, "level at 0 m/s is -1 N"), ({"width": 0.0}, "must be finite"), ({"width": -0.1}, "level at")],
)
def test_values_that_give_no_friction_are_refused(values, complaint):
    with pytest.raises(ConfigurationError, match=complaint):
        rubber(**values)


def test_function_without_source_or_name_or_with_outside_names_is_refused():
    made_at_run_time: dict[str, Any] = {}
    exec(SLOPE, made_at_run_time)
    outside = 3.0

    def with_outside_names(speed, force=4.0):
        return force + outside * speed

    for function, complaint in (
        *((one, "law") for one in (made_at_run_time["level"], len, 3.0, lambda speed: 4.0)),
        (with_outside_names, "'outside' comes from outside"),
    ):
        with pytest.raises(ConfigurationError, match=complaint) as caught:
            friction_law(function)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("table", "complaint"),
    [
        ({"name": "custom"}, "law.source is missing"),
        ({"name": "custom", "source": 3}, "law.source is missing"),
        ({"name": "custom", "source": SLOPE, "forse": 3.0}, "Did you mean 'law.force'"),
        ({"name": "custom", "source": SLOPE, "force": "3"}, "must be a finite number"),
        ({"name": "custom", "source": "def f(speed, p=0.0):\n    return 4.0 % p"}, r"level at 0 m/s is (nan|inf) N"),
    ],
)
def test_invalid_table_of_a_custom_law_is_refused(table, complaint):
    with pytest.raises(ConfigurationError, match=complaint):
        make_law(table)
    assert make_law({"name": "custom", "source": SLOPE, "force": 3})(0.1) == 3.0


# --- levels that jump


JUMPS_UP = "def f(speed, step=0.1):\n    return 3.0 if speed < step else 5.0"
JUMPS_DOWN = "def f(speed, step=1.0):\n    return 5.0 if speed < step else 3.0"
Z = 1.0 / 16.0


def custom(source, **values):
    return CustomLaw.from_table(source, values)


@pytest.mark.parametrize(
    "source",
    [
        "def f(speed, force=4.0):\n    return force * (speed > 0.0)",
        "def f(speed, force=4.0):\n    return 0.0 if speed == 0.0 else force",
        "def f(speed, force=4.0):\n    return force if not speed == 0.0 else 1.0",
    ],
)
def test_level_at_rest_is_the_limit_of_slow_sliding(source):
    own, coulomb = (simulate(make("C", law), wandering("C")) for law in (custom(source), Coulomb(4.0)))
    assert custom(source).breakaway_force == 4.0
    np.testing.assert_array_equal(own.sticking, coulomb.sticking)
    np.testing.assert_allclose(own.output, coulomb.output, rtol=0.0, atol=1e-12)


@pytest.mark.parametrize("mobility", [Z, 5e-4])
def test_upward_jump_holds_the_speed_while_the_force_rises(mobility):
    """The speed stays at the jump while the force goes from the lower to the upper level: the exact pair of (16)."""
    step, low, high = 0.1, 3.0, 5.0
    x = np.linspace(step + mobility * low, step + mobility * high, 41)
    forces = custom(JUMPS_UP).implicit(x[:, None], mobility)[:, 0]
    np.testing.assert_allclose(forces, (x - step) / mobility, rtol=0.0, atol=1e-12 / mobility)
    beyond = np.array([step + mobility * low - 1e-3, step + mobility * high + 1e-3])
    np.testing.assert_allclose(custom(JUMPS_UP).implicit(beyond[:, None], mobility)[:, 0], [low, high], rtol=1e-14)


@pytest.mark.parametrize("step", [1e-3, 0.05, 1.0, 50.0])
@pytest.mark.parametrize("mobility", [5e-4, Z])
def test_downward_jump_breaks_condition_15_at_every_mobility(step, mobility):
    assert custom(JUMPS_DOWN, step=step).mobility_limit < 1e-6
    with pytest.warns(AmbiguousLawWarning):
        custom(JUMPS_DOWN, step=step).implicit(0.1, mobility)


def test_rounding_of_a_constant_level_is_no_fall():
    wavy = custom("def f(speed, force=4.0):\n    return force + 0.1 * (speed / 3.0 + 1.0) - 0.1 * speed / 3.0 - 0.1")
    assert np.ptp([float(wavy(s)) for s in np.linspace(0.1, 90.0, 500)]) > 0.0
    assert wavy.mobility_limit > 1e3


def test_undetected_negative_level_gives_no_force():
    dip = custom("def f(speed):\n    return 5.0 - 7.0 * math.exp(-(((speed - 2.0025) / 5e-4) ** 2))")
    assert float(dip(2.0025)) == 0.0


def test_element_survives_the_smallest_and_largest_inputs():
    for wrapped in (Elliptic(0.3, 0.2), ClosedForm(Elliptic(0.3, 0.2)), custom(JUMPS_UP)):
        element = MasslessImpedance(wrapped, 6000.0, 10.0)
        for speed in (5e-324, 1e-310, 1e-200, 1e150, 1e200):
            assert np.isfinite(element.step((speed, -speed))).all()
            assert np.isfinite(element.step((0.1, 0.0))).all()
