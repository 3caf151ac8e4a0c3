"""An export takes the place of an earlier one, and of nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from apps.experiment.exports.folder import MANIFEST, new_export, write_text
from haptics.errors import ConfigurationError


def export(out: Path, text: str = "one") -> None:
    with new_export(out) as folder:
        write_text(folder, "deep/table.csv", text)


def test_an_export_replaces_an_earlier_one_whole(tmp_path: Path) -> None:
    out = tmp_path / "some" / "out"
    export(out)
    with new_export(out) as folder:
        write_text(folder, "other.csv", "two")
    assert sorted(path.name for path in out.rglob("*")) == [MANIFEST, "other.csv"]
    assert [path.name for path in out.parent.iterdir()] == ["out"]


def test_an_empty_folder_is_taken(tmp_path: Path) -> None:
    export(tmp_path)
    assert (tmp_path / "deep" / "table.csv").read_text() == "one"


def test_an_export_that_fails_leaves_everything_as_it_was(tmp_path: Path) -> None:
    out = tmp_path / "out"
    export(out)
    with pytest.raises(ZeroDivisionError), new_export(out) as folder:
        write_text(folder, "half.csv", "")
        raise ZeroDivisionError
    assert (out / "deep" / "table.csv").read_text() == "one"
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


@pytest.mark.parametrize("harm", ["edited", "added", "manifest", "link", "linked folder"])
def test_what_somebody_changed_or_added_stays(tmp_path: Path, harm: str) -> None:
    out = tmp_path / "out"
    export(out)
    table = out / "deep" / "table.csv"
    if harm == "edited":
        table.write_text("mine")
    elif harm == "added":
        (out / "notes.txt").write_text("mine")
    elif harm == "manifest":
        (out / MANIFEST).write_text("[]")
    elif harm == "link":
        table.rename(tmp_path / "elsewhere")
        table.symlink_to(tmp_path / "elsewhere")
    else:
        (out / "linked").symlink_to(tmp_path)
    before = sorted(out.rglob("*"))
    with pytest.raises(ConfigurationError, match="--out"):
        export(out, "two")
    assert sorted(out.rglob("*")) == before
    assert table.read_text() in ("one", "mine")


def test_other_peoples_folders_files_and_links_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "precious").write_text("mine")
    (tmp_path / "empty").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "empty")
    (tmp_path / "folders").mkdir()
    (tmp_path / "folders" / "inside").mkdir()
    for name in ("file", "folder", "link", "folders"):
        with pytest.raises(ConfigurationError, match="--out"):
            export(tmp_path / name)
    assert (tmp_path / "file").read_text() == (tmp_path / "folder" / "precious").read_text() == "mine"
    assert not any((tmp_path / "empty").iterdir())


def test_a_place_that_cannot_be_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigurationError, match="cannot be written"):
        export(tmp_path / "file" / "out")
