"""Names of participants, experiments and folders."""

from __future__ import annotations

from pathlib import Path

import pytest

from apps.experiment.journal import Journal, SessionFolder, require_code, sessions_below, task_label
from haptics.errors import ConfigurationError, RecordingError
from tests.apps.experiment.journal.records import HEADER, place


@pytest.mark.parametrize("code", ["P01", "01", "s3", "SIM", "x", "A" * 32])
def test_codes_are_taken(code: str) -> None:
    assert require_code(code) == code


@pytest.mark.parametrize(
    "code", ["", "Ann Lee", "a@b.org", "sub-01", "P_01", "P.01", "../x", "Ü1", "P01\n", "A" * 33, "Anna", "Meier", "１"]
)
def test_names_of_people_and_of_folders_are_refused(code: str) -> None:
    with pytest.raises(ConfigurationError, match="must be a code"):
        require_code(code)


def test_an_experiment_keeps_its_letters_and_digits() -> None:
    assert task_label("Weber-function of friction (2)") == "Weberfunctionoffriction2"
    for name in ("", "---", "摩擦", "x" * 65):
        with pytest.raises(ConfigurationError, match="letters"):
            task_label(name)


def test_a_session_is_found_by_its_folder_and_its_journal(tmp_path: Path) -> None:
    with Journal.create(place(tmp_path), HEADER) as journal:
        pass
    where = journal.place
    assert SessionFolder.of(where.folder) == SessionFolder.of(where.journal) == where
    assert where.recording(3).name == "block-03"
    assert where.recording(3, 2).name == "block-03_2"
    with pytest.raises(RecordingError, match="no session"):
        SessionFolder.of(tmp_path)
    (where.folder / "sub-P02_ses-01_task-friction_journal.jsonl").write_text("")
    with pytest.raises(RecordingError, match="must be one file"):
        SessionFolder.of(where.folder)


def test_sessions_are_found_from_every_floor(tmp_path: Path) -> None:
    for participant, session in (("P02", 1), ("P01", 2), ("P01", 1)):
        Journal.create(place(tmp_path, participant, session), HEADER).close()
    found = [(one.participant, one.session) for one in sessions_below(tmp_path)]
    assert found == [("P01", 1), ("P01", 2), ("P02", 1)]
    assert [one.session for one in sessions_below(tmp_path / "sub-P01")] == [1, 2]
    assert sessions_below(tmp_path / "sub-P02" / "ses-01")[0].participant == "P02"
    with pytest.raises(RecordingError, match="holds no session"):
        sessions_below(tmp_path / "sub-P01" / "ses-01" / "blocks")


def test_a_session_has_a_number_from_1() -> None:
    for number in (0, -1, 1000):
        with pytest.raises(ConfigurationError, match="session"):
            SessionFolder.new(Path("out"), "P01", number, "friction")
