"""Devices of other packages: listed, chosen, described; one that is broken is left out and breaks nothing else."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

import devices
from apps.cli import main
from haptics.device import Causality
from haptics.errors import ConfigurationError, DeviceOpenError
from tests.plugins import install

__all__ = ["install"]

OWN = [info.name for info in devices._KNOWN]

GOOD = """
from devices import BackendInfo
from haptics.device import Causality

GOOD = BackendInfo("good", Causality.IMPEDANCE, "somebody's", "good_driver:Good", virtual=True)
ABSENT = BackendInfo("absent", Causality.ADMITTANCE, "somebody's", "no_such_sdk:Absent")
MISNAMED = BackendInfo("other", Causality.ADMITTANCE, "somebody's", "good_driver:Good")
"""

DRIVER = "from devices.virtual.joystick import VirtualJoystick as Good"


@pytest.fixture(autouse=True)
def _installed(install: Callable[..., None]) -> None:
    places = {"good": "good_info:GOOD", "absent": "good_info:ABSENT", "broken": "broken_info:BROKEN"}
    places |= {"misnamed": "good_info:MISNAMED", "number": "good_info:__name__", "arm": "good_info:GOOD"}
    entries = {f"haptics.devices {name}": place for name, place in places.items()}
    install("goods", "2.0", entries, good_info=GOOD, good_driver=DRIVER, broken_info="import a_closed_sdk")


def test_they_come_after_those_of_this_package_with_the_package_that_brings_them() -> None:
    assert list(devices.BACKENDS) == [*OWN, "absent", "good"]
    assert devices.BACKENDS["good"].package == "goods 2.0"
    assert devices.BACKENDS["arm"].package == ""
    assert devices.is_virtual("good")


def test_what_is_wrong_with_the_others_is_one_sentence_each() -> None:
    said = {words.split("'")[1]: words for words in devices.refused_plugins()}
    assert set(said) == {"arm", "broken", "misnamed", "number"}
    assert "there is another device of that name" in said["arm"]
    assert "cannot be imported (ModuleNotFoundError: No module named 'a_closed_sdk')" in said["broken"]
    assert "needed are this name" in said["misnamed"]
    assert "must be a devices.BackendInfo" in said["number"]
    with pytest.raises(ConfigurationError, match="a_closed_sdk"):
        devices.create_device("broken")
    with pytest.raises(ConfigurationError, match=r"unknown device 'goood'\. Did you mean 'good'"):
        devices.create_device("goood")


def test_a_driver_whose_library_is_absent_says_so_when_it_is_asked_for() -> None:
    with pytest.raises(DeviceOpenError, match=r"^absent: its driver .* in the package goods 2\.0 cannot be imported"):
        devices.create_device("absent")
    assert devices.create_device("good").spec.causality is Causality.IMPEDANCE


def test_the_list_of_devices_has_them_and_what_was_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["devices", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert {row["name"]: row["package"] for row in answer["devices"]}["good"] == "goods 2.0"
    assert len(answer["refused"]) == 4
    assert main(["devices"]) == 0
    out = capsys.readouterr().out
    assert "from goods 2.0" in out
    assert out.count("left out: ") == 4
    assert main(["run", "--device", "broken", "--headless"]) == 2
    assert "a_closed_sdk" in capsys.readouterr().err
