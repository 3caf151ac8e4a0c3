"""Results of a demonstration: picture, film and replay verification, as text and JSON."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from apps.gallery.showing import Guide, Outcome, Scene, Showing
from apps.reproduce.report import row_as_json, row_sentence
from apps.reproduce.style import INK
from apps.shared.command import Answer
from apps.shared.terminal import wrapped
from apps.shared.theme import LIGHT
from apps.verification import examine
from haptics.errors import ConfigurationError

# --- films ------------------------------------------------------------------------------------------------------------

if TYPE_CHECKING:
    from PIL.Image import Image
    from PIL.ImageDraw import ImageDraw

    from haptics.records import Rows

WIDTH, HEIGHT, PER_SECOND, LENGTH = 640, 360, 8, 5.0
"""Size [pixels], frame rate [1/s], and maximum duration [s]. Longer runs are sped up to this duration."""

_FINE = 2
"""Supersampling factor: frames are drawn larger and scaled down for smooth lines."""

_LEFT, _SPLIT, _TOP, _FOOT = 16, 330, 62, 30
_TRAIL = 250
"""Number of points in the drawn path of the contact."""

_LEAST = 1e-3
"""Minimum extent of the displayed workspace [m]."""


class Film:
    """Film of one run, or of two runs of equal length above each other, drawn with Pillow.

    The handle is a disc, the contact a square, and a line connects them. The path of the contact remains visible, in a
    different colour where the contact stuck. The force is drawn at the right.

    Parameters
    ----------
    title, foot : str
        Text above and below the runs.
    scenes : sequence of Scene
        One or two runs.
    """

    def __init__(self, title: str, foot: str, scenes: Sequence[Scene]) -> None:
        self._title, self._foot = title, foot
        duration = float(scenes[0].rows["time"][-1] - scenes[0].rows["time"][0])
        self.speed = max(duration / LENGTH, 1.0)
        self.count = max(round(PER_SECOND * duration / self.speed), 2)
        height = (HEIGHT - _TOP - _FOOT) / len(scenes)
        places = [(_TOP + k * height, _TOP + (k + 1) * height - 8.0) for k in range(len(scenes))]  # edges [pixels]
        points = np.concatenate([scene.rows[name] for scene in scenes for name in ("position", "proxy")])
        points = points[np.isfinite(points).all(axis=1)]
        centre, extent = 0.5 * (points.min(axis=0) + points.max(axis=0)), np.ptp(points, axis=0)
        room = np.array([_SPLIT - _LEFT - 40.0, places[0][1] - places[0][0] - 50.0])
        scale = float(np.min(room / np.maximum(extent, _LEAST)))
        self._tracks = [_Track(scene, *place, centre, scale) for scene, place in zip(scenes, places, strict=True)]
        self._small, self._large, self._last = _font(13), _fitting(title, 17), _fitting(foot, 13)

    def frames(self) -> Iterator[Image]:
        """Yield the frames, in order."""
        from PIL import Image, ImageDraw

        faster = f"{self.speed:.0f} times as fast" if self.speed >= 1.5 else "real time"
        for number in range(1, self.count + 1):
            image = Image.new("RGB", (_FINE * WIDTH, _FINE * HEIGHT), LIGHT.panel)
            draw = ImageDraw.Draw(image)
            _text(draw, _LEFT, 10, self._title, self._large, LIGHT.text)
            _text(draw, _LEFT, 36, f"hand: disc, contact: square; orange: sticks; {faster}", self._small, LIGHT.faint)
            _text(draw, _LEFT, HEIGHT - _FOOT + 4, self._foot, self._last, LIGHT.text)
            for track in self._tracks:
                track.draw(draw, number / self.count, self._small)
            yield image.resize((WIDTH, HEIGHT), Image.Resampling.LANCZOS)


class _Track:
    """One run in a film."""

    def __init__(self, scene: Scene, top: float, bottom: float, centre: NDArray[np.float64], scale: float) -> None:
        rows: Rows = scene.rows[np.isfinite(scene.rows["proxy"]).all(axis=1)]
        self._title, self._rows, self._top, self._bottom = scene.title, rows, top, bottom
        self._centre, self._scale = centre, scale
        self._force = np.linalg.norm(rows["friction_force"], axis=1)
        self._most = max(float(np.percentile(self._force, 99.9)), 1e-3)

    def draw(self, draw: ImageDraw, part: float, font: Any) -> None:
        """Draw workspace and force at the relative time `part`, from 0 to 1."""
        rows, now = self._rows, max(int(part * len(self._rows)) - 1, 0)
        _text(draw, _LEFT, self._top, self._title, font, LIGHT.text)
        steps = np.unique(np.linspace(0, now, _TRAIL).astype(int))
        trail = self._pixels(rows["proxy"][steps])
        colours = [LIGHT.stick if sticks else LIGHT.motion for sticks in rows["sticking"][steps]]
        for k in range(len(trail) - 1):
            draw.line([*trail[k], *trail[k + 1]], fill=colours[k], width=2 * _FINE)
        handle, contact = self._pixels(np.stack((rows["position"][now], rows["proxy"][now])))
        draw.line([*handle, *contact], fill=LIGHT.friction, width=3 * _FINE)
        draw.rectangle(_box(contact, 7), fill=colours[-1])
        arrow = rows["friction_force"][now] / self._most * 60.0 * _FINE
        draw.line([*handle, handle[0] - arrow[0], handle[1] + arrow[1]], fill=LIGHT.force, width=3 * _FINE)
        draw.ellipse(_box(handle, 6), outline=LIGHT.text, fill=LIGHT.panel, width=2 * _FINE)
        left, right, top, bottom = _SPLIT + 30.0, WIDTH - 16.0, self._top + 18.0, self._bottom - 4.0
        draw.rectangle([_FINE * value for value in (left, top, right, bottom)], outline=LIGHT.border)
        columns = np.unique(np.linspace(0, now, max(int((now + 1) / len(rows) * 500), 2)).astype(int))
        x = left + (right - left) * columns / len(rows)
        y = bottom - (bottom - top) * np.minimum(self._force[columns] / (1.15 * self._most), 1.0)
        draw.line((_FINE * np.column_stack((x, y))).ravel().tolist(), fill=LIGHT.friction, width=_FINE)
        _text(draw, left + 6.0, self._top, f"friction force {self._force[now]:.2f} N", font, LIGHT.text)

    def _pixels(self, points: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the picture coordinates [pixels] of `points`, shape (n, 2) [m]."""
        middle = np.array([0.5 * (_LEFT + _SPLIT), 0.5 * (self._top + self._bottom) + 8.0])
        return np.asarray(_FINE * (middle + (points - self._centre) * self._scale * (1.0, -1.0)))


