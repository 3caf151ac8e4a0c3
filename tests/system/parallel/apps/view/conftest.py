"""The view is tested without a display: Qt draws into memory."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

os.environ["QT_QPA_PLATFORM"] = "offscreen"
os.environ["PYQTGRAPH_QT_LIB"] = "PySide6"

from apps.front_ends.messages import Parameter, SessionStarted
from haptics.records import Rows
from haptics.trace import Trace
from tests.apps.view import view_rows


@pytest.fixture(scope="session")
def rows() -> Rows:
    """Six and a half seconds of a hand that moves, stops and moves again."""
    return view_rows.simulate(6500)


@pytest.fixture
def trace(tmp_path: Path) -> Trace:
    """An empty trace."""
    return Trace.create(tmp_path / "trace")


@pytest.fixture
def started(trace: Trace, tmp_path: Path) -> SessionStarted:
    """The message with which a session begins."""
    return SessionStarted(
        trace=str(trace.path),
        recording=str(tmp_path / "recording"),
        device="virtual-joystick",
        model="C",
        causality="impedance",
        rate_hz=1000.0,
        hand="mouse",
        workspace=((-0.06, -0.045), (0.06, 0.045)),
        parameters=(
            Parameter("law.force", 4.0, 0.0, 10.0, "N"),
            Parameter("element.stiffness", 6000.0, 100.0, 10000.0, "N/m", logarithmic=True),
        ),
        choices={"virtual-joystick": ("B", "C"), "virtual-arm": ("A", "D")},
        hands=("tracing", "mouse"),
        mouse=True,
        force_scale=4.0,
        duration=10.0,
    )


@pytest.fixture
def live(qtbot, trace: Trace, started: SessionStarted) -> Iterator[SimpleNamespace]:
    """A live window, its session's end of the pipe, and a function that begins a run."""
    from apps.front_ends.link import Link
    from apps.shared.theme import DARK
    from apps.view.qt import application
    from apps.view.window import LiveWindow

    application()  # dressed as in the program: its letters are not those that Qt begins with
    session, view = multiprocessing.Pipe()
    window = LiveWindow(Link(view), DARK)
    qtbot.addWidget(window)
    window.resize(1280, 800)
    window.show()
    qtbot.waitExposed(window)

    def begin(**changes: object) -> None:
        session.send(replace(started, **changes))
        window.frame()

    def sent() -> list[object]:
        messages = []
        while session.poll():
            messages.append(session.recv())
        return messages

    yield SimpleNamespace(window=window, session=session, begin=begin, sent=sent, trace=trace)
    window.close()
    session.close()
