"""Draw a picture of the live window from recorded rows, without a display.

``python -m apps.view.screenshot RECORDING OUT.png [--theme dark]``
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from apps.front_ends.messages import SessionStarted
from apps.front_ends.run import RunInfo
from haptics.errors import HapticError, RecordingError
from haptics.recording.recording import Recording
from haptics.records import Rows

SIZE = (1280, 800)


def grab(
    rows: Rows, metadata: Mapping[str, Any], path: Path, theme: str = "dark", size: tuple[int, int] = SIZE
) -> None:
    """Save a picture of the live window at the last of `rows`.

    Parameters
    ----------
    rows : structured array
        Ticks, dtype `haptics.records.ROW`.
    metadata : mapping
        As for `apps.view.replay.run`; `choices` and `hands` fill the lists of the left column.
    path : Path
        PNG file to write.
    theme : str
        ``dark`` or ``light``.
    size : (width, height)
        Size of the window [pixel].

    Raises
    ------
    RecordingError
        If there are no rows, or the picture cannot be written.
    """
    if not len(rows):
        raise RecordingError("the recording holds no ticks, so there is no picture of it")
    if "PySide6.QtWidgets" not in sys.modules:
        os.environ["QT_QPA_PLATFORM"] = "offscreen"  # draw into memory
    from apps.front_ends.run import from_metadata
    from apps.shared.theme import by_name
    from apps.view.feed import ReplayFeed
    from apps.view.qt import QtCore, application, grow
    from apps.view.window import LiveWindow

    app = application()
    grow(*size)
    info = from_metadata(metadata, rows)
    window = LiveWindow(None, by_name(theme))
    window.setAttribute(QtCore.Qt.WidgetAttribute.WA_DontShowOnScreen)
    window.resize(*size)
    window.show_run(info, announcement(info, metadata))
    window.show()
    feed = ReplayFeed(rows, info.rate, info.causality)
    feed.seek(len(rows) - 1)
    window.show_feed(feed)
    for _ in range(3):  # layouts and plot ranges need several rounds of events to settle
        app.processEvents()
    saved = window.grab().save(str(path))
    window.close()
    window.deleteLater()
    grow(*SIZE)
    if not saved:
        raise RecordingError(f"the picture could not be written to {path}")


def announcement(info: RunInfo, metadata: Mapping[str, Any]) -> SessionStarted:
    """Return the message with which a session would announce a recorded run."""
    choices = {str(name): tuple(models) for name, models in dict(metadata.get("choices") or {}).items()}
    absent = ("rate", "duration", "max_energy", "dead_man")
    common = {one.name: getattr(info, one.name) for one in fields(RunInfo) if one.name not in absent}
    return SessionStarted(
        **common | {"mouse": False, "law_settings": dict(info.law_settings)},
        trace="",
        rate_hz=info.rate,
        choices=choices or {info.device: (info.model,)},
        hands=tuple(metadata.get("hands") or (info.hand,)),
        laws=tuple(metadata.get("laws") or ((info.law,) if info.law else ())),
        about=dict(metadata.get("about") or {}),
    )


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m apps.view.screenshot", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("recording", type=Path, help="folder of a recording")
    parser.add_argument("picture", type=Path, help="PNG file to write")
    parser.add_argument("--theme", choices=("dark", "light"), default="dark")
    chosen = parser.parse_args(arguments)
    try:
        recording = Recording(chosen.recording)
        metadata = {"recording": str(chosen.recording), **recording.metadata}
        grab(recording.rows, metadata, chosen.picture, chosen.theme)
    except HapticError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
