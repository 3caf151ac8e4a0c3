"""How the view and its application part: closing, quitting, and either of them gone; the view's real process."""

from __future__ import annotations

import multiprocessing

import pytest

pytest.importorskip("PySide6.QtWidgets", exc_type=ImportError, reason="Qt or its system libraries are missing")

from apps.front_ends.messages import Close, Quit
from tests.apps.view.driving import frames, publish


def test_closing_the_window_is_told_to_the_session(live) -> None:
    live.begin()
    live.window.close()
    assert live.sent() == [Close()]


def test_quit_closes_without_an_answer(live) -> None:
    live.begin()
    live.session.send(Quit())
    frames(live, 1)
    assert not live.window.isVisible()
    assert live.sent() == []


def test_when_the_application_is_gone_the_window_says_so_and_closes(live, qtbot, monkeypatch) -> None:
    monkeypatch.setattr("apps.view.window._FAREWELL_MS", 50)
    live.begin()
    live.session.close()
    live.window.frame()
    assert "application has gone" in live.window.dashboard.notice.words.text()
    assert live.window.dashboard.notice.isVisible()
    qtbot.waitUntil(lambda: not live.window.isVisible())


def test_sending_to_an_application_that_is_gone_does_no_harm(live) -> None:
    live.begin()
    live.session.close()
    live.window.controls.stop_asked.emit()
    live.window.controls.stop_asked.emit()
    assert live.window._link.gone


def run_process(messages: list[object]) -> tuple[int | None, list[object]]:
    """Start the real view process, send messages, close nothing; return its exit code and its answers."""
    from apps.view.process import main

    context = multiprocessing.get_context("spawn")
    near, far = context.Pipe()
    process = context.Process(target=main, args=(far, "dark"))
    process.start()
    far.close()
    for message in messages:
        near.send(message)
    if not messages:
        near.close()
    process.join(60)
    code = process.exitcode
    answers = []
    try:
        while messages and near.poll():
            answers.append(near.recv())
    except EOFError:
        pass
    process.kill()
    return code, answers


def test_the_process_shows_a_run_and_quits_in_order(started, trace, rows) -> None:
    publish(trace, rows[:500])
    assert run_process([started, Quit()]) == (0, [])


def test_the_process_ends_by_itself_when_the_application_dies() -> None:
    assert run_process([])[0] == 0
