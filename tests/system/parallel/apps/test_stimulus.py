"""Compensated friction in experiments: resumed sessions and changes beyond the interval."""

import pytest

from apps.experiment.journal import read_journal
from apps.experiment.session.running import resume_session
from haptics.errors import RecordingError
from tests.apps.experiment.session.running import simulate
from tests.apps.experiment.test_stimulus import EARLIER, design_in, event, session  # noqa: F401


def test_friction_change_beyond_its_interval_is_reported(session):
    told = event(session)
    beyond = {(one["axis"], one["name"]) for one in told["changes"] if one["beyond"]}
    assert beyond == {("x", "coulomb")}
    assert "coulomb of x is 0.4 N and was 0.25 N" in told["words"] and "of y" not in told["words"]


def test_resumed_session_keeps_the_measured_friction(session, tmp_path):
    _, place = simulate(design_in(tmp_path), tmp_path / "out")
    whole = read_journal(place.journal).records
    lines = place.journal.read_text().splitlines(keepends=True)
    place.journal.write_text("".join(lines[:9]))
    resume_session(place.folder)
    again = [one for one in read_journal(place.journal).records if one["record"] != "block_start"]
    assert sum(one.get("name") == "own-friction" for one in again) == 1, "it was not measured a second time"
    trials = ("trial_start", "response", "trial_end")
    own = ("utc", "monotonic_ns", "number")
    told, expected = (
        [{k: v for k, v in one.items() if k not in own} for one in records if one["record"] in trials]
        for records in (again, whole)
    )
    assert told == expected
    place.journal.write_text("".join(lines[:9]))
    (place.folder / "own_friction.toml").write_text(EARLIER)
    with pytest.raises(RecordingError, match="was changed"):
        resume_session(place.folder)
