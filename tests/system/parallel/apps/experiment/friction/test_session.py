"""Long computations for the topic of tests/apps/experiment/friction/test_session.py."""

from __future__ import annotations

import pytest

from apps.experiment.journal import SessionFolder, read_journal
from calibration.parameters.files import read_parameter_file
from haptics.reading import sha256_of
from tests.apps.experiment.friction.test_session import (
    event,
    session,  # noqa: F401
)


def test_it_is_measured_before_the_first_block_and_kept(session: SessionFolder) -> None:
    records, told = read_journal(session.journal).records, event(session)
    first = next(one for one in records if one["record"] == "block_start")
    assert told["number"] < first["number"]
    file = session.folder / "own_friction.toml"
    assert sha256_of(file) == told["sha256"]
    for axis in "xy":
        known = read_parameter_file(file).joint(axis).known_friction()
        assert known.values["coulomb"] == pytest.approx(0.4, abs=0.01), "the truth of the virtual joystick"
    assert (session.folder / told["recording"] / "ticks.npy").is_file()
