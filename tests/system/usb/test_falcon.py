"""The Falcon's driver and its guardian on real libusb and device files, above umockdev and an emulated Falcon."""

import functools

import pytest

from tests.system.usb import umockdev
from tests.system.usb.test_stick import Played

pytestmark = [
    pytest.mark.skipif(bool(umockdev.why_not()), reason=umockdev.why_not()),
    pytest.mark.wall_clock,
]


@functools.cache
def scenes_of(repetition):
    """Play the scenes; a repeated test plays them again."""
    return Played(*umockdev.run("tests.system.usb.falcon"))


@pytest.fixture
def played(request):
    return scenes_of(umockdev.repetition(request))


def test_session_loads_the_firmware_homes_and_leaves_no_force(played):
    found = played.facts("session")
    assert any(found["motors"])
    assert found["serial"] == "FALCON01"
    assert found["bound"] == str(umockdev.USBFS)
    assert found["place"] == pytest.approx([0.0, 0.0], abs=1e-4)
    assert found["after"] == [0, 0, 0]
    assert found["released"]


def test_guardian_takes_the_interface_and_sends_zeros(played):
    found = played.facts("guarded")
    assert any(found["pushed"])
    assert found["status"] == 0
    assert "the guardian process has ended" in found["said"]
    assert found["after"] == [0, 0, 0]


def test_unplugged_falcon_is_reported_without_blocking(played):
    found = played.facts("unplugged")
    assert "the Falcon was unplugged: plug it in" in found["said"][0]
    assert "the force could not be set to 0" in found["said"][1]
    assert found["took"] < 2.0
