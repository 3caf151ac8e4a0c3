"""Fixtures of the live view, whose windows Qt draws into memory."""

import multiprocessing
from dataclasses import replace
from types import SimpleNamespace

import pytest

from tests.apps.stage import driving
from tests.apps.view import view_rows


@pytest.fixture(scope="session")
def rows():
    """Six and a half seconds of a hand that moves, stops and moves again."""
    return view_rows.simulate(6500)


@pytest.fixture
def started(trace, tmp_path):
    """The message with which a session begins."""
    choices = {"virtual-joystick": ("B", "C"), "virtual-arm": ("A", "D")}
    options = {"choices": choices, "hands": ("tracing", "mouse"), "mouse": True, "duration": 10.0}
    return driving.started(trace.path, recording=str(tmp_path / "recording"), **options)


@pytest.fixture
def waiting(qtbot, trace, started):
    """A live window before its first run, with functions: `begin` or `run` a run, `publish` rows, `receive` messages.

    All but `begin` draw the window afterwards; `sent` returns the messages of the window.
    """
    from PySide6 import QtWidgets

    from apps.front_ends.front_end import Link
    from apps.shared.theme import DARK
    from apps.view.qt import application
    from apps.view.window import LiveWindow

    application()  # the fonts of the program, which differ from the defaults of Qt
    session, view = multiprocessing.Pipe()
    window = LiveWindow(Link(view), DARK)
    qtbot.addWidget(window)
    window.resize(1280, 800)
    window.show()
    qtbot.waitExposed(window)

    def begin(**changes):
        session.send(replace(started, **changes))
        window.frame()

    def publish(found):
        for row in found:
            trace.append(row)
        draw()

    def draw():
        for _ in range(3):  # numbers change in every third frame
            window.frame()
            QtWidgets.QApplication.processEvents()

    def run(found=(), **changes):
        begin(**changes)
        publish(found)

    def receive(*messages):
        for message in messages:
            session.send(message)
        draw()

    def sent():
        messages = []
        while session.poll():
            messages.append(session.recv())
        return messages

    yield SimpleNamespace(
        window=window, session=session, trace=trace, begin=begin, publish=publish, run=run, receive=receive, sent=sent
    )
    window.close()
    session.close()


@pytest.fixture
def live(waiting):
    """The live window after the start of a run."""
    waiting.begin()
    return waiting


@pytest.fixture
def shown(live, rows):
    """The live window with the first six seconds of the run."""
    live.run(rows[:6000], mouse=False, law="coulomb")
    return SimpleNamespace(**vars(live), dashboard=live.window.dashboard, history=live.window._feed.history)


@pytest.fixture
def place(shown):
    """A function that shows the plot of a name in the lower place at the right, and returns it."""
    from tests.apps.view.driving import frames

    def choose(name):
        places = shown.dashboard.places
        for plot in places.visible:
            if plot.name == name:
                return plot
        title = next(title for title, kind in places.kinds.items() if kind.name == name)
        places.choose(places.shown[2], title)
        frames(shown)
        return places.plot(title)

    return choose