def _box(point: NDArray[np.float64], half: float) -> list[float]:
    x, y = point.tolist()
    return [x - _FINE * half, y - _FINE * half, x + _FINE * half, y + _FINE * half]


def _text(draw: ImageDraw, x: float, y: float, words: str, font: Any, colour: str) -> None:
    draw.text((_FINE * x, _FINE * y), words, font=font, fill=colour)


def _font(size: int) -> Any:
    """Return the font of the pictures, which is shipped with Matplotlib."""
    from matplotlib import get_data_path
    from PIL import ImageFont

    return ImageFont.truetype(str(Path(get_data_path()) / "fonts" / "ttf" / "DejaVuSans.ttf"), _FINE * size)


def _fitting(words: str, size: int) -> Any:
    """Return the largest font, up to `size`, in which `words` fit into one line."""
    fonts = (_font(smaller) for smaller in range(size, 7, -1))
    return next((font for font in fonts if font.getlength(words) <= _FINE * (WIDTH - 2 * _LEFT)), _font(8))


def write_film(film: Film, stem: Path) -> list[Path]:
    """Write a film as WebP or GIF, and as MP4 if ``ffmpeg`` is installed, and return the paths.

    The files have the name `stem` with their suffixes. GIF is used if Pillow does not support WebP.

    Raises
    ------
    ConfigurationError
        If ``ffmpeg`` fails.
    """
    from PIL import features

    frames = list(film.frames())
    path = stem.with_suffix(".webp" if features.check("webp") else ".gif")
    options: dict[str, Any] = {"quality": 40, "method": 4} if path.suffix == ".webp" else {"optimize": True}
    pause = round(1000 / PER_SECOND)
    frames[0].save(path, save_all=True, append_images=frames[1:], duration=pause, loop=0, **options)
    program, video = shutil.which("ffmpeg"), stem.with_suffix(".mp4")
    if program is None:
        return [path]
    given = ["-f", "rawvideo", "-pix_fmt", "rgb24", "-s", f"{WIDTH}x{HEIGHT}", "-r", str(PER_SECOND), "-i", "-"]
    made = ["-pix_fmt", "yuv420p", "-movflags", "+faststart", str(video)]  # H.264, which every browser plays
    words = [program, "-y", "-loglevel", "error", *given, *made]
    done = subprocess.run(words, input=b"".join(frame.tobytes() for frame in frames), capture_output=True, check=False)
    if done.returncode:
        last = done.stderr.decode(errors="replace").strip().splitlines()[-1:] or ["no reason given"]
        raise ConfigurationError(f"{video}: ffmpeg could not make it ({last[0]}); take it off the path to do without.")
    return [path, video]


