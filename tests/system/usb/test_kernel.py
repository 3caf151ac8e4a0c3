"""The driver on a real Linux kernel, and beside the kernel's own driver for force-feedback sticks (hid-pidff).

The kernel runs as a process (user-mode Linux); the emulated stick is plugged into it by USB/IP. It knows nothing of
this project: that it finds its way about the stick judges the emulator, that it sends the same bytes the driver.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from tests.system.usb import kernel
from tests.system.usb.guest import LEVELS
from tests.system.usb.judgement import (
    Played,
    StickScenes,
    judge_dead,
    judge_drive,
    judge_identity,
    judge_killed,
    judge_left,
    judge_mute,
    judge_others,
    judge_unplugged,
    played,
)
from tests.system.usb.stage import played as scenes_of

pytestmark = [
    pytest.mark.skipif(bool(kernel.why_not()), reason=kernel.why_not()),
]

SET_EFFECT, CONSTANT, OPERATION, FREE, CONTROL, GAIN = "01", "05", "0a", "0b", "0c", "0d"
START, STOP = "01", "03"


STICKS = ("openffboard", "sidewinder-ff2")
WHEEL = "openffboard-wheel"
TOGETHER = 2
"""So many kernels run at a time."""


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> Iterator[dict[str, Future[tuple[str, str]]]]:
    """A kernel for each of them."""
    program = kernel.unpacked(tmp_path_factory.mktemp("kernel"))
    with ThreadPoolExecutor(TOGETHER) as pool:
        yield {
            stick: pool.submit(
                kernel.run, program, "tests.system.usb.guest", stick, folder=tmp_path_factory.mktemp(stick)
            )
            for stick in (WHEEL, *STICKS)
        }


def _come_of(runs: dict[str, Future[tuple[str, str]]], stick: str) -> Played:
    try:
        out, said = runs[stick].result()
    except kernel.KernelAbsent as absent:
        pytest.skip(str(absent))
    return played(stick, scenes_of(out), said)


@pytest.fixture(scope="module", params=STICKS)
def run(request, runs) -> Played:
    return _come_of(runs, request.param)


@pytest.fixture(scope="module")
def wheel(runs) -> Played:
    return _come_of(runs, WHEEL)


def _effects(run: Played) -> int:
    """Return how many effects make a force: one for each axis."""
    return 1 if run.profile.handle.rim_radius else 2


def _of(reports: list[str], kind: str, block: str) -> list[str]:
    return [report for report in reports if report.startswith(kind + block)]


def _blocks(reports: list[str]) -> list[str]:
    """Return the blocks of the constant effects, in the order in which they got their first magnitude."""
    return list(dict.fromkeys(report[2:4] for report in reports if report.startswith(CONSTANT)))


def _counts(reports: list[str], block: str) -> list[int]:
    """Return the magnitudes that an effect was given, repetitions left out."""
    counts = [
        int.from_bytes(bytes.fromhex(report)[2:], "little", signed=True) for report in _of(reports, CONSTANT, block)
    ]
    return [count for place, count in enumerate(counts) if not place or count != counts[place - 1]]


class BesideTheKernel:
    """The same effects by the kernel's driver and by ours; needs a fixture `played`."""

    def test_kernel_reads_the_report_descriptor(self, played):
        digest = played.profile.truths()["device"]["report_descriptor_sha256"]
        assert played.facts("enumerated")["report_descriptor_sha256"] == digest

    def test_kernels_driver_loads(self, played):
        facts = played.facts("enumerated")
        assert facts["effects"] >= 2
        assert "0dff" in facts["probe"]  # it has set the gain

    def test_effects_are_described_with_the_same_bytes(self, played):
        facts = played.facts("same_bytes")
        kernels, ours = facts["kernel"]["written"], facts["ours"]["written"]
        assert _blocks(kernels) == _blocks(ours)
        assert len(_blocks(ours)) == _effects(played)
        for block in _blocks(ours):
            described = _of(ours, SET_EFFECT, block)
            assert len(described) == 1
            assert described == _of(kernels, SET_EFFECT, block)

    def test_effects_are_asked_for_with_the_same_bytes(self, played):
        facts, profile = played.facts("same_bytes"), played.profile
        kernels, ours = facts["kernel"], facts["ours"]
        assert len(ours["features"]) == _effects(played)
        assert ours["features"] == kernels["features"]
        load = f"{profile.load:02x}03{profile.interface:02x}00"
        assert ours["asked"].count(load) == kernels["asked"].count(load) == _effects(played)

    def test_magnitudes_are_the_same_bytes(self, played):
        """Of the same part of full scale the kernel sends the count towards zero, we the nearest one."""
        facts, full = played.facts("same_bytes"), played.profile.scales.constant
        kernels, ours = facts["kernel"]["written"], facts["ours"]["written"]
        same = 0
        for effect, block in enumerate(_blocks(ours)):
            quotients = [levels[effect] * full / (0x7FFF if levels[effect] > 0 else 0x8000) for levels in LEVELS]
            assert _counts(kernels, block) == [0, *map(math.trunc, quotients)]
            assert _counts(ours, block) == [0, *map(round, quotients)]
            for quotient in quotients:
                if math.trunc(quotient) == round(quotient):
                    report = f"{CONSTANT}{block}{int.to_bytes(round(quotient), 2, 'little', signed=True).hex()}"
                    assert report in kernels
                    assert report in ours
                    same += 1
        assert same >= _effects(played) * (len(LEVELS) - 1)

    def test_effects_are_started_and_freed_with_the_same_bytes(self, played):
        facts = played.facts("same_bytes")
        kernels, ours = facts["kernel"]["written"], facts["ours"]["written"]
        for block in _blocks(ours):
            assert set(_of(ours, OPERATION, block + START)) == set(_of(kernels, OPERATION, block + START))
            assert set(_of(ours, FREE, block)) == set(_of(kernels, FREE, block))
            # The loop count of a stop means nothing: the kernel leaves that of the last start in it.
            stops = {report[:6] for report in _of(kernels, OPERATION, block + STOP)}
            assert {report[:6] for report in _of(ours, OPERATION, block + STOP)} == stops

    def test_stick_is_set_up_with_the_kernels_bytes(self, played):
        """Linux 6.1 does not know a device control that is a list of bits: what it sends of it says nothing there."""
        kernels, ours = played.facts("enumerated")["probe"], played.facts("same_bytes")["ours"]["written"]
        kinds = (GAIN,) if played.profile.bits_control else (GAIN, CONTROL)
        assert {report for report in kernels if report[:2] in kinds} <= set(ours)

    def test_kernel_pushes_again_after_us(self, played):
        assert played.facts("same_bytes")["pushes_again"]


