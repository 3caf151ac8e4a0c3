"""The contract of a device: what may stand in its data sheet."""

from __future__ import annotations

from typing import Any

import pytest

from haptics.device import MOST_CHANNELS
from haptics.errors import ConfigurationError
from tests.haptics.doubles import make_spec

JOINTS = ("joint_angles", "rad", 2)


def test_channels_from_json_are_those_of_the_data_sheet() -> None:
    assert make_spec(channels=[list(JOINTS)]) == make_spec(channels=(JOINTS,))
    assert make_spec().channels == ()


def test_as_many_numbers_as_there_is_room_for() -> None:
    assert make_spec(channels=(("a", "V", MOST_CHANNELS - 2), JOINTS)).channels[1] == JOINTS


@pytest.mark.parametrize(
    "channels",
    [
        5,
        "abc",
        None,
        {"joint_angles": 2},
        (5,),
        ("abc",),
        (("joint_angles", "rad"),),
        ((*JOINTS, 1),),
        (("", "rad", 1),),
        (("Joint", "rad", 1),),
        (("joint angles", "rad", 1),),
        (("j" * 41, "rad", 1),),
        ((7, "rad", 1),),
        (("joint", "", 1),),
        (("joint", None, 1),),
        (("joint", "rad", 0),),
        (("joint", "rad", -1),),
        (("joint", "rad", 1.0),),
        (("joint", "rad", True),),
        (("joint", "rad", "2"),),
        (JOINTS, JOINTS),
        (JOINTS, ("joint_angles", "N", 1)),
        (("a", "V", MOST_CHANNELS - 1), JOINTS),
        (("a", "V", 2**70),),
    ],
    ids=str,
)
def test_channels_that_cannot_be_columns_are_refused(channels: Any) -> None:
    with pytest.raises(ConfigurationError, match="bench"):
        make_spec(channels=channels)
