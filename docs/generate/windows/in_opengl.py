"""The windows of pyglet on a virtual screen: the stage, and the participant's screen."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from apps.experiment.settings import ScreenSettings
from apps.front_ends.run import from_metadata
from docs.generate.windows.recorded import load
from haptics.records import with_missing_columns
from haptics.scenes import find_scene, read_scene
from haptics.trace import Trace
from tests.apps.experiment.screens import driving as person
from tests.apps.experiment.screens.shows import shows
from tests.apps.screen import Screen
from tests.apps.stage import driving as stage

THEMES = ("dark", "light")
SHOWS = {"instructions": "instructions", "interval": "first", "question": "response", "break": "break"}
"""What of the participant's screen is shown: name of the picture, and of the `Show`."""


def draw(screen: Screen, size: tuple[int, int], runs: Path, shots: Path) -> None:
    """Draw both windows in both themes, as large as the screen, into files ``NAME-WIDTH-THEME.png``."""
    for theme in THEMES:
        for name, picture in {**_stage(screen, size, theme, runs), **_participant(screen, size, theme, runs)}.items():
            _save(picture, shots / f"{name}-{size[0]}-{theme}.png")


def _stage(screen: Screen, size: tuple[int, int], theme: str, runs: Path) -> dict[str, NDArray[np.uint8]]:
    """Return the stage with materials, and with its keys over it."""
    recording, metadata = load(runs, "materials")
    rows = with_missing_columns(recording.rows)[5000:9000]
    info = from_metadata(metadata, rows)
    with tempfile.TemporaryDirectory() as place, stage.opened(screen, Path(place), size, theme) as shown:
        shown.begin(
            scene=read_scene(find_scene("ice-wood-rubber")),
            hand=info.hand,
            workspace=info.workspace,
            parameters=info.parameters,
            force_scale=info.force_scale,
        )
        shown.publish(rows)
        time.sleep(1.0)  # numbers change a few times a second
        found = {"stage": shown.shot()}
        shown.press("F1")
        found["stage-help"] = shown.shot()
    return found


def _participant(screen: Screen, size: tuple[int, int], theme: str, runs: Path) -> dict[str, NDArray[np.uint8]]:
    """Return pictures of the participant's screen during a trial, by name."""
    width, height = size
    settings = ScreenSettings(full_screen=False, width=width, height=height, theme=theme)
    recording, _ = load(runs, "stribeck")
    found = {}
    with tempfile.TemporaryDirectory() as place, person.opened(screen, settings) as one:
        one.until_shown()
        window = one.focus("haptics: participant")
        trace = Trace.create(Path(place) / "trace")
        trace.append(with_missing_columns(recording.rows)[6000])
        one.front.send(person.started(trace.path))
        said: dict[str, Any] = shows()
        for name, show in SHOWS.items():
            one.front.send(said[show])
            one.until_shown()
            time.sleep(0.3)
            found[f"participant-{name}"] = screen.shot(window)
    return found


def _save(picture: NDArray[np.uint8], path: Path) -> None:
    from PIL import Image

    Image.fromarray(picture).save(path)
