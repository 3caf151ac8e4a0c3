"""Laws and models are listed once: the list is that of the classes, and is known without what compiles them."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from apps.settings.models import MODELS as IN_SESSIONS
from apps.settings.models import element_defaults, law_defaults
from haptics.device import Causality
from haptics.elements.catalogue import CLASSIC_MODELS, FOUR_MODELS, LAWS
from haptics.elements.models import Element
from haptics.elements.tables import LAWS as LAW_CLASSES
from haptics.elements.tables import MODELS, make_element, make_law
from haptics.friction.closed_form import ClosedForm
from haptics.friction.custom_law import CustomLaw
from haptics.friction.law import Law
from tests.processes import ROOT

FORMS = [(model, causality) for model, forms in MODELS.items() for causality in forms]


def concrete(cls: type) -> Iterator[type]:
    """Yield every class of the product that is derived from `cls` and can be made."""
    for derived in cls.__subclasses__():
        yield from concrete(derived)
        if not inspect.isabstract(derived) and not derived.__name__.startswith("_"):
            if derived.__module__.startswith("haptics."):
                yield derived


def test_every_law_is_listed_by_its_own_name() -> None:
    assert set(concrete(Law)) - {ClosedForm, CustomLaw} == set(LAW_CLASSES.values())
    assert list(LAWS) == [law.name for law in LAW_CLASSES.values()]


def test_every_model_is_listed_by_its_own_name_and_causality() -> None:
    classes = {cls for forms in MODELS.values() for cls in forms.values()}
    assert {cls for cls in concrete(Element) if hasattr(cls, "model")} == classes
    assert FORMS == [(cls.model, cls.causality) for forms in MODELS.values() for cls in forms.values()]
    assert list(MODELS) == [*FOUR_MODELS, *CLASSIC_MODELS]
    assert {model: tuple(forms) for model, forms in MODELS.items()} == IN_SESSIONS


@pytest.mark.parametrize("causality", Causality)
@pytest.mark.parametrize("name", LAWS)
def test_a_session_has_parameters_for_every_law(name: str, causality: Causality) -> None:
    defaults = law_defaults(name, causality)
    law = make_law({"name": name, **defaults})
    assert {key: getattr(law, key) for key in defaults} == defaults
    assert law.breakaway_force == {Causality.ADMITTANCE: 6.0, Causality.IMPEDANCE: 4.0}[causality]


@pytest.mark.parametrize(("model", "causality"), FORMS)
def test_a_session_has_parameters_for_every_model(model: str, causality: Causality) -> None:
    defaults = element_defaults(model, causality)
    element = make_element(model, {"name": "coulomb", "force": 4.0}, defaults, 1e-3, causality)
    assert {key: getattr(element, key) for key in defaults} == defaults


def test_the_names_are_known_without_a_compiler() -> None:
    code = "import sys, apps.settings.models, haptics.elements.catalogue; sys.exit('numba' in sys.modules)"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    assert subprocess.run([sys.executable, "-c", code], env=environment, check=False).returncode == 0