class TestWheelBesideTheKernel(BesideTheKernel):
    @pytest.fixture
    def played(self, wheel) -> Played:
        return wheel


class TestKernel(BesideTheKernel, StickScenes):
    @pytest.fixture
    def played(self, run) -> Played:
        return run

    def test_kernel_pushes_and_axes_arrive_as_events(self, played):
        facts = played.facts("axes")  # of an open event device, whose queue may overrun: what is in it must be right
        for code in range(2):
            places = {place[code] for place in facts["wire"]}
            moves = {place for axis, place in facts["moves"] if axis == code}
            assert len(moves) > 1
            assert moves <= places

    def test_kernel_pushes_again_after_our_driver_was_killed(self, played):
        assert played.facts("other_program")["after_kill"]

    # --- our driver without libusb

    def test_hidraw_says_who_the_stick_is(self, played):
        facts = played.facts("identity_by_hidraw")
        judge_identity(facts, played.profile, leave_out="name")
        assert played.profile.product in facts["name"]  # the kernel puts the maker in front
        assert facts["bound"] == [True, True, True]

    def test_hidraw_takes_silence_and_half_a_report(self, played):
        facts = played.facts("mute_by_hidraw")
        judge_mute(facts)
        assert facts["short"] in {0, facts["whole"] // 2}  # newer kernels keep half a report to themselves

    def test_hidraw_drives_while_the_kernel_keeps_the_stick(self, played):
        facts = played.facts("drive_by_hidraw")
        assert facts["during"]
        judge_drive(facts)

    def test_hidraw_of_a_dead_stick_holds_nobody_up(self, played):
        judge_dead(played.facts("dead_by_hidraw"))

    def test_hidraw_says_that_it_cannot_clear_a_halted_pipe(self, played):
        facts = played.facts("halted_by_hidraw")
        assert facts["first"] == facts["then"]
        assert "refused an output report (stall): unplug it" in facts["first"]

    def test_hidraw_keeps_two_programs_apart_and_one_of_them_from_libusb(self, played):
        facts = played.facts("other_program_by_hidraw")
        assert len(facts["refusals"]) == 2
        judge_others(facts)

    def test_hidraw_of_a_killed_program_leaves_neither_force_nor_lock(self, played):
        facts = played.facts("other_program_by_hidraw")
        judge_killed(facts)
        judge_left(facts)

    def test_hidraw_notices_that_the_stick_is_unplugged(self, played):
        judge_unplugged(played.facts("unplugged_by_hidraw"))