# --- results ----------------------------------------------------------------------------------------------------------


def finish(showing: Showing, title: str, guide: Guide, outcome: Outcome, folder: Path) -> Answer:
    """Replay the recordings, write picture and film into `folder`, and return the result.

    Parameters
    ----------
    showing : Showing
        The demonstration and its recordings, starting with the run that was shown.
    title, guide : str, Guide
        Title and instructions of the demonstration.
    outcome : Outcome
        Its result. It holds only if the replay of every tick agrees, too.
    folder : Path
        Folder of picture and film.
    """
    from matplotlib.figure import Figure

    name, unit = showing.name, outcome.unit
    found = [examine(recording) for recording in showing.recordings]
    ticks, mismatches = sum(one.ticks for one in found), sum(one.mismatches for one in found)
    holds = outcome.holds and mismatches == 0 and ticks > 0
    stated = f"{outcome.sentence} {outcome.number:.3g} {unit} (at most {outcome.bound:.3g} {unit})"
    picture = folder / f"{name}.png"
    figure = Figure(figsize=(12, 7), dpi=72, facecolor="white", layout="constrained")
    outcome.draw(figure)
    figure.supxlabel(stated, x=0.995, ha="right", fontsize=11, color=INK)
    figure.savefig(picture)
    films = [str(film) for film in write_film(Film(title, stated, outcome.film), folder / name)]
    recordings = [str(recording.folder) for recording in showing.recordings]
    result = {
        "name": name,
        "title": title,
        "caption": {"do": guide.do, "feel": guide.feel, "see": guide.see},
        "sentence": outcome.sentence,
        "number": outcome.number,
        "unit": unit,
        "bound": outcome.bound,
        "holds": holds,
        "rows": [row_as_json(row) for row in outcome.rows],
        **outcome.facts,
        "recording": recordings[0],
        "recordings": recordings,
        "ticks": ticks,
        "mismatches": mismatches,
        "picture": str(picture),
        "films": films,
    }
    lines = [
        f"{name}: {title}",
        f"  do       {guide.do}",
        f"  feel     {guide.feel}",
        f"  see      {guide.see}",
        f"  number   {stated}",
        *(f"  {'beside' if row.holds else 'NOT SO'}   {row_sentence(row)}" for row in outcome.rows),
        f"  replay   {ticks} ticks of {len(recordings)} recordings computed again, {mismatches} mismatches",
        f"  files    {', '.join((str(picture), *films, recordings[0]))}",
        f"  holds    {'yes' if holds else 'NO'}",
    ]
    return Answer(result, wrapped("\n".join(lines), indent=11))
