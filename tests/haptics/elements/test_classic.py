"""What every classic model must do: slide with the force of its law, turn with the coordinates, refuse bad settings."""

from __future__ import annotations

import dataclasses
import re
import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from haptics import (
    Coulomb,
    CoulombViscous,
    DeadZoneViscous,
    Elliptic,
    GaussianStribeck,
    Stribeck,
    friction_law,
    simulate,
)
from haptics.device import Causality
from haptics.elements.classic.models import CLASSICS, Iwan
from haptics.elements.models import Element
from haptics.errors import AmbiguousLawWarning, ConfigurationError
from haptics.friction.law import Law
from tests.haptics.strategies import PHYSICS, Array, before, laws, log_floats, norms, wandering

CLASSES = [cls for forms in CLASSICS.values() for cls in forms.values()]
IMPEDANCES = [cls for cls in CLASSES if cls.causality is Causality.IMPEDANCE]
ADMITTANCES = [cls for cls in CLASSES if cls.causality is Causality.ADMITTANCE]
LAWS: dict[str, Law] = {
    law.name: law
    for law in (
        Coulomb(4.0),
        CoulombViscous(4.0, 8.0),
        Stribeck(3.0, 4.0, 0.1, 2.0),
        GaussianStribeck(3.0, 4.0, 0.1, 2.0),
        DeadZoneViscous(4.0, 20.0, 0.05),
    )
}
every_class = pytest.mark.parametrize("cls", CLASSES)
every_law = pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)


