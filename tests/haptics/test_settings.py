"""Settings and data sheets: invalid values are refused by name, value and allowed range."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from haptics.device import MAX_CHANNELS
from haptics.errors import ConfigurationError
from haptics.settings import bounded, build, check, choice, documented, flag, string
from tests.haptics.doubles import make_spec


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
    number: str = string("", digits=True, doc="serial number")
    loud: bool = flag(False, doc="whether it is heard")

    def __post_init__(self):
        check(self, "plate")


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"mass": -1}, r"plate\.mass = -1: must be a finite number greater than 0 kg and at most 5 kg"),
        ({"mass": float("nan")}, r"plate\.mass = nan"),
        ({"mass": True}, r"plate\.mass = True"),
        ({"mass": 10**400}, r"plate\.mass = 1000"),
        ({"mass": "heavy"}, r"plate\.mass = 'heavy'"),
        ({}, r"plate\.mass is missing"),
        ({"mass": 1, "stifness": 3}, r"unknown setting 'plate\.stifness'\. Did you mean 'plate\.stiffness'"),
        ({"mass": 1, "surface": "icy"}, r"plate\.surface = 'icy': must be one of dry, wet"),
        ({"mass": 1, "loud": 1}, r"plate\.loud = 1: must be true or false"),
        ({"mass": 1, "name": True}, r"plate\.name = True: must be text\.$"),
        ({"mass": 1, "name": 4}, r"plate\.name = 4: must be text\. .* quotation marks: --set 'plate\.name=\"4\""),
        ({"mass": 1, "number": 4.5}, r"plate\.number = 4\.5: must be text\. .* quotation marks"),
        ({"mass": 1, "number": False}, r"plate\.number = False: must be text\.$"),
        ({"mass": 1, "surface": 4}, r"plate\.surface = 4: must be one of dry, wet\.$"),
        ({"mass": 1, "layers": 1.5}, r"plate\.layers = 1\.5: must be a whole number at least 1 and at most 46116860"),
        ({"mass": 1, "layers": 2**62 + 1}, r"plate\.layers = 4611686018427387905: .* at most 4611686018427387904"),
        ({"mass": 1, "layers": "2 mm"}, r"plate\.layers = '2 mm': must be a whole number .*without a unit"),
    ],
)
def test_invalid_setting_is_named_in_one_line(table, message):
    with pytest.raises(ConfigurationError, match=message) as caught:
        build(Plate, table, "plate")
    assert "\n" not in str(caught.value)


def test_whole_floats_become_integers_and_integers_floats():
    plate = build(Plate, {"mass": 1, "layers": 3.0}, "plate")
    assert (plate.layers, type(plate.layers), type(plate.mass)) == (3, int, float)
    with pytest.raises(ConfigurationError, match=r"plate\.layers = 3\.0: must be a whole number"):
        Plate(1.0, layers=3.0)


def test_digits_that_toml_reads_as_a_number_are_a_text_where_declared():
    assert build(Plate, {"mass": 1.0, "number": 1234}, "plate").number == "1234"
    assert build(Plate, {"mass": 1.0, "number": "0012"}, "plate").number == "0012"


def test_docstring_is_completed_from_the_declarations():
    """Declarations, including base classes, follow the handwritten attributes."""

    @documented
    @dataclass(frozen=True)
    class Table(Plate):
        """A plate with legs."""

        legs: int = bounded(4, minimum=3, doc="number of legs")

    entry = "float\n    Stiffness of the surface [N/m]. Allowed: a finite number at least 0 N/m; default 100.0.\n"
    assert all(f"stiffness : {entry}" in (kind.__doc__ or "") for kind in (Plate, Table))
    attributes = "Attributes\n----------\nweight : float, optional\n    Not declared.\nmass : float"
    assert (Plate.__doc__ or "").startswith(f"A plate.\n\n{attributes}")
    legs = "legs : int\n    Number of legs. Allowed: a whole number at least 3; default 4.\n"
    assert (Table.__doc__ or "").endswith(legs)


values = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5), st.lists(st.integers()))


@given(
    st.dictionaries(
        st.sampled_from(["mass", "stiffness", "surface", "layers", "name", "number", "loud", "other"]), values
    )
)
def test_any_table_is_valid_or_refused(table):
    try:
        plate = build(Plate, table, "plate")
    except ConfigurationError:
        return
    assert 0.0 < plate.mass <= 5.0
    assert plate.stiffness >= 0.0
    assert plate.surface in {"dry", "wet"}
    assert type(plate.layers) is int
    assert plate.layers >= 1
    assert type(plate.name) is type(plate.number) is str
    assert type(plate.loud) is bool


JOINTS = ("joint_angles", "rad", 2)


def test_channels_from_json_equal_the_data_sheet():
    assert make_spec(channels=[list(JOINTS)]) == make_spec(channels=(JOINTS,))
    assert make_spec().channels == ()
    assert make_spec(channels=(("a", "V", MAX_CHANNELS - 2), JOINTS)).channels[1] == JOINTS


# fmt: off


@pytest.mark.parametrize(
    "channels",
    [
        5, {"joint_angles": 2}, (5,), (("joint_angles", "rad"),), ((*JOINTS, 1),), (("", "rad", 1),),
        (("Joint", "rad", 1),), (("j" * 41, "rad", 1),), ((7, "rad", 1),), (("joint", "", 1),),
        (("joint", None, 1),), (("joint", "rad", 0),), (("joint", "rad", 1.0),), (("joint", "rad", True),),
        (JOINTS, JOINTS), (("a", "V", MAX_CHANNELS - 1), JOINTS), (("a", "V", 2**70),),
    ],
    ids=str,
)
def test_invalid_channels_are_refused(channels) :
    with pytest.raises(ConfigurationError, match="bench"):
        make_spec(channels=channels)
