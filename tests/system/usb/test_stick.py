"""The joystick driver on real libusb above umockdev, and on a Linux kernel that runs as a process.

The kernel (user-mode Linux) has the emulated stick by USB/IP. It knows nothing of this project: its driver for
force-feedback sticks (hid-pidff) validates the emulator, and its reports are compared with the reports of our driver.
"""

import functools
import math
import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from devices.emulators.pid.profiles import PROFILES, Profile
from tests.processes import ROOT
from tests.system.usb import kernel, umockdev
from tests.system.usb.guest import LEVELS
from tests.system.usb.scenes import FAR, KEPT_DURATION, NEAR, results

# Device control that switches the motors off, on both sticks.
DISABLE = "0c02"
# Time limit of closing and of noticing a dead stick [s]; the kernel tries for 5 s.
SHORT = 2.0
SET_EFFECT, CONSTANT, OPERATION, FREE, CONTROL, GAIN = "01", "05", "0a", "0b", "0c", "0d"
START, STOP = "01", "03"


@dataclass(frozen=True)
class Played:
    """Results of scenes, other output of their program, and the profile of the stick."""

    scenes: dict[str, Any]
    output: str
    profile: Profile | None = None

    def facts(self, scene):
        """Return the result of a scene; fail with its traceback if it failed."""
        found = self.scenes.get(scene)
        if found is None:
            pytest.fail(f"{scene} was not played to its end:\n{self.output}")
        if "error" in found:
            pytest.fail(found["error"])
        return found["facts"]


