"""The drive's queue of transfers on real libusb: below it umockdev and an emulated drive, or a bus with latencies."""

from __future__ import annotations

import functools
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from devices.arm.motors.usb.libusb_queue import FAREWELL, MOST
from devices.arm.motors.usb.pipes import WRITE_TIMEOUT
from devices.arm.motors.usb.queue import AHEAD
from tests.system.usb import umockdev
from tests.system.usb.judgement import Scenes

pytestmark = [
    pytest.mark.skipif(bool(umockdev.why_not()), reason=umockdev.why_not()),
    pytest.mark.wall_clock,
]

SLACK = 1.0
"""What a busy machine may add to a time limit [s]."""


@functools.cache
def scenes_of(library: str, repetition: int) -> Scenes:
    """Return what came of the scenes; a test that is repeated judges others than those that it failed on."""
    return Scenes(*umockdev.run_below("tests.system.usb.drive", library))


@pytest.fixture(params=["package", "system"])
def played(request) -> Scenes:
    """What came of the scenes with one libusb."""
    if request.param == "system" and umockdev.system_libusb() is None:
        pytest.skip("the operating system has no libusb of its own (Debian package libusb-1.0-0)")
    return scenes_of(request.param, umockdev.repetition(request))


def all_free(found: dict[str, Any], queues: int = 1) -> bool:
    return found["allocated"] == found["freed"] == queues * (MOST + AHEAD)


def test_a_queue_is_there_and_everything_is_freed(played):
    found = played.facts("opening")
    assert found["queued"] == ["queued", "2065339F304B", 24.0]
    assert found["plain"] == ["one at a time: not today", 24.0]
    assert all_free(found)


def test_the_drive_hears_the_same_packets_in_the_same_order(played):
    found = played.facts("wire")
    assert found["same"]
    assert found["packets"] > 20 * 9


def test_a_round_takes_the_way_there_and_back_and_not_so_many_transfers(played):
    queued, one_at_a_time = played.facts("speed")
    assert one_at_a_time > 9.0
    assert queued < 0.4 * one_at_a_time


def test_a_pipe_that_has_stalled_once_is_set_going_again(played):
    found = played.facts("halted")
    assert not found["first"] or found["first"].startswith("timeout")
    assert not found["second"]
    assert not found["halted"]


@pytest.mark.parametrize(
    ("scene", "words"),
    [
        ("stall", "stall: the drive refused an"),
        ("silent", "timeout: the drive did"),
        ("short", "in place of 4: it does not know what it was asked for"),
        ("unanswered", "timeout: the drive does not answer"),
    ],
)
def test_what_goes_wrong_is_told_in_the_words_of_single_transfers_and_nothing_is_left(played, scene, words):
    found = played.facts(scene)
    assert any(words in said for said in found["said"]), found["said"]
    assert all(found["said"])
    assert all_free(found)
    assert found["took"] < 2.0 * WRITE_TIMEOUT + FAREWELL + SLACK


def test_more_than_there_is_room_for_is_an_answer_that_was_lost(played):
    assert played.facts("overflow").startswith("broken: an answer was lost")


def test_a_drive_that_is_unplugged_is_told_and_nothing_is_left_and_it_can_come_again(played):
    found = played.facts("unplugged")
    assert found["said"].startswith("unplugged: the drive was unplugged, or lost its power: plug it in")
    assert not found["again"]
    assert all_free(found)
    assert found["took"] < FAREWELL + SLACK


def test_what_was_written_last_goes_out_before_everything_is_taken_back(played):
    assert played.facts("last_words") == 4


def test_what_the_system_does_not_give_back_is_never_freed(played):
    found = played.facts("kept")
    assert found["kept"] == found["allocated"] - found["freed"] == AHEAD
    assert found["took"] < FAREWELL + SLACK


def test_ctrl_c_is_heard_at_once_and_nothing_is_left(played):
    found = played.facts("interrupted")
    assert 0.0 < found["heard"] < SLACK
    assert all_free(found)


def test_the_library_is_the_one_that_was_meant(played, request):
    (path,) = played.facts("loaded")
    assert ("libusb_package" in path) == ("package" in request.node.name)


@pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")
@pytest.mark.wall_clock
def test_with_250_us_a_transfer_a_thousand_rounds_go_into_a_second(tmp_path):
    library = tmp_path / "fast_usbfs.so"
    source = Path(__file__).with_name("fast_usbfs.c")
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", library, source, "-ldl", "-lpthread"], check=True)
    scenes = Scenes(*umockdev.run_below("tests.system.usb.drive_rate", also=str(library)))
    (queued, fast), (plain, slow) = scenes.facts("rates")
    assert (queued, plain) == ("queued", "one at a time: not today")
    assert slow < 450.0
    assert fast > 2.0 * slow
