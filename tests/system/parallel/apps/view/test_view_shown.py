"""The window answers whether it is there."""

from __future__ import annotations

import pytest

pytest.importorskip("PySide6.QtWidgets", exc_type=ImportError, reason="Qt or its system libraries are missing")

from apps.front_ends.messages import AskShown, Shown


def test_a_window_that_is_there_says_so_when_it_is_asked(live) -> None:
    assert live.sent() == []
    live.session.send(AskShown())
    live.window.frame()
    assert live.window.isVisible()
    assert live.sent() == [Shown()]