def build(cls: type[Element], law: Law, **values: Any) -> Element:
    """Build an element whose law may be ambiguous for it: only Iwan's solves a law at all."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AmbiguousLawWarning)
        return cls(law, **values)  # type: ignore[call-arg]


def inputs_of(cls: type[Element], count: int = 2000, seed: int = 1) -> Array:
    """Smooth random input in the plane that makes an element of default parameters stick and slide."""
    return wandering("A" if cls.causality is Causality.ADMITTANCE else "C", count, seed)


def own_fields(cls: type[Element]) -> list[dataclasses.Field[Any]]:
    return [field for field in dataclasses.fields(cls) if field.name != "law"]  # type: ignore[arg-type]


# ---- the table


def test_the_table_leads_to_every_class_by_name_and_causality() -> None:
    for name, forms in CLASSICS.items():
        for causality, cls in forms.items():
            assert (cls.model, cls.causality) == (name, causality)
    assert len(set(CLASSES)) == len(CLASSES) == 14
    assert {name for name, forms in CLASSICS.items() if len(forms) == 2} == {
        "explicit-coulomb",
        "viscous-ramp",
        "karnopp",
        "quinn",
    }


# ---- fair comparison: the force of the law


@every_law
@pytest.mark.parametrize("cls", IMPEDANCES)
@pytest.mark.parametrize("direction", [0.0, 2.2])
def test_pulled_steadily_it_answers_with_the_force_of_its_law(cls: type[Element], law: Law, direction: float) -> None:
    u = 0.1 * np.array([np.cos(direction), np.sin(direction)])
    run = simulate(build(cls, law), np.tile(u, (4000, 1)))
    np.testing.assert_allclose(run.output[-50:], np.tile(law(u), (50, 1)), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(run.friction_force[-50:], run.output[-50:], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(run.velocity[-50:], np.tile(u, (50, 1)), rtol=1e-9, atol=1e-12)
    assert not run.sticking[-50:].any()


@every_law
@pytest.mark.parametrize("cls", ADMITTANCES)
def test_a_sliding_mass_meets_the_force_of_its_law(cls: type[Element], law: Law) -> None:
    angle = np.linspace(0.0, 1.5, 1000)
    force = 9.0 * np.column_stack([np.cos(angle), np.sin(angle)])
    element = build(cls, law, mass=0.5)
    element.reset(velocity=(0.05, 0.0))
    run = simulate(element, force)
    last = before(run.velocity, np.array([0.05, 0.0]))
    np.testing.assert_allclose(run.friction_force, law(last), rtol=1e-9)
    np.testing.assert_allclose((run.velocity - last) * 0.5 / 1e-3, force - run.friction_force, atol=1e-9)  # (12)


@every_class
def test_without_friction_there_is_no_force(cls: type[Element]) -> None:
    run = simulate(build(cls, Coulomb(0.0), **({"damping": 0.0} if "damping" in names(cls) else {})), inputs_of(cls))
    assert norms(run.friction_force).max() == 0.0


def names(cls: type[Element]) -> set[str]:
    return {field.name for field in own_fields(cls)}


# ---- vectors


@every_class
@pytest.mark.parametrize("angle", [np.pi, 0.5 * np.pi, 0.7])
def test_it_turns_with_the_coordinates(cls: type[Element], angle: float) -> None:
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    element, value = build(cls, LAWS["stribeck"]), inputs_of(cls)
    straight, turned = simulate(element, value), simulate(element, value @ turn.T)
    for column in ("output", "friction_force", "displacement", "velocity"):
        np.testing.assert_allclose(getattr(turned, column), getattr(straight, column) @ turn.T, atol=1e-8)
    assert (turned.sticking == straight.sticking).mean() > 0.99, "but for rounding at the very threshold"


@every_class
def test_one_dimension_is_a_second_component_of_zero(cls: type[Element]) -> None:
    value = inputs_of(cls)
    value[:, 1] = 0.0
    run = simulate(build(cls, LAWS["stribeck"]), value)
    for column in (run.output, run.friction_force, run.displacement, run.velocity):
        assert not column[:, 1].any()
        assert column.any() or column is run.displacement


@pytest.mark.parametrize("cls", [cls for cls in IMPEDANCES if "stiffness" in names(cls)])
def test_what_slips_and_what_stretches_is_the_motion(cls: type[Element]) -> None:
    value, element = inputs_of(cls), build(cls, LAWS["coulomb"])
    run = simulate(element, value)
    stretch = (run.displacement - before(run.displacement)) / 1e-3
    mass_moves_later = "mass" in names(cls)  # Fig. 12(a): the spring sees the velocity of the mass one step late
    slip = before(run.velocity) if mass_moves_later else run.velocity
    np.testing.assert_allclose(slip + stretch, value, atol=1e-11)


# ---- sticking


@every_class
def test_it_sticks_at_rest_and_not_while_it_slides(cls: type[Element]) -> None:
    slide = 9.0 if cls.causality is Causality.ADMITTANCE else 0.2
    run = simulate(build(cls, LAWS["coulomb"]), np.repeat([[0.0, 0.0], [slide, 0.0]], [5, 300], axis=0))
    assert run.sticking[:5].all()
    assert not run.sticking[-100:].any()
    assert not run.friction_force[:5].any()


# ---- any parameters


@st.composite
def elements(draw: st.DrawFn) -> Element:
    """Any model with any parameters of the physical world."""
    cls, law = draw(st.sampled_from(CLASSES)), draw(laws())
    values: dict[str, Any] = {}
    for field in own_fields(cls):
        meta = field.metadata
        if field.name == "count":
            values["count"] = draw(st.integers(1, 12))
        elif field.name == "period":
            values["period"] = draw(st.sampled_from([1e-4, 1e-3, 4e-3]))
        elif np.isfinite(meta["maximum"]):
            values[field.name] = draw(st.floats(meta["minimum"], meta["maximum"]))
        else:
            low, high = {"mass": (0.05, 10.0), "threshold": (1e-3, 0.1)}.get(field.name, (1.0, 1e5))
            values[field.name] = draw(log_floats(low, high))
    return build(cls, law, **values)


def level_range(law: Law, speed: float) -> float:
    """Greatest level of `law` up to `speed` [N]."""
    speeds = np.geomspace(1e-9, max(speed, 2e-9), 5000)  # the peak of a law with viscosity may lie close to rest
    return float(np.max(law(speeds[:, None]))) if speed > 0.0 else 0.0


@settings(PHYSICS, max_examples=75)
@given(elements(), st.integers(0, 10**6), log_floats(1e-4, 1.0))
def test_any_parameters_give_a_friction_within_the_law(element: Element, seed: int, size: float) -> None:
    scale = 20.0 * size if element.causality is Causality.ADMITTANCE else size
    run = simulate(element, scale * np.random.default_rng(seed).uniform(-1, 1, (40, 2)))
    assert np.isfinite(run.output).all()
    assert np.isfinite(run.velocity).all()
    fastest = max(norms(run.velocity).max(), scale * np.sqrt(2))
    most = max(element.law.breakaway_force, level_range(element.law, fastest))
    if "damping" not in names(type(element)) or "mass" in names(type(element)):
        assert norms(run.friction_force).max() <= most * (1 + 1e-6)
    else:
        spring = element.stiffness * norms(run.displacement).max()  # type: ignore[attr-defined]
        held = most * (1.0 + element.spread) if isinstance(element, Iwan) else element.law.breakaway_force
        assert spring <= held * (1 + 1e-9)


@every_class
def test_steps_and_copies_and_simulations_agree_to_the_bit(cls: type[Element]) -> None:
    element, value = build(cls, LAWS["coulomb"]), inputs_of(cls, 60)
    run = simulate(element, value)
    for k, row in enumerate(value):
        np.testing.assert_array_equal(element.step(row), run.output[k])
    twin = element.__copy__()
    np.testing.assert_array_equal(twin.step(value[0]), element.step(value[0]))
    element.reset()
    np.testing.assert_array_equal(simulate(element, value).output, run.output)


# ---- bad settings


def refused() -> list[tuple[type[Element], str, float]]:
    """Every parameter of every class just outside its bounds."""
    cases = []
    for cls in CLASSES:
        for field in own_fields(cls):
            meta = field.metadata
            cases.append((cls, field.name, float("nan")))
            if np.isfinite(meta["above"]):
                cases.append((cls, field.name, meta["above"]))
            if np.isfinite(meta["minimum"]):
                cases.append((cls, field.name, meta["minimum"] - 1.0))
            if np.isfinite(meta["maximum"]):
                cases.append((cls, field.name, meta["maximum"] + 1.0))
    return cases


@pytest.mark.parametrize(("cls", "name", "value"), refused())
def test_a_bad_parameter_is_refused_by_name(cls: type[Element], name: str, value: float) -> None:
    with pytest.raises(ConfigurationError, match=re.escape(f"element.{name} = ")):
        cls(LAWS["coulomb"], **{name: value})  # type: ignore[call-arg]


@every_class
def test_every_parameter_has_a_default_a_bound_and_a_meaning(cls: type[Element]) -> None:
    for field in own_fields(cls):
        assert field.default is not dataclasses.MISSING
        assert field.metadata["doc"]
        assert np.isfinite([field.metadata["minimum"], field.metadata["above"]]).any()
    assert own_fields(cls)[-1].name == "period"
    element = build(cls, LAWS["coulomb"])
    assert set(vars(element)) - {"_record"} == {"law"} | names(cls)


@every_class
def test_a_law_that_knows_directions_is_refused_by_name_where_it_cannot_be_used(cls: type[Element]) -> None:
    law = Elliptic(4.0, 2.0)
    if cls.model not in {"explicit-coulomb", "iwan"}:
        with pytest.raises(ConfigurationError, match=r"elliptic.*the same in all directions"):
            cls(law)  # type: ignore[call-arg]
        return
    value = (9.0, 9.0) if cls.causality is Causality.ADMITTANCE else (0.1, 0.1)
    run = simulate(build(cls, law), np.tile(value, (2000, 1)))
    np.testing.assert_allclose(run.friction_force[-1], law(run.velocity[-1]), rtol=1e-6)


@every_class
def test_what_is_no_law_is_refused(cls: type[Element]) -> None:
    with pytest.raises(ConfigurationError, match="law = 4"):
        cls(4.0)  # type: ignore[call-arg]


def test_a_custom_law_serves_every_model() -> None:
    @friction_law
    def rising(s: float, force: float = 2.0, slope: float = 3.0) -> float:
        return force + slope * s

    law = rising()
    for cls in IMPEDANCES:
        run = simulate(build(cls, law), np.tile((0.1, 0.0), (4000, 1)))
        np.testing.assert_allclose(run.output[-1], (2.3, 0.0), rtol=1e-9, atol=1e-9)
