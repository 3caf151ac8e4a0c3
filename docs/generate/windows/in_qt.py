"""The windows of Qt on the screen that there is: ``python -m docs.generate.windows.in_qt RUNS SHOTS [NAME]``."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from multiprocessing import Pipe
from pathlib import Path
from typing import Any

from apps.compare.comparison import Side, figures, in_a_line
from apps.front_ends.front_end import Link
from apps.front_ends.run import from_metadata
from apps.settings.options import offers
from apps.shared.theme import DARK, LIGHT, Theme
from apps.view.comparison import CompareWindow
from apps.view.dashboard import HelpWindow
from apps.view.feed import ReplayFeed
from apps.view.qt import QtWidgets, application
from apps.view.replay import ReplayWindow
from apps.view.screenshot import announcement
from apps.view.window import LiveWindow
from apps.view.xy_plots import SpeedPanel
from docs.generate.windows.experiment import fill
from docs.generate.windows.recorded import config_of, load
from haptics.records import with_missing_columns
from haptics.trace import Trace

FRAME = (16, 48)
"""What a window manager's frame takes of a screen [pixel]."""

CAPTION = (
    "It holds. Push the handle against the friction, gently: up to 4 N it does not move by a micrometre, however long "
    "you push. Push harder and it slides."
)


class Windows:
    """Makes the windows on a screen.

    Parameters
    ----------
    runs : Path
        What `recorded.record` made.
    """

    def __init__(self, runs: Path, theme: Theme) -> None:
        self._runs, self._theme = runs, theme

    def live(self, name: str = "stribeck") -> LiveWindow:
        """Return the live view during a run."""
        recording, metadata = load(self._runs, name)
        config, rows = config_of(name), recording.rows
        info = from_metadata(metadata, rows)
        window = LiveWindow(None, self._theme)
        _place(window)
        window.show_run(info, announcement(info, {**metadata, **offers(config)}))
        feed = ReplayFeed(rows, info.rate, info.causality)
        feed.seek(len(rows) - 1000)  # before the end, where the force fades out
        window.show_feed(feed)
        return window

    def paused(self) -> LiveWindow:
        """Return it with cursors, and with a law that waits."""
        window = self.live()
        window.controls.session.law.setCurrentText("coulomb")
        window.dashboard.seek(8000)
        window.dashboard.transport.cursors.click()
        return window

    def other_plots(self) -> LiveWindow:
        """Return it with the plots that are not shown at first."""
        window = self.live()
        places = window.dashboard.places
        for place, title in enumerate(("Force over displacement", "Spectrum", "Energy")):
            places.choose(places.shown[place], title)
        return window

    def demonstration(self) -> LiveWindow:
        """Return it at the end of a demonstration, with its caption."""
        window = self.live()
        recording, _ = load(self._runs, "stribeck")
        window.dashboard.notice.show_notice(CAPTION, 600.0)
        window.dashboard.show_end("Run ended: completed", recording.metadata.get("certificate", {}))
        window.dashboard.show_ended()
        window.controls.set_running(False)
        return window

    def help(self) -> HelpWindow:
        """Return the help of the live view."""
        window = self.live()
        window.dashboard.help()
        return next(iter(window.findChildren(HelpWindow)))

    def replay(self) -> ReplayWindow:
        """Return the replay of a run on a scene."""
        recording, metadata = load(self._runs, "materials")
        window = ReplayWindow(recording.rows, metadata, self._theme)
        _place(window)
        window.dashboard.end.close()
        places = window.dashboard.places
        places.choose(places.shown[0], "Region, normal force")
        window.seek(9000)
        return window

    def compare(self) -> CompareWindow:
        """Return two runs side by side, the second with its loop open."""
        (a, of_a), (b, of_b) = (load(self._runs, name) for name in ("stribeck", "coulomb"))
        sides = (
            Side("model C, stribeck (2026-11-22T19-00-00_virtual-joystick_C)", a.rows, of_a),
            Side("model C, coulomb: law.name=coulomb law.force=4", b.rows, of_b, open_loop=True),
        )
        window = CompareWindow(sides, in_a_line(figures(a.rows, b.rows)), self._theme)
        _place(window)
        window.seek(9000)
        return window

    def experimenter(self) -> QtWidgets.QWidget:
        """Return the experimenter's window in the middle of a session."""
        from apps.experiment.screens.experimenter import ExperimenterWindow

        far, near = Pipe()
        window = ExperimenterWindow(Link(near), self._theme)
        _place(window)
        recording, metadata = load(self._runs, "stribeck")
        with tempfile.TemporaryDirectory() as place:
            trace = Trace.create(Path(place) / "trace")
            message = announcement(from_metadata(metadata, recording.rows), metadata)
            fill(far.send, message, trace)
            window.frame()
            for row in with_missing_columns(recording.rows)[3000:9000]:
                trace.append(row)
            window.frame()
        window.setProperty("pipe", far)
        return window


def _place(window: QtWidgets.QWidget) -> None:
    """Show a window as large as there is room for."""
    room = window.screen().availableGeometry()
    window.resize(room.width() - FRAME[0], room.height() - FRAME[1])
    window.show()


def _grab(window: QtWidgets.QWidget) -> Any:
    """Return the picture of a window that has settled."""
    app = application()
    for shown in {window, window.parentWidget() or window}:
        for plot in shown.findChildren(SpeedPanel):
            plot.law.wait()
        for _ in range(4):
            app.processEvents()
            if isinstance(shown, LiveWindow):
                shown.dashboard._redraw()
            elif isinstance(shown, ReplayWindow | CompareWindow):
                shown.seek(9000)
    return window.grab()


def main(runs: Path, shots: Path, only: str = "") -> None:
    """Draw every window, or `only` one of them, in both themes into files ``NAME-WIDTH-THEME.png``."""
    width = application().primaryScreen().size().width()
    for theme in (DARK, LIGHT):
        windows = Windows(runs, theme)
        makers: dict[str, Callable[[], QtWidgets.QWidget]] = {
            "live": windows.live,
            "plots": windows.other_plots,
            "paused": windows.paused,
            "demonstration": windows.demonstration,
            "help": windows.help,
            "replay": windows.replay,
            "compare": windows.compare,
            "experimenter": windows.experimenter,
        }
        for name, make in ((name, make) for name, make in makers.items() if only in ("", name)):
            window = make()
            _grab(window).save(str(shots / f"{name}-{width}-{theme.name}.png"))
            (window.parentWidget() or window).close()


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), *sys.argv[3:])
