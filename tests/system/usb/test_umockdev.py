"""The driver on real libusb, below which umockdev shows an emulated stick; the kernel's part is played by the tests."""

from __future__ import annotations

import functools

import pytest

from tests.system.usb import umockdev
from tests.system.usb.judgement import Played, StickScenes, played

pytestmark = [
    pytest.mark.skipif(bool(umockdev.why_not()), reason=umockdev.why_not()),
    pytest.mark.wall_clock,
]

PACKAGE, SYSTEM = "package", "system"
RUNS = (
    pytest.param(("openffboard", PACKAGE), id="openffboard-package"),
    pytest.param(("sidewinder-ff2", PACKAGE), id="sidewinder-ff2-package"),
    pytest.param(("openffboard", SYSTEM), id="openffboard-system"),
)


@functools.cache
def scenes_of(profile: str, library: str, repetition: int) -> Played:
    """Return what came of the scenes; a test that is repeated judges others than those that it failed on."""
    return played(profile, *umockdev.run(profile, library))


@pytest.fixture(params=RUNS)
def run(request) -> tuple[str, Played]:
    profile, library = request.param
    if library == SYSTEM and umockdev.system_libusb() is None:
        pytest.skip("the operating system has no libusb of its own (Debian package libusb-1.0-0)")
    return library, scenes_of(profile, library, umockdev.repetition(request))


class TestLibusb(StickScenes):
    @pytest.fixture
    def played(self, run) -> Played:
        return run[1]

    def test_library_is_the_one_that_was_meant(self, run):
        library, played = run
        (path,) = played.facts("loaded")
        assert ("libusb_package" in path) == (library == PACKAGE)
