"""The line on the terminal."""

from __future__ import annotations

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.shared.progress import Line, bar


@given(st.floats(0.0, 1.0))
def test_a_bar_is_as_full_as_the_work_is_done(share: float) -> None:
    inside, width = bar(share)[1:-1], len(bar(0.0)) - 2
    filled = inside.count("#")
    assert inside == "#" * filled + "." * (width - filled)
    assert filled == pytest.approx(share * width, abs=0.5)


def test_the_line_is_replaced_and_removed_whatever_happens(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with pytest.raises(ZeroDivisionError), Line() as line:
        line.show("first")
        line.show("second")
        _ = 1 / 0
    assert capsys.readouterr() == ("", "\r\x1b[Kfirst\r\x1b[Ksecond\r\x1b[K")


def test_nothing_is_written_where_there_is_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    with Line() as line:
        line.show("first")
    assert capsys.readouterr() == ("", "")


def test_a_terminal_that_is_gone_does_no_harm(monkeypatch: pytest.MonkeyPatch) -> None:
    class Gone:
        def isatty(self) -> bool:
            return True

        def write(self, text: str) -> None:
            raise BrokenPipeError

    monkeypatch.setattr(sys, "stderr", Gone())
    with Line() as line:
        line.show("first")
