"""Public names, the catalogue of laws and models, and plugins of other packages."""

import ast
import importlib
import inspect
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

from apps.settings.models import MODELS as IN_SESSIONS
from apps.settings.models import element_defaults, law_defaults, law_table
from haptics import Causality, ClosedForm, ConfigurationError, Coulomb, CustomLaw, Element, Law, Stribeck
from haptics.elements.catalogue import CLASSIC_MODELS, FORCE_SETTINGS, FOUR_MODELS
from haptics.elements.catalogue import LAWS as LAW_NAMES
from haptics.elements.tables import LAWS as LAW_CLASSES
from haptics.elements.tables import MODELS, make_element, make_law
from haptics.friction.kernels import plane_forces
from haptics.plugins import LAWS, find_plugins
from tests.plugins import forget, install
from tests.processes import ROOT

__all__ = ["install"]
TAKEN = frozenset({"coulomb"})


@pytest.mark.parametrize("source", ["raise ImportError('no SDK')", "import sys; sys.exit(3)", "1 / 0", "one ="])
def test_plugin_is_imported_on_first_use_and_its_failure_reported_in_one_sentence(install, source):
    install("some-laws", "1.2", {"haptics.laws one": "some_laws:one"}, some_laws=source)
    plugin = find_plugins(LAWS, TAKEN).usable["one"]
    assert str(plugin) == "law 'one' of the package some-laws 1.2"
    with pytest.raises(ConfigurationError, match=r"^law 'one' .* some-laws 1\.2: cannot be imported .*\.$") as caught:
        plugin.load()
    assert ("(ImportError: no SDK)" in str(caught.value)) is ("no SDK" in source)
    assert "pip uninstall some-laws" in str(caught.value)


def test_ambiguous_plugin_name_is_refused(install):
    install("first", "1", {"haptics.laws coulomb": "first:law", "haptics.laws same": "first:law"}, first="law = 1")
    install("second", "2", {"haptics.laws same": "second:law", "haptics.laws good": "second:law"}, second="law = 2")
    found = find_plugins(LAWS, TAKEN)
    assert set(found.usable) == {"good"}
    assert found.usable["good"].load() == 2
    assert found.refused["coulomb"].startswith("law 'coulomb' of the package first 1: there is another law of that")
    assert all(package in found.refused["same"] for package in ("first 1", "second 2"))
    assert "brings another one of that name" in found.refused["same"]


PACKAGES = ("haptics", "calibration", "calibration.psychometric", "haptics.design", "haptics.scenes")


@pytest.mark.parametrize("package", PACKAGES)
def test_public_names_are_those_of_their_modules(package):
    loaded = importlib.import_module(package)
    stub = ast.parse(Path(loaded.__file__).with_suffix(".pyi").read_text())
    homes = [
        (node.module, alias.name) for node in stub.body if isinstance(node, ast.ImportFrom) for alias in node.names
    ]
    (public,) = (ast.literal_eval(node.value) for node in stub.body if isinstance(node, ast.Assign))
    assert sorted(name for _, name in homes) == sorted(loaded.__all__) == sorted(public)
    for home, name in homes:
        assert getattr(loaded, name) is getattr(importlib.import_module(home), name)
    assert set(loaded.__all__) <= set(dir(loaded))
    with pytest.raises(AttributeError, match=f"module '{package}' has no attribute 'nothing'"):
        _ = loaded.nothing


NAMES = "apps.settings.models, haptics.elements.catalogue"


@pytest.mark.parametrize(("modules", "slow"), [("haptics", "numpy"), ("calibration", "numpy"), (NAMES, "numba")])
def test_names_are_available_without_slow_imports(modules, slow):
    """A module without NumPy has no Numba either, which imports it."""
    program = f"import sys, {modules}; sys.exit({slow!r} in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=False).returncode == 0


FORMS = [(model, causality) for model, forms in MODELS.items() for causality in forms]


def concrete(cls):
    """Yield every class of the product that is derived from `cls` and can be made."""
    for derived in cls.__subclasses__():
        yield from concrete(derived)
        if not inspect.isabstract(derived) and not derived.__name__.startswith("_"):
            if derived.__module__.startswith("haptics."):
                yield derived


def test_every_law_is_listed_by_its_own_name():
    assert set(concrete(Law)) - {ClosedForm, CustomLaw} == set(LAW_CLASSES.values())
    assert list(LAW_NAMES) == [law.name for law in LAW_CLASSES.values()]


def test_force_settings_are_those_of_the_isotropic_laws():
    isotropic = [law for law in LAW_CLASSES.values() if law.isotropic]
    units = {f"law.{field.name}": field.metadata["unit"] for law in isotropic for field in fields(law)}
    assert {name for name, unit in units.items() if unit == "N"} == set(FORCE_SETTINGS)


