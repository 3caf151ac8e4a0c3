"""Help on the keys and the plots, in a window that does not take the focus from the stop key."""

from __future__ import annotations

import html
from collections.abc import Sequence

from apps.view.plots.plot import Plot
from apps.view.qt import QtCore, QtWidgets, px

KEYS = (
    ("F1", "this help, and away with it"),
    ("F2", "pause: hold the picture while the run goes on; go on"),
    ("F3", "two cursors over every plot: drag them; values, units and the difference stand below"),
    ("F4", "show the whole range of every plot (of one: double click)"),
    ("F5", "copy a picture of the window"),
    ("F6", "save a picture of the window beside the recording"),
)
"""Function keys of all windows with plots, and their functions."""

LIVE_KEYS = (
    ("Space", "STOP, whatever has the focus; where the space bar must be held, hold it, and Esc is STOP"),
    ("others", "are written down in the recording, for instance as answers"),
)
REPLAY_KEYS = (
    ("Space", "play or pause"),
    ("\u2190 \u2192", "one tick; with Shift 0.1 s"),
    ("Page", "one second back or on"),
    ("Home, End", "the beginning, the end"),
    ("N, P", "the next mark on the strip, the one before"),
)

_TEXT = """<h3>Keys</h3><table cellpadding='3'>{keys}</table>
<h3>Mouse over a plot</h3><p>Wheel: zoom (over an axis: that axis alone). Left button: move. Right button: stretch.
Double click: the whole range. \u2922 shows a plot alone; \u22ef copies or saves its picture (PNG, SVG) and the data
that is shown (CSV, units in the names). The list at its upper left chooses another plot for the place.</p>
{live}<h3>Plots</h3>{plots}"""

_LIVE = """<h3>What waits, and what does not</h3><p><b>Session</b> (device, model, law, hand) waits for
<i>Start again</i>; what differs from the run that goes on is marked \u25cf and named in an orange bar. <b>Numbers</b>
are in force from the next tick on.</p>"""


class HelpWindow(QtWidgets.QDialog):
    """Window with help on the keys and the plots.

    Parameters
    ----------
    parent : QWidget
        Parent window.
    plots : sequence of classes
        Plots to describe.
    past : bool
        Whether the parent window shows a recording.
    """

    def __init__(self, parent: QtWidgets.QWidget, plots: Sequence[type[Plot]], past: bool) -> None:
        super().__init__(parent)
        self.setWindowTitle("haptics: help")
        self.setModal(False)
        self.setAttribute(QtCore.Qt.WidgetAttribute.WA_ShowWithoutActivating)
        self.text = QtWidgets.QTextBrowser()
        self.text.setFocusPolicy(QtCore.Qt.FocusPolicy.NoFocus)
        keys = "".join(
            f"<tr><td><b>{key}</b></td><td>{html.escape(words)}</td></tr>"
            for key, words in (*(REPLAY_KEYS if past else LIVE_KEYS), *KEYS)
        )
        about = "".join(f"<p><b>{plot.title}.</b> {html.escape(plot.about)}</p>" for plot in plots)
        self.text.setHtml(_TEXT.format(keys=keys, plots=about, live="" if past else _LIVE))
        column = QtWidgets.QVBoxLayout(self)
        column.setContentsMargins(8, 8, 8, 8)
        column.addWidget(self.text)
        room = parent.screen().availableGeometry()
        self.resize(min(px(640), room.width() - 40), min(px(620), room.height() - 60))
