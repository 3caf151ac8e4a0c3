"""Pictures of sessions: memory, links in place of files, imports."""

import numpy as np
import pytest

from apps.shared.picture import _Run, draw
from haptics.device import Causality
from tests.apps.session.test_picture import circle, record


@pytest.mark.parametrize("kind", ["link", "link to nowhere", "file"])
def test_picture_is_never_written_through_a_link_or_over_a_foreign_file(tmp_path, kind):
    """A recording may come from a stranger, with a picture.png that points anywhere."""
    own = tmp_path / "thesis.tex"
    own.write_text("years of work")
    recording = record(tmp_path, circle(300), Causality.IMPEDANCE)
    picture = recording.folder / "picture.png"
    if kind == "file":
        picture.write_text("years of work")
    else:
        picture.symlink_to(own if kind == "link" else tmp_path / "nowhere")
    with pytest.raises(FileExistsError, match=r"picture\.png (is a|was not written by this program)"):
        draw(recording)
    assert own.read_text() == "years of work"
    assert picture.is_symlink() == (kind != "file")
    assert not (tmp_path / "nowhere").exists()
    picture.unlink()
    for _ in range(2):  # an own picture is replaced
        assert draw(recording) == str(picture)
        assert picture.read_bytes().startswith(b"\x89PNG")
    assert len([path for path in recording.folder.iterdir() if "picture" in path.name]) == 1


def test_picture_memory_does_not_grow_with_the_run(tmp_path):
    recording = record(tmp_path, circle(1000), Causality.ADMITTANCE)

    def kept(copies):
        recording.rows = np.tile(circle(1000), copies)
        return sum(part.nbytes for parts in _Run(recording)._points.values() for part in parts)

    assert kept(800) < 1.1 * kept(200)
