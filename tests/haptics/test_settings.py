"""Settings refuse what is wrong, naming the setting, its value and what is allowed."""

from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from haptics.errors import ConfigurationError
from haptics.settings import bounded, build, check, choice, documented, flag, string


@documented
@dataclass(frozen=True)
class Plate:
    """A plate.

    Attributes
    ----------
    weight : float, optional
        Not declared.

    Raises
    ------
    ConfigurationError
        If it is not allowed.
    """

    mass: float = bounded(above=0.0, maximum=5.0, unit="kg", doc="moving mass")
    stiffness: float = bounded(100.0, minimum=0.0, unit="N/m", doc="stiffness of the surface")
    surface: str = choice("dry", ("dry", "wet"), doc="kind of surface")
    layers: int = bounded(1, minimum=1, maximum=2**62, doc="number of layers")
    name: str = string("", doc="name")
    loud: bool = flag(False, doc="whether it is heard")

    def __post_init__(self) -> None:
        check(self, "plate")


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"mass": -1}, r"plate\.mass = -1: must be a finite number greater than 0 kg and at most 5 kg"),
        ({"mass": float("nan")}, r"plate\.mass = nan"),
        ({"mass": float("inf")}, r"plate\.mass = inf"),
        ({"mass": True}, r"plate\.mass = True"),
        ({"mass": 10**400}, r"plate\.mass = 1000"),
        ({"mass": "heavy"}, r"plate\.mass = 'heavy'"),
        ({}, r"plate\.mass is missing"),
        ({"mass": 1, "stifness": 3}, r"unknown setting 'plate\.stifness'\. Did you mean 'plate\.stiffness'"),
        ({"mass": 1, "surface": "icy"}, r"plate\.surface = 'icy': must be one of dry, wet"),
        ({"mass": 1, "loud": 1}, r"plate\.loud = 1: must be true or false"),
        ({"mass": 1, "name": 4}, r"plate\.name = 4: must be text"),
        ({"mass": 1, "layers": 1.5}, r"plate\.layers = 1\.5: must be a whole number at least 1 and at most 46116860"),
        ({"mass": 1, "layers": 0}, r"plate\.layers = 0: must be a whole number at least 1"),
        ({"mass": 1, "layers": 2**62 + 1}, r"plate\.layers = 4611686018427387905: .* at most 4611686018427387904"),
        ({"mass": 1, "layers": True}, r"plate\.layers = True: must be a whole number"),
        ({"mass": 1, "layers": float("inf")}, r"plate\.layers = inf: must be a whole number"),
        ({"mass": 1, "layers": "2 mm"}, r"plate\.layers = '2 mm': must be a whole number .*without a unit"),
    ],
)
def test_a_mistake_is_named_in_one_line(table: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message) as caught:
        build(Plate, table, "plate")
    assert "\n" not in str(caught.value)


def test_floats_that_are_whole_become_whole_numbers() -> None:
    plate = build(Plate, {"mass": 1.0, "layers": 3.0}, "plate")
    assert (plate.layers, type(plate.layers)) == (3, int)
    with pytest.raises(ConfigurationError, match=r"plate\.layers = 3\.0: must be a whole number"):
        Plate(1.0, layers=3.0)  # type: ignore[arg-type]


DOCUMENTED = """A plate.

Attributes
----------
weight : float, optional
    Not declared.
mass : float
    Moving mass [kg]. Allowed: a finite number greater than 0 kg and at most 5 kg.
stiffness : float
    Stiffness of the surface [N/m]. Allowed: a finite number at least 0 N/m; default 100.0.
surface : str
    Kind of surface. Allowed: one of dry, wet; default 'dry'.
layers : int
    Number of layers. Allowed: a whole number at least 1 and at most 4611686018427387904; default 1.
name : str
    Name. Allowed: text; default ''.
loud : bool
    Whether it is heard. Allowed: true or false; default False.

Raises
------
ConfigurationError
    If it is not allowed.
"""


def test_the_docstring_is_written_from_the_declarations() -> None:
    assert Plate.__doc__ == DOCUMENTED


def test_the_docstring_of_a_class_has_the_declarations_of_its_bases_too() -> None:
    @documented
    @dataclass(frozen=True)
    class Table(Plate):
        """A plate with legs."""

        legs: int = bounded(4, minimum=3, doc="number of legs")

    own = "legs : int\n    Number of legs. Allowed: a whole number at least 3; default 4.\n"
    inherited = DOCUMENTED.partition("mass :")[2].partition("\nRaises")[0]
    assert Table.__doc__ == f"A plate with legs.\n\nAttributes\n----------\nmass :{inherited}{own}"


def test_whole_numbers_become_floats() -> None:
    plate = build(Plate, {"mass": 2, "stiffness": 7}, "plate")
    assert isinstance(plate.mass, float)
    assert plate == Plate(2.0, 7.0)


def test_direct_construction_is_checked_too() -> None:
    with pytest.raises(ConfigurationError, match=r"plate\.mass"):
        Plate(mass=0.0)


values = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5), st.lists(st.integers()))


@given(st.dictionaries(st.sampled_from(["mass", "stiffness", "surface", "layers", "name", "loud", "other"]), values))
def test_any_table_gives_a_valid_plate_or_a_configuration_error(table: dict[str, Any]) -> None:
    try:
        plate = build(Plate, table, "plate")
    except ConfigurationError:
        return
    assert 0.0 < plate.mass <= 5.0
    assert plate.stiffness >= 0.0
    assert plate.surface in {"dry", "wet"}
    assert type(plate.layers) is int
    assert plate.layers >= 1
    assert type(plate.name) is str
    assert type(plate.loud) is bool
