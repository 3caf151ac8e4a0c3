"""The queue of transfers of the drive on real libusb, above umockdev and an emulated drive."""

import functools

import pytest

from devices.common.usb_queue import AHEAD, CANCEL_TIMEOUT, MOST, WRITE_TIMEOUT
from tests.system.usb import umockdev
from tests.system.usb.test_stick import Played

pytestmark = [
    pytest.mark.skipif(bool(umockdev.why_not()), reason=umockdev.why_not()),
    pytest.mark.wall_clock,
]

# Delay of a busy machine [s].
SLACK = 1.0


@functools.cache
def scenes_of(library, repetition):
    """Play the scenes; a repeated test plays them again."""
    return Played(*umockdev.run("tests.system.usb.drive", library))


@pytest.fixture(params=["package", "system"])
def played(request):
    if request.param == "system" and umockdev.system_libusb() is None:
        pytest.skip("the operating system has no libusb of its own (Debian package libusb-1.0-0)")
    return scenes_of(request.param, umockdev.repetition(request))


def all_free(found):
    return found["allocated"] == found["freed"] == MOST + AHEAD


def test_drive_gets_a_queue_whose_transfers_are_freed(played):
    found = played.facts("opening")
    assert found["queued"] == ["queued", "2065339F304B", 24.0]
    assert found["plain"] == ["one at a time: not today", 24.0]
    assert all_free(found)


def test_round_takes_less_than_its_single_transfers(played):
    queued, one_at_a_time = played.facts("speed")
    assert one_at_a_time > 9.0
    assert queued < 0.4 * one_at_a_time


def test_pipe_that_stalled_once_is_restarted(played):
    found = played.facts("halted")
    assert not found["first"] or found["first"].startswith("timeout")
    assert not found["second"]
    assert not found["halted"]


@pytest.mark.parametrize(
    ("scene", "words"),
    [
        ("stall", "stall: the drive refused an"),
        ("nak", "timeout: the drive did"),
        ("short", "in place of 4: the request is unknown to it"),
        ("lost-answer", "timeout: the drive does not answer"),
    ],
)
def test_fault_has_its_message_and_all_transfers_are_freed(played, scene, words):
    found = played.facts(scene)
    assert any(words in said for said in found["said"]), found["said"]
    assert all(found["said"])
    assert all_free(found)
    assert found["took"] < 2.0 * WRITE_TIMEOUT + CANCEL_TIMEOUT + SLACK


def test_too_long_answer_is_a_lost_answer(played):
    assert played.facts("overflow").startswith("broken: an answer was lost")


def test_unplugged_drive_is_reported_and_can_be_opened_again(played):
    found = played.facts("unplugged")
    assert found["said"].startswith("unplugged: the drive was unplugged, or lost its power: plug it in")
    assert not found["again"]
    assert all_free(found)
    assert found["took"] < CANCEL_TIMEOUT + SLACK


def test_last_packets_are_sent_before_closing(played):
    assert played.facts("last_words") == 4


def test_transfers_that_cannot_be_cancelled_are_not_freed(played):
    found = played.facts("kept")
    assert found["kept"] == found["allocated"] - found["freed"] == AHEAD
    assert found["took"] < CANCEL_TIMEOUT + SLACK


def test_ctrl_c_is_handled_at_once_and_all_transfers_are_freed(played):
    found = played.facts("interrupted")
    assert 0.0 < found["heard"] < SLACK
    assert all_free(found)
