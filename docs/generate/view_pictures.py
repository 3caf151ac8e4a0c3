"""The pictures of the live view in the documentation: ``python -m docs.generate.view_pictures [FOLDER]``.

A session without a clock is recorded, and its window drawn without a display.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from apps.view.dashboard import Dashboard
    from apps.view.window import LiveWindow

IMAGES = Path(__file__).parents[1] / "images"
SECONDS = 12.0


def main(folder: Path = IMAGES) -> None:
    """Make all pictures."""
    os.environ["QT_QPA_PLATFORM"] = "offscreen"
    from apps.session.offline import record_offline
    from apps.settings.config import complete
    from apps.shared.theme import DARK, LIGHT

    with tempfile.TemporaryDirectory() as place:
        session = {"model": "C", "clock": "off", "duration": SECONDS, "picture": False}
        law = {"name": "stribeck", "kinetic_force": 2.5, "static_force": 4.0, "stribeck_velocity": 0.12}
        config = complete({"session": session, "device": {"name": "virtual-joystick"}, "law": law})
        recording = record_offline(config, Path(place) / "run")
        metadata = {**recording.metadata, "recording": "recordings/2026-11-22T19-00-00_virtual-joystick_C"}
        for name, size, theme, do in (
            ("live_view", (1366, 720), DARK, lambda window: None),
            ("live_view_plots", (1366, 720), LIGHT, _other_plots),
            ("live_view_paused", (1366, 720), DARK, _pause),
        ):
            picture = _window(recording.rows, metadata, size, theme, config, do)
            _save(picture, folder / f"{name}.png")


def _save(picture: Any, path: Path) -> None:
    """Write a picture with few colours, so that the file is small."""
    from PIL import Image

    picture.save(str(path))
    with Image.open(path) as whole:
        few = whole.convert("RGB").quantize(64, dither=Image.Dither.NONE)
    few.save(path, optimize=True)


def _other_plots(window: LiveWindow) -> None:
    places = window.dashboard.places
    for place, title in enumerate(("Force over displacement", "Spectrum", "Energy")):
        places.choose(places.shown[place], title)


def _pause(window: LiveWindow) -> None:
    dashboard: Dashboard = window.dashboard
    window.controls.session.law.setCurrentText("coulomb")
    dashboard.seek(8000)
    dashboard.transport.cursors.click()


def _window(rows: Any, metadata: Any, size: Any, theme: Any, config: Any, do: Callable[[Any], None]) -> Any:
    """Return a picture of the window after something was done with it."""
    from apps.front_ends.run import from_metadata
    from apps.settings.about import about, choices, hands_to_choose, laws_to_choose
    from apps.view.feed import ReplayFeed
    from apps.view.plots.speed import SpeedPanel
    from apps.view.qt import application, grow
    from apps.view.screenshot import announcement
    from apps.view.window import LiveWindow

    app = application()
    grow(*size)
    info = from_metadata(metadata, rows)
    offered = {
        "choices": choices(config),
        "hands": hands_to_choose(config.hand),
        "laws": laws_to_choose(config.law["name"]),
        "about": about(config.causality),
    }
    window = LiveWindow(None, theme)
    window.resize(*size)
    window.show_run(info, announcement(info, {**metadata, **offered}))
    window.show()
    feed = ReplayFeed(rows, info.rate, info.causality)
    feed.seek(len(rows) - 1000)  # before the end, where the force fades out
    window.show_feed(feed)
    for plot in window.dashboard.places.shown:
        if isinstance(plot, SpeedPanel):
            plot.law.wait()
    do(window)
    for _ in range(3):
        app.processEvents()
        window.dashboard.refresh(feed, everything=True)
    picture = window.grab()
    window.close()
    return picture


if __name__ == "__main__":
    main(*(Path(argument) for argument in sys.argv[1:]))
