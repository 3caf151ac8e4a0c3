"""Laws as values: frozen, equal by their numbers, strict about what they are given."""

from __future__ import annotations

import dataclasses
import re
from typing import Any

import numpy as np
import pytest

from haptics import Coulomb, CoulombViscous, DeadZoneViscous, GaussianStribeck, Law, Stribeck
from haptics.errors import ConfigurationError
from haptics.friction.kernels import isotropic_forces, plane_forces
from haptics.friction.sliding_kernels import CUSTOM, LAW
from tests.haptics.references import sliding_force
from tests.haptics.strategies import LAWS, PLANAR

NAN, INF = float("nan"), float("inf")
ALL = LAWS | PLANAR
every_law = pytest.mark.parametrize("law", ALL.values(), ids=ALL.keys())


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS.keys())
def test_a_number_gives_a_number(law: Law) -> None:
    assert isinstance(law(0.1), float)
    assert isinstance(law.implicit(-0.1, 1e-3), float)
    assert law.implicit(-0.1, 1e-3) == -law.implicit(np.array([0.1]), 1e-3)[0]


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS.keys())
def test_known_sliding_speeds_come_back(law: Law) -> None:
    """Speeds below, within and above whatever bend the level has."""
    speeds, mobility = np.geomspace(1e-4, 10.0, 80), 1.0 / 64.0
    levels = sliding_force(law, speeds)
    found = law.implicit((speeds + mobility * levels)[:, None], mobility)[:, 0]
    np.testing.assert_allclose(found, levels, rtol=1e-13)


@every_law
def test_laws_are_values(law: Law) -> None:
    assert law == dataclasses.replace(law)
    assert hash(law) == hash(dataclasses.replace(law))
    name = dataclasses.fields(law)[0].name
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(law, name, 1.0)


@every_law
def test_laws_leave_their_argument_alone_and_answer_afresh(law: Law) -> None:
    x = np.array([0.3, -0.4])
    slow, fast = law.implicit(0.1 * x, 0.01), law.implicit(x, 0.01)
    kept = fast.copy()
    law.implicit(-x, 0.01)
    law(x)
    np.testing.assert_array_equal(x, [0.3, -0.4])
    np.testing.assert_array_equal(fast, kept)
    assert slow.shape == fast.shape == law(x).shape == (2,)


@every_law
@pytest.mark.parametrize("mobility", [0.0, -1.0, NAN, INF, "fast", None, 1j])
def test_mobilities_that_do_not_exist_are_refused(law: Law, mobility: Any) -> None:
    with pytest.raises(ConfigurationError, match="mobility"):
        law.implicit((0.1, 0.0), mobility)


@every_law
@pytest.mark.parametrize("bad", [(NAN, 0.0), (0.0, INF), (-INF, NAN), "fast", [[1.0, 2.0], [3.0]], 1j, None, ()])
def test_velocities_that_are_no_finite_numbers_are_refused(law: Law, bad: Any) -> None:
    for call in (law, lambda x: law.implicit(x, 1e-3)):
        with pytest.raises(ConfigurationError, match="velocity"):
            call(bad)


NUMBERS: dict[type[Law], dict[str, float]] = {
    Coulomb: {"force": 4.0},
    CoulombViscous: {"force": 4.0, "viscosity": 1.0},
    Stribeck: {"kinetic_force": 4.0, "static_force": 5.0, "stribeck_velocity": 0.1, "viscosity": 0.0},
    GaussianStribeck: {"kinetic_force": 4.0, "static_force": 5.0, "stribeck_velocity": 0.1, "viscosity": 0.0},
    DeadZoneViscous: {"force": 4.0, "viscosity": 1.0, "dead_zone": 0.1},
}
BAD: list[tuple[type[Law], str, Any]] = [
    *((law, name, bad) for law, good in NUMBERS.items() for name in good for bad in (-1e-9, NAN, INF, "4", None, True)),
    *((law, "stribeck_velocity", 0.0) for law in (Stribeck, GaussianStribeck)),
    *((law, "static_force", 3.9) for law in (Stribeck, GaussianStribeck)),
]


@pytest.mark.parametrize(("law", "name", "bad"), BAD)
def test_bad_parameters_are_refused_by_name(law: type[Law], name: str, bad: Any) -> None:
    law(**NUMBERS[law])
    with pytest.raises(ConfigurationError, match=re.escape(name)) as caught:
        law(**NUMBERS[law] | {name: bad})
    assert isinstance(caught.value, ValueError)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("size", [1e-290, 1e-200, 1e-150, 1.0, 1e150, 1e200])
def test_in_the_plane_sizes_whose_squares_do_not_exist_have_a_direction(size: float) -> None:
    """What elements call: it measures lengths by itself."""
    law, found = Coulomb(5.0), np.empty((1, 2))
    for mobility in (0.0, 1e-3 * min(size, 1.0)):
        plane_forces(law.record, size * np.array([[0.6, -0.8]]), mobility, found)
        np.testing.assert_allclose(found, [[3.0, -4.0]], rtol=1e-12)


def test_a_custom_law_without_a_function_has_no_level() -> None:
    """A record of zeros but for its kind: there is no code at address zero to be called."""
    record, found = np.zeros(1, LAW), np.empty((2, 1))
    record["kind"] = CUSTOM
    for mobility in (0.0, 1e-3):
        isotropic_forces(record, np.array([[0.1], [-2.0]]), mobility, found)
        assert np.isnan(found).all()