class StickScenes:
    """Tests of the scenes by one transport; needs a fixture `played`."""

    suffix, bound, hidden = "", [True, False, True], ""

    @pytest.fixture
    def facts(self, played):
        return lambda scene: played.facts(scene + self.suffix)

    def test_stick_is_identified(self, facts, played):
        truth = dict(played.profile.truths()["device"])
        found = facts("identity")
        if self.hidden:  # the kernel puts the maker in front of the name
            assert played.profile.product in found[self.hidden]
            del truth[self.hidden]
        assert {name: found[name] for name in truth} == truth

    def test_interface_is_shared_with_the_kernel_as_the_transport_requires(self, facts):
        assert facts("identity")["bound"] == self.bound
        assert facts("drive")["during"] == self.bound[1]
        assert facts("drive")["after"]

    def test_force_reaches_the_motors_and_positions_are_read(self, facts):
        found = facts("drive")
        assert np.allclose(found["felt"], found["wanted"], atol=NEAR)
        assert np.linalg.norm(found["place"]) > FAR
        assert DISABLE in found["ending"]
        ending = found["ending"][: found["ending"].index(DISABLE)]
        stopped = {report[2:4] for report in ending if report.startswith("0a") and report[4:6] == "03"}
        zeroed = {report[2:4] for report in ending if report.startswith("05") and report.endswith("0000")}
        freed = {report[2:4] for report in ending if report.startswith("0b")}
        assert len(stopped) == 2
        assert stopped == zeroed == freed

    def test_silence_and_truncated_reports_are_no_failure(self, facts):
        found = facts("mute")
        assert found["unknown"] == "stall"
        assert found["silent"] is None
        assert found["whole"] > 1
        shorter = {found["whole"] // 2, 0} if self.suffix else {found["whole"] // 2}  # new kernels drop half a report
        assert found["short"] in shorter

    def test_stick_of_another_program_is_left_alone_until_that_is_killed(self, facts):
        found = facts("other_program")
        assert len(found["refusals"]) == (2 if self.suffix else 1)
        assert all("held by another program" in refusal for refusal in found["refusals"])
        assert np.allclose(found["unharmed"], found["theirs"], atol=NEAR)
        assert found["frames"] <= 1e3 * (KEPT_DURATION + 0.05)
        assert found["back"]
        assert found["then"] == ""
        assert found["after"]

    def test_dead_stick_is_noticed_without_blocking(self, facts):
        found = facts("dead")
        assert "did not answer an output report in time" in found["said"]
        assert found["noticed"] < SHORT
        assert found["closed"] < SHORT
        assert np.allclose(found["felt"], (0.0, 1.0), atol=NEAR)
        assert found["after"]

    def test_unplugged_stick_is_noticed_and_works_when_it_is_back(self, facts):
        found = facts("unplugged")
        assert "was unplugged" in found["said"]
        assert found["force"] == [0.0, 0.0]
        assert np.allclose(found["felt"], (0.0, 1.0), atol=NEAR)
        assert found["after"]


class LibusbScenes(StickScenes):
    def test_deaf_stick_times_out_and_a_halted_pipe_is_cleared(self, facts):
        found = facts("deaf")
        assert found["report"] == found["feature"] == "timeout"
        assert found["then"] == ""
        assert found["halted"] == "stall"
        assert found["cleared"] == ""


# --- libusb above umockdev -------------------------------------------------------------------------------------------


@functools.cache
def played_by_libusb(profile, library, repetition):
    """Play the scenes; a repeated test plays them again."""
    return Played(*umockdev.run("tests.system.usb.umockdev", profile, library), PROFILES[profile])


@pytest.mark.skipif(bool(umockdev.why_not()), reason=umockdev.why_not())
@pytest.mark.wall_clock
class TestLibusb(LibusbScenes):
    @pytest.fixture(
        params=[("openffboard", "package"), ("sidewinder-ff2", "package"), ("openffboard", "system")],
        ids="-".join,
    )
    def run(self, request):
        profile, library = request.param
        if library == "system" and umockdev.system_libusb() is None:
            pytest.skip("the operating system has no libusb of its own (Debian package libusb-1.0-0)")
        return library, played_by_libusb(profile, library, umockdev.repetition(request))

    @pytest.fixture
    def played(self, run):
        return run[1]

    def test_library_is_the_selected_one(self, run):
        library, played = run
        (path,) = played.facts("loaded")
        assert ("libusb_package" in path) == (library == "package")


# --- the kernel ------------------------------------------------------------------------------------------------------

needs_kernel = pytest.mark.skipif(bool(kernel.why_not()), reason=kernel.why_not())
STICKS, WHEEL = ("openffboard", "sidewinder-ff2"), "openffboard-wheel"


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A kernel for each stick, two at a time."""
    program, module = kernel.unpacked(tmp_path_factory.mktemp("kernel")), "tests.system.usb.guest"
    with ThreadPoolExecutor(2) as pool:
        yield {
            stick: pool.submit(kernel.run, program, module, stick, folder=tmp_path_factory.mktemp(stick))
            for stick in (WHEEL, *STICKS)
        }


def played_in_kernel(runs, stick):
    try:
        out, errors = runs[stick].result()
    except kernel.KernelAbsent as absent:
        pytest.skip(str(absent))
    return Played(results(out), errors, PROFILES[stick])


def blocks(reports):
    """Return the blocks of the constant effects in the order of their first magnitudes."""
    return list(dict.fromkeys(report[2:4] for report in reports if report.startswith(CONSTANT)))


def select(reports, kind, block):
    return [report for report in reports if report.startswith(kind + block)]


def counts(reports, block):
    """Return the magnitudes of an effect without repetitions."""
    found = [
        int.from_bytes(bytes.fromhex(each)[2:], "little", signed=True) for each in select(reports, CONSTANT, block)
    ]
    return [count for place, count in enumerate(found) if not place or count != found[place - 1]]


class BesideTheKernel:
    """The same effects by the kernel's driver and by ours; needs a fixture `played`."""

    @pytest.fixture
    def written(self, played):
        facts = played.facts("same_bytes")
        return facts["kernel"]["written"], facts["ours"]["written"]

    @pytest.fixture
    def effects(self, played):
        """Return the number of effects: one for each axis."""
        return 1 if played.profile.handle.rim_radius else 2

    def test_kernel_driver_reads_the_report_descriptor_and_sets_the_gain(self, played):
        facts = played.facts("enumerated")
        assert facts["report_descriptor_sha256"] == played.profile.truths()["device"]["report_descriptor_sha256"]
        assert "0dff" in facts["probe"]

    def test_effects_are_described_with_the_same_bytes(self, written, effects):
        kernels, ours = written
        assert blocks(kernels) == blocks(ours)
        assert len(blocks(ours)) == effects
        for block in blocks(ours):
            described = select(ours, SET_EFFECT, block)
            assert len(described) == 1
            assert described == select(kernels, SET_EFFECT, block)

    def test_effects_are_requested_with_the_same_bytes(self, played, effects):
        facts, profile = played.facts("same_bytes"), played.profile
        kernels, ours = facts["kernel"], facts["ours"]
        assert len(ours["features"]) == effects
        assert ours["features"] == kernels["features"]
        load = f"{profile.load:02x}03{profile.interface:02x}00"
        assert ours["asked"].count(load) == kernels["asked"].count(load) == effects

    def test_magnitudes_are_the_same_bytes(self, played, written, effects):
        """Of the same part of full scale the kernel sends the count towards zero, our driver the nearest one."""
        (kernels, ours), full = written, played.profile.full_scale
        same = 0
        for effect, block in enumerate(blocks(ours)):
            quotients = [levels[effect] * full / (0x7FFF if levels[effect] > 0 else 0x8000) for levels in LEVELS]
            assert counts(kernels, block) == [0, *map(math.trunc, quotients)]
            assert counts(ours, block) == [0, *map(round, quotients)]
            for count in [round(quotient) for quotient in quotients if math.trunc(quotient) == round(quotient)]:
                report = f"{CONSTANT}{block}{int.to_bytes(count, 2, 'little', signed=True).hex()}"
                assert report in kernels
                assert report in ours
                same += 1
        assert same >= effects * (len(LEVELS) - 1)

    def test_effects_are_started_and_freed_with_the_same_bytes(self, written):
        kernels, ours = written
        for block in blocks(ours):
            assert set(select(ours, OPERATION, block + START)) == set(select(kernels, OPERATION, block + START))
            assert set(select(ours, FREE, block)) == set(select(kernels, FREE, block))
            # The loop count of a stop has no meaning: the kernel keeps the count of the last start.
            stops = {report[:6] for report in select(kernels, OPERATION, block + STOP)}
            assert {report[:6] for report in select(ours, OPERATION, block + STOP)} == stops

    def test_stick_is_set_up_with_the_bytes_of_the_kernel(self, played, written):
        """Linux 6.1 does not know a device control that is a list of bits, so its bytes of that have no meaning."""
        kinds = (GAIN,) if played.profile.bits_control else (GAIN, CONTROL)
        probe = played.facts("enumerated")["probe"]
        assert {report for report in probe if report[:2] in kinds} <= set(written[1])

    def test_kernel_pushes_again_after_our_driver(self, played):
        assert played.facts("same_bytes")["pushes_again"]


@needs_kernel
class TestWheelBesideTheKernel(BesideTheKernel):
    @pytest.fixture
    def played(self, runs):
        return played_in_kernel(runs, WHEEL)


@needs_kernel
@pytest.mark.parametrize("played", STICKS, indirect=True)
class TestKernel(BesideTheKernel, LibusbScenes):
    @pytest.fixture
    def played(self, request, runs):
        return played_in_kernel(runs, request.param)


@needs_kernel
@pytest.mark.parametrize("played", STICKS, indirect=True)
class TestHidraw(StickScenes):
    suffix, bound, hidden = "_by_hidraw", [True, True, True], "name"

    @pytest.fixture
    def played(self, request, runs):
        return played_in_kernel(runs, request.param)


@needs_kernel
def test_tests_of_the_can_port_pass_in_the_kernel(tmp_path):
    """The kernel has virtual CAN."""
    without = ("cacheprovider", "rerunfailures", "xdist")  # plug-ins that write to disk or need the internet protocols
    words = [word for plugin in without for word in ("-p", f"no:{plugin}")]
    words += ["-q", "-rs", "-c", "/dev/null", "--rootdir", str(ROOT)]
    words += ["-k", "interface or port_returns", str(ROOT / "tests/devices/arm/test_can_bus.py")]
    try:
        out, errors = kernel.run(kernel.unpacked(tmp_path), "pytest", *words, folder=tmp_path)
    except kernel.KernelAbsent as absent:
        pytest.skip(str(absent))
    assert re.search(r"^[4-9] passed, \d+ deselected", out, re.MULTILINE), (out, errors)
