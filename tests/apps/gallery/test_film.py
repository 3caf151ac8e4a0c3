"""Films: as many frames as there are, in which something moves, and an MP4 where ``ffmpeg`` is on the path."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from apps.gallery.film import HEIGHT, LENGTH, PER_SECOND, WIDTH, Film, write_film
from apps.gallery.outcome import Scene
from haptics.errors import ConfigurationError
from haptics.records import ROW


def moving(duration: float) -> np.ndarray:
    rows = np.zeros(round(1000 * duration), ROW)
    rows["time"] = 1e-3 * np.arange(len(rows))
    rows["position"][:, 0] = 0.05 * np.sin(rows["time"])
    rows["proxy"] = rows["position"]
    rows["friction_force"][:, 0] = 3.0
    rows["sticking"] = rows["time"] > 0.5 * duration
    return rows


@pytest.mark.parametrize(("duration", "speed"), [(2.0, 1.0), (60.0, 60.0 / LENGTH)])
def test_a_long_run_is_sped_up(duration: float, speed: float) -> None:
    film = Film("title", "foot", [Scene("one", moving(duration))])
    assert film.speed == pytest.approx(speed, rel=0.01)
    assert film.count == pytest.approx(PER_SECOND * min(duration, LENGTH), abs=1)


def test_the_film_shows_what_moves(tmp_path: Path) -> None:
    scenes = [Scene("one", moving(1.0)), Scene("two", moving(1.0))]
    (path,) = write_film(Film("title", "foot", scenes), tmp_path / "film")
    with Image.open(path) as image:
        assert (image.size, image.n_frames) == ((WIDTH, HEIGHT), PER_SECOND)  # type: ignore[attr-defined]
        frames = []
        for number in (1, PER_SECOND - 1):
            image.seek(number)
            frames.append(np.asarray(image.convert("RGB"), float))
    assert np.abs(frames[0] - frames[1]).max() > 100.0


def test_ffmpeg_gets_every_frame(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "ffmpeg"
    program.write_text('#!/bin/sh\nfor last; do :; done\ncat > "$last"\n', encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    paths = write_film(Film("title", "foot", [Scene("one", moving(0.5))]), tmp_path / "film")
    assert paths[1].suffix == ".mp4"
    assert paths[1].stat().st_size == round(0.5 * PER_SECOND) * WIDTH * HEIGHT * 3


def test_what_ffmpeg_refuses_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "ffmpeg"
    program.write_text("#!/bin/sh\ncat > /dev/null\necho no such codec >&2\nexit 1\n", encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    with pytest.raises(ConfigurationError, match="no such codec"):
        write_film(Film("title", "foot", [Scene("one", moving(0.5))]), tmp_path / "film")
