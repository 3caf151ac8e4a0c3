"""What excuses a scene that failed: that the machine did not let its program run, and nothing else."""

from __future__ import annotations

import pytest

from tests.late import Lateness
from tests.usb.judgement import Scenes, played
from tests.usb.stage import played as scenes_of

FAILED = '{"scene": "drive", "error": "it never pushed", "stall": 0.004}\n'


def test_a_scene_that_failed_while_the_program_ran_has_no_excuse() -> None:
    found = played("openffboard", scenes_of(FAILED))
    with pytest.raises(pytest.fail.Exception, match="it never pushed"):
        found.facts("drive")
    assert found.excuse() == ""


def test_a_stall_excuses_the_scene_it_came_in_and_no_other() -> None:
    text = FAILED + FAILED.replace("drive", "mute").replace("0.004", "0.3")
    found = played("openffboard", scenes_of(text + '{"scene": "dea'))
    for scene, excuse in (("mute", "for 0.3 s"), ("drive", "")):
        found.judged.clear()
        with pytest.raises(pytest.fail.Exception):
            found.facts(scene)
        assert excuse in found.excuse()
        assert bool(excuse) == bool(found.excuse())


@pytest.mark.parametrize(("stall", "excused"), [(0.7, False), (16.0, True)])
def test_a_long_wait_in_vain_is_not_excused_by_a_short_stall(stall: float, excused: bool) -> None:
    waited = FAILED.replace("0.004", f'{stall}, "timeout": 30.0')
    found = played("openffboard", scenes_of(waited))
    with pytest.raises(pytest.fail.Exception):
        found.facts("drive")
    assert bool(found.excuse()) == excused


@pytest.mark.parametrize("busy", [0.9, 5.5])
def test_what_was_not_played_to_its_end_is_excused_on_a_busy_machine_only(
    busy: float,
) -> None:
    found = Scenes({}, load=busy)
    with pytest.raises(pytest.fail.Exception, match="not played to its end"):
        found.facts("drive")
    assert ("5.5 programs wanted each processor" in found.excuse()) == (busy > 2.0)


def test_what_has_shorter_time_limits_is_excused_by_shorter_stalls() -> None:
    for matters, excused in ((0.003, True), (0.005, False)):
        found = Scenes(scenes_of(FAILED), matters=matters)
        with pytest.raises(pytest.fail.Exception):
            found.facts("drive")
        assert bool(found.excuse()) == excused


def test_lateness_is_the_longest_time_without_a_turn() -> None:
    lateness = Lateness(watch=False)
    start = lateness._last
    for now in (0.005, 0.011, 0.311, 0.317):
        lateness.note(start + now)
    assert lateness.take() == pytest.approx(0.295)
    assert lateness.take() == 0.0
