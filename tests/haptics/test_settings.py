"""Settings refuse what is wrong, naming the setting, its value and what is allowed."""

from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from haptics.errors import ConfigurationError
from haptics.settings import bounded, build, check, choice


@dataclass(frozen=True)
class Plate:
    mass: float = bounded(above=0.0, maximum=5.0, unit="kg")
    stiffness: float = bounded(100.0, minimum=0.0, unit="N/m")
    surface: str = choice("dry", ("dry", "wet"))
    loud: bool = False

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
    ],
)
def test_a_mistake_is_named_in_one_line(table: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message) as caught:
        build(Plate, table, "plate")
    assert "\n" not in str(caught.value)


def test_whole_numbers_become_floats() -> None:
    plate = build(Plate, {"mass": 2, "stiffness": 7}, "plate")
    assert isinstance(plate.mass, float)
    assert plate == Plate(2.0, 7.0)


def test_direct_construction_is_checked_too() -> None:
    with pytest.raises(ConfigurationError, match=r"plate\.mass"):
        Plate(mass=0.0)


values = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5), st.lists(st.integers()))


@given(st.dictionaries(st.sampled_from(["mass", "stiffness", "surface", "loud", "other"]), values))
def test_any_table_gives_a_valid_plate_or_a_configuration_error(table: dict[str, Any]) -> None:
    try:
        plate = build(Plate, table, "plate")
    except ConfigurationError:
        return
    assert 0.0 < plate.mass <= 5.0
    assert plate.stiffness >= 0.0
    assert plate.surface in {"dry", "wet"}
