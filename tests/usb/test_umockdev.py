"""The driver on real libusb, below which umockdev shows an emulated stick; the kernel's part is played by the tests."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest

from tests.usb import umockdev
from tests.usb.judgement import Played, StickScenes, played

pytestmark = pytest.mark.skipif(bool(umockdev.why_not()), reason=umockdev.why_not())

PACKAGE, SYSTEM = "package", "system"
RUNS = (("openffboard", PACKAGE), ("sidewinder-ff2", PACKAGE), ("openffboard", SYSTEM))


@pytest.fixture(scope="module")
def runs() -> Iterator[dict[tuple[str, str], Future[tuple[dict[str, Any], str]]]]:
    """Two programs at a time."""
    there = [run for run in RUNS if run[1] == PACKAGE or umockdev.system_libusb() is not None]
    with ThreadPoolExecutor(2) as pool:
        yield {run: pool.submit(umockdev.run, *run) for run in there}


@pytest.fixture(scope="module", params=RUNS, ids="-".join)
def run(request, runs) -> tuple[str, Played]:
    if request.param not in runs:
        pytest.skip("the operating system has no libusb of its own (Debian package libusb-1.0-0)")
    profile, library = request.param
    scenes, said = runs[request.param].result()
    return library, played(profile, scenes, said)


class TestLibusb(StickScenes):
    @pytest.fixture
    def played(self, run) -> Played:
        return run[1]

    def test_library_is_the_one_that_was_meant(self, run):
        library, played = run
        (path,) = played.facts("loaded")
        assert ("libusb_package" in path) == (library == PACKAGE)
