"""Friction laws of other packages: by name in settings, with bounds and defaults; what is no law is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from apps.settings.models import law_table
from haptics import Coulomb, Stribeck
from haptics.device import Causality
from haptics.elements.tables import make_law
from haptics.errors import ConfigurationError
from tests.plugins import forget, install

__all__ = ["install"]

FUNCTION = """
from haptics import friction_law


@friction_law
def soft(speed, static=3.0, kinetic=2.0):
    return kinetic + (static - kinetic) / (1.0 + 10.0 * speed)


not_a_law = 3
"""

CLASS = """
from dataclasses import dataclass
from typing import ClassVar

from haptics import Coulomb, Law
from haptics.settings import bounded


@dataclass(frozen=True)
class Weight(Law):
    kind: ClassVar[int] = Coulomb.kind
    name: ClassVar[str] = "weight"
    mass: float = bounded(0.5, minimum=0.0, unit="kg", doc="mass that presses")

    @property
    def numbers(self):
        return self.breakaway_force, 0.0

    @property
    def breakaway_force(self):
        return 0.2 * 9.81 * self.mass


class Strange(Weight):
    kind = 4096
"""


@pytest.fixture
def laws(install: Callable[..., None]) -> None:
    names = {"soft": "soft_law:soft", "three": "soft_law:not_a_law", "weight": "weight_law:Weight"}
    names |= {"strange": "weight_law:Strange", "heavy": "weight_law:Weight"}
    install("laws", "0.3", {f"haptics.laws {a}": b for a, b in names.items()}, soft_law=FUNCTION, weight_law=CLASS)


def complete(**table: Any) -> dict[str, Any]:
    return law_table(table, Causality.IMPEDANCE)


@pytest.mark.usefixtures("laws")
def test_a_function_becomes_a_custom_law_that_needs_its_package_no_more() -> None:
    table = complete(name="soft", static=5.0)
    assert (table["name"], table["static"], table["kinetic"]) == ("soft", 5.0, 2.0)
    speeds = np.array([1e-3, 0.1, 2.0])
    forget()
    law = make_law(table)
    np.testing.assert_allclose([law(speed) for speed in speeds], 2.0 + 3.0 / (1.0 + 10.0 * speeds))
    assert law_table(table, Causality.ADMITTANCE) == table


@pytest.mark.usefixtures("laws")
def test_a_class_is_solved_as_the_law_of_its_kind() -> None:
    table = complete(name="weight", mass=2.0)
    assert table == {"name": "weight", "mass": 2.0}
    law, same = make_law(table), Coulomb(0.2 * 9.81 * 2.0)
    assert law.implicit((0.3, -0.1), 0.01) == pytest.approx(same.implicit((0.3, -0.1), 0.01), abs=0.0)
    assert complete(name="weight") == {"name": "weight", "mass": 0.5}


@pytest.mark.usefixtures("laws")
@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({"name": "soft", "colour": 1.0}, "unknown setting 'law.colour'.*law.kinetic"),
        ({"name": "soft", "static": "x"}, "law.static = 'x': must be a finite number"),
        ({"name": "weight", "mass": -1.0}, "law.mass = -1.0: must be a finite number at least 0 kg"),
        ({"name": "three"}, "law 'three' of the package laws 0.3: must be a function under @friction_law"),
        ({"name": "strange"}, "law 'strange' of the package laws 0.3: must be a frozen dataclass with a kind"),
        ({"name": "heavy"}, "law 'heavy' of the package laws 0.3: calls itself 'weight'"),
        ({"name": "sofd"}, "unknown law 'sofd'. Did you mean 'soft'"),
        ({"name": "coulomb", "source": "def f(speed): return 1.0"}, "law.source with law.name = 'coulomb'"),
    ],
)
def test_what_is_wrong_is_said(table: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        complete(**table)


def test_laws_of_this_package_are_not_touched_by_one_of_the_same_name(install: Callable[..., None]) -> None:
    install("laws", "0.3", {"haptics.laws stribeck": "soft_law:soft"}, soft_law=FUNCTION)
    assert isinstance(make_law(complete(name="stribeck")), Stribeck)
