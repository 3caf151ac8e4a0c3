"""Assertions about the USB scenes, for every way to attach a stick. `StickScenes` needs a fixture `played`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from devices.emulators.pid.profiles.known import PROFILES
from devices.emulators.pid.profiles.profile import Profile
from tests.system.usb.driven import KEPT_DURATION
from tests.system.usb.scenes import FAR, NEAR

DISABLE = "0c02"
"""Device control that switches the motors off, on both sticks."""

SHORT = 2.0
"""Much less than the kernel's own patience with a stick, and much more than ours [s]."""


@dataclass(frozen=True)
class Scenes:
    """What came of scenes.

    Attributes
    ----------
    scenes : dict
        What came of each.
    said : str
        What else their program said.
    """

    scenes: dict[str, Any]
    said: str = ""

    def facts(self, scene: str) -> Any:
        """Return what came of a scene; fail with its traceback if it failed."""
        found = self.scenes.get(scene)
        if found is None:
            pytest.fail(f"{scene} was not played to its end:\n{self.said}")
        if "error" in found:
            pytest.fail(found["error"])
        return found["facts"]


@dataclass(frozen=True, kw_only=True)
class Played(Scenes):
    """What came of the scenes with the stick of a `profile`."""

    profile: Profile


def played(name: str, scenes: dict[str, Any], said: str = "") -> Played:
    """Return what came of the scenes with the stick `name`."""
    return Played(scenes, said, profile=PROFILES[name])


class StickScenes:
    """The driver over libusb."""

    def test_stick_says_who_it_is(self, played):
        judge_identity(played.facts("identity"), played.profile)

    def test_interface_is_taken_from_the_kernel_and_given_back(self, played):
        assert played.facts("identity")["bound"] == [True, False, True]
        assert not played.facts("drive")["during"]
        assert played.facts("drive")["after"]

    def test_force_reaches_the_motors_and_positions_come_back(self, played):
        judge_drive(played.facts("drive"))

    def test_silence_and_half_a_report_are_no_failure(self, played):
        facts = played.facts("mute")
        judge_mute(facts)
        assert facts["short"] == facts["whole"] // 2

    def test_deaf_stick_is_given_up_and_works_when_it_listens(self, played):
        facts = played.facts("deaf")
        assert facts["report"] == facts["feature"] == "timeout"
        assert facts["then"] == ""

    def test_halted_pipe_is_cleared(self, played):
        facts = played.facts("deaf")
        assert facts["halted"] == "stall"
        assert facts["cleared"] == ""

    def test_stick_of_another_program_is_refused_and_left_alone(self, played):
        judge_others(played.facts("other_program"))

    def test_force_of_a_killed_program_ends_by_itself(self, played):
        judge_killed(played.facts("other_program"))

    def test_stick_of_a_killed_program_goes_back_to_the_kernel_and_can_be_opened(self, played):
        judge_left(played.facts("other_program"))

    def test_dead_stick_is_noticed_and_holds_nobody_up(self, played):
        judge_dead(played.facts("dead"))

    def test_unplugged_stick_is_noticed_and_works_when_it_is_back(self, played):
        judge_unplugged(played.facts("unplugged"))


def judge_identity(facts: Any, profile: Profile, leave_out: str = "") -> None:
    """Judge what a stick says of itself."""
    truth = profile.truths()["device"]
    assert {name: facts[name] for name in truth if name != leave_out} == {
        name: value for name, value in truth.items() if name != leave_out
    }


def judge_mute(facts: Any) -> None:
    """Judge what came of listening to a stick that says little."""
    assert facts["unknown"] == "stall"
    assert facts["silent"] is None
    assert facts["whole"] > 1


def judge_drive(facts: Any) -> None:
    """Judge what came of a drive."""
    assert np.allclose(facts["felt"], facts["wanted"], atol=NEAR)
    assert np.linalg.norm(facts["place"]) > FAR
    assert DISABLE in facts["ending"]
    ending = facts["ending"][: facts["ending"].index(DISABLE)]
    stopped = {report[2:4] for report in ending if report.startswith("0a") and report[4:6] == "03"}
    zeroed = {report[2:4] for report in ending if report.startswith("05") and report.endswith("0000")}
    freed = {report[2:4] for report in ending if report.startswith("0b")}
    assert len(stopped) == 2
    assert stopped == zeroed == freed


def judge_dead(facts: Any) -> None:
    """Judge what came of a stick that fell dumb and deaf: the kernel tries for 5 s to tell it something, we do not."""
    assert "did not answer an output report in time" in facts["said"]
    assert facts["noticed"] < SHORT
    assert facts["closed"] < SHORT
    assert np.allclose(facts["felt"], (0.0, 1.0), atol=NEAR)
    assert facts["after"]


def judge_others(facts: Any) -> None:
    """Judge what came of opening a stick that another program has."""
    assert facts["refusals"]
    assert all("held by another program" in refusal for refusal in facts["refusals"])
    assert np.allclose(facts["unharmed"], facts["theirs"], atol=NEAR)


def judge_killed(facts: Any) -> None:
    """Judge what came of the force when that program was killed."""
    assert facts["frames"] <= 1e3 * (KEPT_DURATION + 0.05)


def judge_left(facts: Any) -> None:
    """Judge in what state that program left the stick."""
    assert facts["back"]
    assert facts["then"] == ""
    assert facts["after"]


def judge_unplugged(facts: Any) -> None:
    """Judge what came of pulling the plug."""
    assert "was unplugged" in facts["said"]
    assert facts["force"] == [0.0, 0.0]
    assert np.allclose(facts["felt"], (0.0, 1.0), atol=NEAR)
    assert facts["after"]
