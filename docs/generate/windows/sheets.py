"""What the documentation has of the pictures: single ones, and a sheet for each window with all sizes and themes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from PIL import Image

IMAGES = Path(__file__).parents[2] / "images"
SHEETS = (
    *("live", "paused", "demonstration", "help", "replay", "compare", "stage", "stage-help"),
    *("participant-instructions", "participant-interval", "participant-question", "experimenter"),
)
SINGLE = {
    "live_view": "live-1366-dark",
    "live_view_plots": "plots-1366-light",
    "live_view_paused": "paused-1366-dark",
    "replay_scene": "replay-1366-light",
    "experiment_experimenter": "experimenter-1280-dark",
    "stage": "stage-1280-dark",
}
"""Pictures of pages about one window: name, and which of the shots it is."""

FOUR = ("instructions", "interval", "question", "break")
_TILE = 800
"""A picture on a sheet is so wide [pixel]."""

_GAP = 10
_GROUND = (128, 128, 128)
_QUALITY = 55
_MOST_COLOURS = 5_000
_THEMES = ("dark", "light")


def make(shots: Path, sizes: Sequence[tuple[int, int]]) -> None:
    """Make all pictures of the documentation from the shots ``NAME-WIDTH-THEME.png``."""
    (IMAGES / "windows").mkdir(exist_ok=True)
    for name in SHEETS:
        rows = [[shots / f"{name}-{width}-{theme}.png" for width, _ in sizes] for theme in _THEMES]
        sheet = _sheet(rows)
        sheet.save(IMAGES / "windows" / f"{name}.webp", quality=_QUALITY, method=6)
    for name, shot in SINGLE.items():
        with Image.open(shots / f"{shot}.png") as whole:
            _save(whole, IMAGES / f"{name}.png")
    pages = [shots / f"participant-{part}-1280-dark.png" for part in FOUR]
    _save(_sheet([pages[:2], pages[2:]], 640), IMAGES / "experiment_participant.png")


def _sheet(rows: Sequence[Sequence[Path]], width: int = _TILE) -> Image.Image:
    """Return pictures in rows and columns, each reduced to the width if it is wider."""
    tiles = [[_smaller(path, width) for path in row] for row in rows]
    columns = [max(row[k].width for row in tiles) for k in range(len(tiles[0]))]
    heights = [max(tile.height for tile in row) for row in tiles]
    size = sum(columns) + _GAP * (len(columns) - 1), sum(heights) + _GAP * (len(heights) - 1)
    sheet, y = Image.new("RGB", size, _GROUND), 0
    for row, height in zip(tiles, heights, strict=True):
        for k, tile in enumerate(row):
            sheet.paste(tile, (sum(columns[:k]) + _GAP * k, y))
        y += height + _GAP
    return sheet


def _smaller(path: Path, width: int) -> Image.Image:
    with Image.open(path) as whole:
        picture = whole.convert("RGB")
    if picture.width <= width:
        return picture
    return picture.resize((width, round(picture.height * width / picture.width)), Image.Resampling.LANCZOS)


def _save(picture: Image.Image, path: Path) -> None:
    """Write a picture with few colours, so that the file is small; textures have too many to leave any out."""
    picture = picture.convert("RGB")
    if picture.getcolors(_MOST_COLOURS) is not None:
        picture = picture.quantize(64, dither=Image.Dither.NONE)
    picture.save(path, optimize=True)