@pytest.mark.parametrize("name", LAW_NAMES)
def test_leading_numbers_of_a_law_are_its_forces(name):
    """Scenes scale them by textures and normal forces."""
    units = {field.name: field.metadata["unit"] for field in fields(LAW_CLASSES[name])}
    without = {name: 0.0 for name, unit in units.items() if unit not in ("N", "m/s", "rad")}  # no viscosity
    law = make_law({"name": name, **law_defaults(name, Causality.IMPEDANCE), **without})
    scaled, velocity, single, double = law.record, np.array([[0.05, 0.08]]), np.empty((1, 2)), np.empty((1, 2))
    scaled["numbers"][0, : law.forces] *= 2.0
    plane_forces(law.record, velocity, 0.0, single)
    plane_forces(scaled, velocity, 0.0, double)
    assert double == pytest.approx(2.0 * single)


def test_every_model_is_listed_by_its_own_name_and_causality():
    classes = {cls for forms in MODELS.values() for cls in forms.values()}
    assert {cls for cls in concrete(Element) if hasattr(cls, "model")} == classes
    assert FORMS == [(cls.model, cls.causality) for forms in MODELS.values() for cls in forms.values()]
    assert list(MODELS) == [*FOUR_MODELS, *CLASSIC_MODELS]
    assert {model: tuple(forms) for model, forms in MODELS.items()} == IN_SESSIONS


@pytest.mark.parametrize("causality", Causality)
@pytest.mark.parametrize("name", LAW_NAMES)
def test_session_has_parameters_for_every_law(name, causality):
    defaults = law_defaults(name, causality)
    law = make_law({"name": name, **defaults})
    assert {key: getattr(law, key) for key in defaults} == defaults
    assert law.breakaway_force == {Causality.ADMITTANCE: 6.0, Causality.IMPEDANCE: 4.0}[causality]


@pytest.mark.parametrize(("model", "causality"), FORMS)
def test_session_has_parameters_for_every_model(model, causality):
    defaults = element_defaults(model, causality)
    element = make_element(model, {"name": "coulomb", "force": 4.0}, defaults, 1e-3, causality)
    assert {key: getattr(element, key) for key in defaults} == defaults


# --- laws of other packages


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
def installed_laws(install):
    names = {"soft": "soft_law:soft", "three": "soft_law:not_a_law", "weight": "weight_law:Weight"}
    names |= {"strange": "weight_law:Strange", "heavy": "weight_law:Weight"}
    install("laws", "0.3", {f"haptics.laws {a}": b for a, b in names.items()}, soft_law=FUNCTION, weight_law=CLASS)


def complete(**table):
    return law_table(table, Causality.IMPEDANCE)


@pytest.mark.usefixtures("installed_laws")
def test_plugin_function_becomes_an_independent_custom_law():
    table = complete(name="soft", static=5.0)
    assert (table["name"], table["static"], table["kinetic"]) == ("soft", 5.0, 2.0)
    speeds = np.array([1e-3, 0.1, 2.0])
    forget()
    law = make_law(table)
    np.testing.assert_allclose([law(speed) for speed in speeds], 2.0 + 3.0 / (1.0 + 10.0 * speeds))
    assert law_table(table, Causality.ADMITTANCE) == table


@pytest.mark.usefixtures("installed_laws")
def test_plugin_class_is_solved_as_the_law_of_its_kind():
    table = complete(name="weight", mass=2.0)
    assert table == {"name": "weight", "mass": 2.0}
    law, same = make_law(table), Coulomb(0.2 * 9.81 * 2.0)
    assert law.implicit((0.3, -0.1), 0.01) == pytest.approx(same.implicit((0.3, -0.1), 0.01), abs=0.0)
    assert complete(name="weight") == {"name": "weight", "mass": 0.5}


@pytest.mark.usefixtures("installed_laws")
@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({"name": "soft", "colour": 1.0}, "unknown setting 'law.colour'.*law.kinetic"),
        ({"name": "soft", "static": "x"}, "law.static = 'x'"),
        ({"name": "weight", "mass": -1.0}, "law.mass = -1.0"),
        ({"name": "three"}, "law 'three' of the package laws 0.3"),
        ({"name": "strange"}, "law 'strange' of the package laws 0.3"),
        ({"name": "heavy"}, "law 'heavy' of the package laws 0.3: calls itself 'weight'"),
        ({"name": "sofd"}, "unknown law 'sofd'. Did you mean 'soft'"),
        ({"name": "coulomb", "source": "def f(speed): return 1.0"}, "law.source with law.name = 'coulomb'"),
    ],
)
def test_invalid_plugin_law_is_refused(table, words):
    with pytest.raises(ConfigurationError, match=words):
        complete(**table)


def test_plugin_cannot_replace_a_built_in_law(install):
    install("laws", "0.3", {"haptics.laws stribeck": "soft_law:soft"}, soft_law=FUNCTION)
    assert isinstance(make_law(complete(name="stribeck")), Stribeck)
